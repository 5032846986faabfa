// How fast is another LwM2M server? Eclipse Leshan's own, as its builder makes it, on a free port
// of loopback: registrations in memory, no security. It prints where it listens.

import java.net.InetSocketAddress;
import org.eclipse.leshan.core.endpoint.Protocol;
import org.eclipse.leshan.server.LeshanServer;
import org.eclipse.leshan.server.LeshanServerBuilder;
import org.eclipse.leshan.transport.californium.server.endpoint.CaliforniumServerEndpointsProvider;
import org.eclipse.leshan.transport.californium.server.endpoint.coap.CoapServerProtocolProvider;

public final class PeerServer {
    private PeerServer() {}

    public static void main(String[] arguments) {
        var endpoints =
                new CaliforniumServerEndpointsProvider.Builder(new CoapServerProtocolProvider());
        endpoints.addEndpoint(new InetSocketAddress("127.0.0.1", 0), Protocol.COAP);
        var builder = new LeshanServerBuilder();
        builder.setEndpointsProviders(endpoints.build());
        LeshanServer server = builder.build();
        server.start();
        var place = server.getEndpoint(Protocol.COAP).getURI();
        System.out.println("listening coap=" + place.getHost() + ":" + place.getPort());
        if (arguments.length > 0 && arguments[0].equals("--check")) {
            server.destroy();
            System.exit(0);
        }
    }
}
