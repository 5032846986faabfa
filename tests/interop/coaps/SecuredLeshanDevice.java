import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.net.InetAddress;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.List;

import org.eclipse.californium.elements.config.Configuration;
import org.eclipse.californium.scandium.config.DtlsConfig;
import org.eclipse.leshan.client.LeshanClient;
import org.eclipse.leshan.client.LeshanClientBuilder;
import org.eclipse.leshan.client.engine.DefaultRegistrationEngineFactory;
import org.eclipse.leshan.client.object.Device;
import org.eclipse.leshan.client.object.Security;
import org.eclipse.leshan.client.object.Server;
import org.eclipse.leshan.client.observer.LwM2mClientObserverAdapter;
import org.eclipse.leshan.client.resource.ObjectsInitializer;
import org.eclipse.leshan.client.send.ManualDataSender;
import org.eclipse.leshan.client.servers.LwM2mServer;
import org.eclipse.leshan.core.LwM2mId;
import org.eclipse.leshan.core.ResponseCode;
import org.eclipse.leshan.core.request.ContentFormat;
import org.eclipse.leshan.core.request.RegisterRequest;
import org.eclipse.leshan.core.request.UpdateRequest;
import org.eclipse.leshan.transport.californium.client.endpoint.CaliforniumClientEndpointsProvider;
import org.eclipse.leshan.transport.californium.client.endpoint.coaps.CoapsClientProtocolProvider;

/**
 * A LwM2M device on Eclipse Leshan over DTLS: {@code ADDRESS:PORT NAME CONNECTION_ID psk KEY}, or
 * {@code rpk} or {@code x509} with its own public key or certificate, its private key and the public
 * key or certificate of the server, each in base64 of DER. {@code CONNECTION_ID} is the length of
 * its own Connection IDs, or -1 for no such extension: then it resumes its session before each
 * update. Each line on standard input is one command: {@code send} or {@code update}. It prints {@code registered}, {@code register-failed}, {@code updated} and
 * {@code sent CODE}.
 */
final class SecuredLeshanDevice {
    private static final int SHORT_SERVER_ID = 1;
    private static final long LIFETIME_S = 300;
    private static final long SEND_TIMEOUT_MS = 120_000;

    private SecuredLeshanDevice() {
    }

    public static void main(String[] arguments) throws Exception {
        ObjectsInitializer objects = new ObjectsInitializer();
        objects.setInstancesForObject(LwM2mId.SECURITY, account(arguments));
        objects.setInstancesForObject(LwM2mId.SERVER, new Server(SHORT_SERVER_ID, LIFETIME_S));
        objects.setInstancesForObject(LwM2mId.DEVICE, new Device("Lamp Works", "Lamp", "7"));
        CaliforniumClientEndpointsProvider.Builder endpoints =
                new CaliforniumClientEndpointsProvider.Builder(new CoapsClientProtocolProvider());
        Configuration configuration = endpoints.createDefaultConfiguration();
        Integer connectionId = Integer.valueOf(arguments[2]);
        configuration.set(DtlsConfig.DTLS_CONNECTION_ID_LENGTH, connectionId);
        endpoints.setConfiguration(configuration);
        endpoints.setClientAddress(InetAddress.getByName("127.0.0.1"));
        DefaultRegistrationEngineFactory registration = new DefaultRegistrationEngineFactory();
        registration.setReconnectOnUpdate(connectionId < 0);
        registration.setResumeOnConnect(true);
        LeshanClient client = new LeshanClientBuilder(arguments[1]).setObjects(objects.createAll())
                .setDataSenders(new ManualDataSender()).setEndpointsProviders(endpoints.build())
                .setRegistrationEngineFactory(registration).build();
        client.addObserver(new Printer());
        client.start();
        BufferedReader commands = new BufferedReader(
                new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = commands.readLine(); line != null; line = commands.readLine()) {
            switch (line) {
                case "send" -> send(client);
                case "update" -> client.triggerRegistrationUpdate();
                default -> throw new IllegalArgumentException("no such command: " + line);
            }
        }
        Runtime.getRuntime().halt(0);
    }

    private static Security account(String[] arguments) {
        String server = "coaps://" + arguments[0];
        return switch (arguments[3]) {
            case "psk" -> Security.psk(server, SHORT_SERVER_ID,
                    arguments[1].getBytes(StandardCharsets.UTF_8),
                    arguments[4].getBytes(StandardCharsets.UTF_8));
            case "rpk" -> Security.rpk(server, SHORT_SERVER_ID, bytes(arguments[4]),
                    bytes(arguments[5]), bytes(arguments[6]));
            case "x509" -> Security.x509(server, SHORT_SERVER_ID, bytes(arguments[4]),
                    bytes(arguments[5]), bytes(arguments[6]));
            default -> throw new IllegalArgumentException("no such mode: " + arguments[3]);
        };
    }

    private static byte[] bytes(String base64) {
        return Base64.getDecoder().decode(base64);
    }

    private static void send(LeshanClient client) {
        LwM2mServer server = client.getRegisteredServers().values().iterator().next();
        client.getSendService().sendData(server, ContentFormat.SENML_CBOR, List.of("/3/0/0"),
                SEND_TIMEOUT_MS,
                response -> event("sent", response.getCode().getCode()),
                error -> event("send-failed", error.getClass().getSimpleName()));
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
        public void onRegistrationSuccess(LwM2mServer server, RegisterRequest request,
                String location) {
            event("registered", location);
        }

        @Override
        public void onRegistrationFailure(LwM2mServer server, RegisterRequest request,
                ResponseCode code, String message, Exception cause) {
            event("register-failed", code == null ? cause : code.getCode());
        }

        @Override
        public void onUpdateSuccess(LwM2mServer server, UpdateRequest request) {
            event("updated");
        }
    }
}
