import org.eclipse.leshan.client.observer.LwM2mClientObserverAdapter;
import org.eclipse.leshan.client.servers.LwM2mServer;
import org.eclipse.leshan.core.ResponseCode;
import org.eclipse.leshan.core.request.DeregisterRequest;
import org.eclipse.leshan.core.request.RegisterRequest;
import org.eclipse.leshan.core.request.UpdateRequest;

/** Tells what becomes of the registration. */
final class Registrar extends LwM2mClientObserverAdapter {
    @Override
    public void onRegistrationSuccess(LwM2mServer server, RegisterRequest request,
            String location) {
        Told.event("registered", location);
    }

    @Override
    public void onRegistrationFailure(LwM2mServer server, RegisterRequest request,
            ResponseCode code, String message, Exception cause) {
        Told.event("register-failed", shown(code, cause));
    }

    @Override
    public void onUpdateSuccess(LwM2mServer server, UpdateRequest request) {
        Told.event("updated");
    }

    @Override
    public void onUpdateFailure(LwM2mServer server, UpdateRequest request, ResponseCode code,
            String message, Exception cause) {
        Told.event("update-failed", shown(code, cause));
    }

    @Override
    public void onDeregistrationSuccess(LwM2mServer server, DeregisterRequest request) {
        Told.event("deregistered");
    }

    @Override
    public void onDeregistrationFailure(LwM2mServer server, DeregisterRequest request,
            ResponseCode code, String message, Exception cause) {
        Told.event("deregister-failed", shown(code, cause));
    }

    private static Object shown(ResponseCode code, Exception cause) {
        return code == null ? cause : code.getCode();
    }
}
