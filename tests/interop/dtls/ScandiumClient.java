import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.security.KeyPair;
import java.security.KeyPairGenerator;
import java.security.spec.ECGenParameterSpec;
import java.util.HexFormat;

import org.eclipse.californium.elements.AddressEndpointContext;
import org.eclipse.californium.elements.EndpointContext;
import org.eclipse.californium.elements.RawData;
import org.eclipse.californium.elements.config.Configuration;
import org.eclipse.californium.scandium.DTLSConnector;
import org.eclipse.californium.scandium.config.DtlsConfig;
import org.eclipse.californium.scandium.config.DtlsConnectorConfig;
import org.eclipse.californium.scandium.dtls.cipher.CipherSuite;
import org.eclipse.californium.scandium.dtls.pskstore.SinglePskStore;
import org.eclipse.californium.scandium.dtls.x509.SingleCertificateProvider;
import org.eclipse.californium.scandium.dtls.x509.StaticCertificateVerifier;

/**
 * A DTLS client on Scandium: {@code ADDRESS:PORT IDENTITY KEY CONNECTION_ID SUITE}, where
 * {@code CONNECTION_ID} is the length of its own Connection IDs, or -1 for no such extension.
 * With a suite of ECDSA it has a raw public key of its own, which it prints as {@code key HEX}.
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
        DtlsConnectorConfig.Builder config = DtlsConnectorConfig.builder(configuration)
                .setAddress(new InetSocketAddress("127.0.0.1", 0));
        if (arguments[4].contains("ECDSA")) {
            KeyPairGenerator generator = KeyPairGenerator.getInstance("EC");
            generator.initialize(new ECGenParameterSpec("secp256r1"));
            KeyPair pair = generator.generateKeyPair();
            byte[] publicKey = pair.getPublic().getEncoded();
            System.out.println("key " + HexFormat.of().formatHex(publicKey));
            config.setCertificateIdentityProvider(
                    new SingleCertificateProvider(pair.getPrivate(), pair.getPublic()));
            config.setCertificateVerifier(
                    StaticCertificateVerifier.builder().setTrustAllRPKs().build());
        } else {
            byte[] key = arguments[2].getBytes(StandardCharsets.UTF_8);
            config.setPskStore(new SinglePskStore(arguments[1], key));
        }
        DTLSConnector connector = new DTLSConnector(config.build());
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
