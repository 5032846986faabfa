import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;

import org.eclipse.californium.elements.AddressEndpointContext;
import org.eclipse.californium.elements.EndpointContext;
import org.eclipse.californium.elements.RawData;
import org.eclipse.californium.elements.config.Configuration;
import org.eclipse.californium.scandium.DTLSConnector;
import org.eclipse.californium.scandium.config.DtlsConfig;
import org.eclipse.californium.scandium.config.DtlsConnectorConfig;
import org.eclipse.californium.scandium.dtls.cipher.CipherSuite;
import org.eclipse.californium.scandium.dtls.pskstore.SinglePskStore;

/**
 * A DTLS client on Scandium: {@code ADDRESS:PORT IDENTITY KEY CONNECTION_ID SUITE}, where
 * {@code CONNECTION_ID} is the length of its own Connection IDs, or -1 for no such extension.
 *
 * <p>Each line on standard input is one command: {@code send TEXT}; {@code resume} begins an
 * abbreviated handshake with the next message. Each line on standard output is a message from the
 * server: {@code received TEXT}.
 */
final class ScandiumClient {
    public static void main(String[] arguments) throws Exception {
        String[] address = arguments[0].split(":");
        InetSocketAddress server = new InetSocketAddress(address[0], Integer.parseInt(address[1]));
        DtlsConfig.register();
        Configuration configuration = new Configuration();
        configuration.set(DtlsConfig.DTLS_ROLE, DtlsConfig.DtlsRole.CLIENT_ONLY);
        configuration.setAsList(DtlsConfig.DTLS_CIPHER_SUITES,
                CipherSuite.valueOf(arguments[4]));
        configuration.set(DtlsConfig.DTLS_CONNECTION_ID_LENGTH, Integer.valueOf(arguments[3]));
        byte[] key = arguments[2].getBytes(StandardCharsets.UTF_8);
        DtlsConnectorConfig config = DtlsConnectorConfig.builder(configuration)
                .setAddress(new InetSocketAddress("127.0.0.1", 0))
                .setPskStore(new SinglePskStore(arguments[1], key)).build();
        DTLSConnector connector = new DTLSConnector(config);
        connector.setRawDataReceiver(data -> System.out.println(
                "received " + new String(data.getBytes(), StandardCharsets.UTF_8)));
        connector.start();
        BufferedReader commands = new BufferedReader(new InputStreamReader(System.in));
        for (String line = commands.readLine(); line != null; line = commands.readLine()) {
            if (line.startsWith("send ")) {
                byte[] text = line.substring(5).getBytes(StandardCharsets.UTF_8);
                EndpointContext context = new AddressEndpointContext(server);
                connector.send(RawData.outbound(text, context, null, false));
            } else {
                connector.forceResumeAllSessions();
            }
        }
        Runtime.getRuntime().halt(0);
    }
}
