import org.eclipse.leshan.client.observer.LwM2mClientObserverAdapter;
import org.eclipse.leshan.client.servers.LwM2mServer;
import org.eclipse.leshan.core.ResponseCode;
import org.eclipse.leshan.core.request.DeregisterRequest;
import org.eclipse.leshan.core.request.RegisterRequest;
import org.eclipse.leshan.core.request.UpdateRequest;

/** Prints the events of the registration. */
final class Registrar extends LwM2mClientObserverAdapter {
    @Override
    public void onRegistrationSuccess(LwM2mServer server, RegisterRequest request,
            String location) {
        EventPrinter.event("registered", location);
    }

    @Override
    public void onRegistrationFailure(LwM2mServer server, RegisterRequest request,
            ResponseCode code, String message, Exception cause) {
        EventPrinter.event("register-failed", shown(code, cause));
    }

    @Override
    public void onUpdateSuccess(LwM2mServer server, UpdateRequest request) {
        EventPrinter.event("updated");
    }

    @Override
    public void onUpdateFailure(LwM2mServer server, UpdateRequest request, ResponseCode code,
            String message, Exception cause) {
        EventPrinter.event("update-failed", shown(code, cause));
    }

    @Override
    public void onDeregistrationSuccess(LwM2mServer server, DeregisterRequest request) {
        EventPrinter.event("deregistered");
    }

    @Override
    public void onDeregistrationFailure(LwM2mServer server, DeregisterRequest request,
            ResponseCode code, String message, Exception cause) {
        EventPrinter.event("deregister-failed", shown(code, cause));
    }

    private static Object shown(ResponseCode code, Exception cause) {
        return code == null ? cause : code.getCode();
    }
}
