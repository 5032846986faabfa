// How fast is another LwM2M server? Eclipse Leshan's own, as its builder makes it, on free ports of
// loopback: registrations in memory, without security and over DTLS with one pre-shared key for
// every identity, and reads over HTTP. It prints where it listens.

import java.io.IOException;
import java.net.InetSocketAddress;
import java.util.HexFormat;
import org.eclipse.californium.scandium.config.DtlsConfig;
import org.eclipse.leshan.core.endpoint.Protocol;
import org.eclipse.leshan.core.peer.OscoreIdentity;
import org.eclipse.leshan.server.LeshanServer;
import org.eclipse.leshan.server.LeshanServerBuilder;
import org.eclipse.leshan.servers.security.Authorization;
import org.eclipse.leshan.servers.security.SecurityInfo;
import org.eclipse.leshan.servers.security.SecurityStore;
import org.eclipse.leshan.transport.californium.server.endpoint.CaliforniumServerEndpointsProvider;
import org.eclipse.leshan.transport.californium.server.endpoint.coap.CoapServerProtocolProvider;
import org.eclipse.leshan.transport.californium.server.endpoint.coaps.CoapsServerProtocolProvider;

public final class PeerServer {
    private static final int CONNECTION_ID_BYTES = 6;
    private static final int CONNECTIONS_MAX = 1_000_000;

    private PeerServer() {}

    public static void main(String[] arguments) throws IOException {
        boolean isCheck = arguments[0].equals("--check");
        byte[] key = isCheck ? new byte[16] : HexFormat.of().parseHex(arguments[0]);
        var endpoints =
                new CaliforniumServerEndpointsProvider.Builder(
                        new CoapServerProtocolProvider(), new CoapsServerProtocolProvider());
        endpoints.setConfiguration(
                configuration -> {
                    configuration.set(DtlsConfig.DTLS_CONNECTION_ID_LENGTH, CONNECTION_ID_BYTES);
                    configuration.set(DtlsConfig.DTLS_MAX_CONNECTIONS, CONNECTIONS_MAX);
                });
        for (Protocol protocol : new Protocol[] {Protocol.COAP, Protocol.COAPS}) {
            endpoints.addEndpoint(new InetSocketAddress("127.0.0.1", 0), protocol);
        }
        var builder = new LeshanServerBuilder();
        builder.setEndpointsProviders(endpoints.build());
        builder.setSecurityStore(new OneKey(key));
        // The devices of both ports have the same names.
        builder.setAuthorizer((request, registration, sender, uri) -> Authorization.approved());
        LeshanServer server = builder.build();
        server.start();
        for (Protocol protocol : new Protocol[] {Protocol.COAP, Protocol.COAPS}) {
            System.out.println("listening " + server.getEndpoint(protocol).getURI());
        }
        System.out.println("listening " + ReadApi.serve(server));
        if (isCheck) {
            server.destroy();
            System.exit(0);
        }
    }

    /** Every identity has the same key and is the endpoint's name. */
    private record OneKey(byte[] key) implements SecurityStore {
        @Override
        public SecurityInfo getByEndpoint(String endpoint) {
            return null;
        }

        @Override
        public SecurityInfo getByIdentity(String identity) {
            return SecurityInfo.newPreSharedKeyInfo(identity, identity, key);
        }

        @Override
        public SecurityInfo getByOscoreIdentity(OscoreIdentity identity) {
            return null;
        }
    }
}
