import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.net.InetAddress;
import java.nio.charset.StandardCharsets;
import java.util.Base64;

import org.eclipse.leshan.client.LeshanClient;
import org.eclipse.leshan.client.LeshanClientBuilder;
import org.eclipse.leshan.client.object.Device;
import org.eclipse.leshan.client.object.Security;
import org.eclipse.leshan.client.object.Server;
import org.eclipse.leshan.client.observer.LwM2mClientObserverAdapter;
import org.eclipse.leshan.client.resource.ObjectsInitializer;
import org.eclipse.leshan.client.servers.LwM2mServer;
import org.eclipse.leshan.core.LwM2mId;
import org.eclipse.leshan.core.ResponseCode;
import org.eclipse.leshan.core.request.BootstrapRequest;
import org.eclipse.leshan.core.request.RegisterRequest;
import org.eclipse.leshan.transport.californium.client.endpoint.CaliforniumClientEndpointsProvider;
import org.eclipse.leshan.transport.californium.client.endpoint.coaps.CoapsClientProtocolProvider;

/**
 * A LwM2M device on Eclipse Leshan that knows its bootstrap server alone:
 * {@code ADDRESS:PORT NAME psk IDENTITY KEY}, or {@code rpk} or {@code x509} with its own public key
 * or certificate, its private key and the public key or certificate of the server. Keys are in
 * base64, of DER where they are not pre-shared. It prints {@code bootstrapped},
 * {@code bootstrap-failed}, {@code registered} and {@code register-failed}, and ends with its
 * standard input.
 */
final class BootstrappedLeshanDevice {
    private BootstrappedLeshanDevice() {
    }

    public static void main(String[] arguments) throws Exception {
        ObjectsInitializer objects = new ObjectsInitializer();
        objects.setInstancesForObject(LwM2mId.SECURITY, account(arguments));
        objects.setClassForObject(LwM2mId.SERVER, Server.class);
        objects.setInstancesForObject(LwM2mId.DEVICE, new Device("Lamp Works", "Lamp", "7"));
        CaliforniumClientEndpointsProvider.Builder endpoints =
                new CaliforniumClientEndpointsProvider.Builder(new CoapsClientProtocolProvider());
        endpoints.setClientAddress(InetAddress.getByName("127.0.0.1"));
        LeshanClient client = new LeshanClientBuilder(arguments[1]).setObjects(objects.createAll())
                .setEndpointsProviders(endpoints.build()).build();
        client.addObserver(new Printer());
        client.start();
        BufferedReader commands = new BufferedReader(
                new InputStreamReader(System.in, StandardCharsets.UTF_8));
        while (commands.readLine() != null) {
            // There are no commands.
        }
        Runtime.getRuntime().halt(0);
    }

    private static Security account(String[] arguments) {
        String server = "coaps://" + arguments[0];
        return switch (arguments[2]) {
            case "psk" -> Security.pskBootstrap(server,
                    arguments[3].getBytes(StandardCharsets.UTF_8), bytes(arguments[4]));
            case "rpk" -> Security.rpkBootstrap(server, bytes(arguments[3]), bytes(arguments[4]),
                    bytes(arguments[5]));
            case "x509" -> Security.x509Bootstrap(server, bytes(arguments[3]), bytes(arguments[4]),
                    bytes(arguments[5]));
            default -> throw new IllegalArgumentException("no such mode: " + arguments[2]);
        };
    }

    private static byte[] bytes(String base64) {
        return Base64.getDecoder().decode(base64);
    }

    private static void event(Object... words) {
        StringBuilder line = new StringBuilder();
        for (Object word : words) {
            line.append(line.length() == 0 ? "" : " ").append(word);
        }
        System.out.println(line);
    }

    private static final class Printer extends LwM2mClientObserverAdapter {
        @Override
        public void onBootstrapSuccess(LwM2mServer server, BootstrapRequest request) {
            event("bootstrapped");
        }

        @Override
        public void onBootstrapFailure(LwM2mServer server, BootstrapRequest request,
                ResponseCode code, String message, Exception cause) {
            event("bootstrap-failed", code == null ? cause : code.getCode());
        }

        @Override
        public void onRegistrationSuccess(LwM2mServer server, RegisterRequest request,
                String location) {
            event("registered", location);
        }

        @Override
        public void onRegistrationFailure(LwM2mServer server, RegisterRequest request,
                ResponseCode code, String message, Exception cause) {
            event("register-failed", code == null ? cause : code.getCode());
        }
    }
}
