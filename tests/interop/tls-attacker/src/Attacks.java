import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.security.Security;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Consumer;

import de.rub.nds.modifiablevariable.util.Modifiable;
import de.rub.nds.tlsattacker.core.config.Config;
import de.rub.nds.tlsattacker.core.constants.AlertDescription;
import de.rub.nds.tlsattacker.core.constants.CipherSuite;
import de.rub.nds.tlsattacker.core.constants.ProtocolVersion;
import de.rub.nds.tlsattacker.core.dtls.DtlsHandshakeMessageFragment;
import de.rub.nds.tlsattacker.core.protocol.message.AlertMessage;
import de.rub.nds.tlsattacker.core.protocol.message.CertificateMessage;
import de.rub.nds.tlsattacker.core.protocol.message.ChangeCipherSpecMessage;
import de.rub.nds.tlsattacker.core.protocol.message.ClientHelloMessage;
import de.rub.nds.tlsattacker.core.protocol.message.FinishedMessage;
import de.rub.nds.tlsattacker.core.protocol.message.HelloVerifyRequestMessage;
import de.rub.nds.tlsattacker.core.protocol.message.ServerHelloDoneMessage;
import de.rub.nds.tlsattacker.core.protocol.message.ServerHelloMessage;
import de.rub.nds.tlsattacker.core.record.Record;
import de.rub.nds.tlsattacker.core.record.RecordCryptoComputations;
import de.rub.nds.tlsattacker.core.workflow.action.ReceiveAction;
import org.apache.logging.log4j.Level;
import org.apache.logging.log4j.core.config.Configurator;
import org.bouncycastle.jce.provider.BouncyCastleProvider;

/**
 * Attacks on a DTLS server with TLS-Attacker: {@code ADDRESS:PORT IDENTITY KEY}. Each line on
 * standard input names an attack; what the server answers is printed as {@code answered ANSWERS},
 * and {@code served} once another client has found a session after it.
 */
final class Attacks {
    private static final CipherSuite CCM_8 = CipherSuite.TLS_PSK_WITH_AES_128_CCM_8;
    private static final CipherSuite CBC = CipherSuite.TLS_PSK_WITH_AES_128_CBC_SHA256;
    private static final Consumer<Config> UNCHANGED = config -> {
    };
    private static final Consumer<Config> WITHOUT_ENCRYPT_THEN_MAC = config -> config
            .setAddEncryptThenMacExtension(false);

    private final Peer.Target target;
    private final Map<String, Attack> attacks = new LinkedHashMap<>();

    /** Returns what the server answers. */
    @FunctionalInterface
    private interface Attack {
        String run() throws IOException;
    }

    /** What an attack does in a conversation. */
    @FunctionalInterface
    private interface Step {
        void act(Peer peer) throws IOException;
    }

    private Attacks(Peer.Target target) {
        this.target = target;
        addCookies();
        addOrders();
        addFragments();
        addReplays();
        addForgeries();
        addDowngrades();
    }

    public static void main(String[] arguments) throws IOException {
        Configurator.setAllLevels("", Level.OFF);
        Security.addProvider(new BouncyCastleProvider());
        if (arguments[0].equals("--check")) {
            return;
        }
        Attacks attacks = new Attacks(Peer.target(arguments));
        BufferedReader names = new BufferedReader(
                new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String name = names.readLine(); name != null; name = names.readLine()) {
            System.out.println("answered " + attacks.attacks.get(name).run());
            try (Peer other = attacks.peer(CCM_8, UNCHANGED)) {
                other.connect();
                System.out.println(other.isServed() ? "served" : "not served");
            }
        }
    }

    private Peer peer(CipherSuite suite, Consumer<Config> change) throws IOException {
        return new Peer(target, suite, change);
    }

    private void add(String name, CipherSuite suite, Consumer<Config> change, Step... steps) {
        attacks.put(name, () -> {
            try (Peer peer = peer(suite, change)) {
                for (Step step : steps) {
                    step.act(peer);
                }
                return peer.answers();
            }
        });
    }

    private void add(String name, Step... steps) {
        add(name, CCM_8, UNCHANGED, steps);
    }

    /** An attack on the Finished of a handshake. */
    private void addFinished(String name, CipherSuite suite, Consumer<Config> change,
            Step attack) {
        attacks.put(name, () -> {
            try (Peer peer = peer(suite, change)) {
                peer.begin();
                peer.send(peer.keyExchange());
                peer.send(new ChangeCipherSpecMessage());
                attack.act(peer);
                return peer.awaitedAnswer();
            }
        });
    }

    private void addCookies() {
        add("no cookie, twice", Peer::getCookie, peer -> {
            ClientHelloMessage hello = new ClientHelloMessage(peer.config());
            hello.setCookie(Modifiable.explicit(new byte[0]));
            peer.send(hello);
        });
        add("a changed cookie", Peer::getCookie, peer -> {
            ClientHelloMessage hello = new ClientHelloMessage(peer.config());
            hello.setCookie(Modifiable.xor(new byte[] { 1 }, 0));
            peer.send(hello);
        });
        add("a cookie cut short", Peer::getCookie, peer -> {
            ClientHelloMessage hello = new ClientHelloMessage(peer.config());
            hello.setCookie(Modifiable.delete(4, 8));
            peer.send(hello);
        });
        add("the cookie of another address", Peer::getCookie, peer -> {
            try (Peer other = peer(CCM_8, UNCHANGED)) {
                other.getCookie();
                byte[] hello = Peer.bytesOf(
                        other.send(new ClientHelloMessage(other.config())));
                other.receive(new ServerHelloMessage(), new ServerHelloDoneMessage());
                peer.sendBytes(hello);
            }
        });
        add("another hello with the cookie", Peer::getCookie, peer -> {
            ClientHelloMessage hello = new ClientHelloMessage(peer.config());
            hello.setRandom(Modifiable.xor(new byte[] { 1 }, 5));
            peer.send(hello);
        });
    }

    private void addOrders() {
        add("a Finished first", Peer::begin, peer -> peer.send(new FinishedMessage()));
        add("application data first", Peer::begin, peer -> peer.send(Peer.ping()));
        add("a Certificate that nobody asked for", Peer::begin,
                peer -> peer.send(new CertificateMessage()));
        add("two ClientKeyExchange", Peer::begin, peer -> peer.send(peer.keyExchange()),
                peer -> peer.send(peer.keyExchange()));
        add("a second ClientHello", Peer::begin,
                peer -> peer.send(new ClientHelloMessage(peer.config())));
        // CVE-2014-0224: whoever derives keys at this moment has them from nothing.
        add("a ChangeCipherSpec before the key exchange", Peer::begin,
                peer -> peer.send(new ChangeCipherSpecMessage()),
                peer -> peer.send(new FinishedMessage()));
        add("a key exchange after the ChangeCipherSpec", Peer::begin, peer -> {
            peer.sendBytes(new byte[] { 20, (byte) 0xfe, (byte) 0xfd, 0, 0, 0, 0, 0, 0, 0, 2, 0,
                1, 1 });
            peer.send(peer.keyExchange());
            peer.finish();
        });
        add("protected application data before the Finished", Peer::begin,
                peer -> peer.send(peer.keyExchange()),
                peer -> peer.send(new ChangeCipherSpecMessage()), peer -> peer.send(Peer.ping()),
                peer -> peer.send(new FinishedMessage()),
                peer -> peer.receive(new ChangeCipherSpecMessage(), new FinishedMessage()));
        add("protected application data before a wrong Finished", Peer::begin,
                peer -> peer.send(peer.keyExchange()),
                peer -> peer.send(new ChangeCipherSpecMessage()), peer -> peer.send(Peer.ping()),
                peer -> peer.send(wrongFinished()));
        add("a Finished in the clear", Peer::begin, peer -> peer.send(peer.keyExchange()),
                peer -> peer.send(new FinishedMessage()));
        addFinished("a wrong Finished", CCM_8, UNCHANGED, peer -> peer.send(wrongFinished()));
    }

    private static FinishedMessage wrongFinished() {
        FinishedMessage finished = new FinishedMessage();
        finished.setVerifyData(Modifiable.xor(new byte[] { 1 }, 0));
        return finished;
    }

    private void addFragments() {
        // The body has the ten bytes of an identity of eight.
        add("fragments that overlap", Peer::begin,
                peer -> peer.sendParts(peer.part(0, 6), peer.part(4, 6)), Peer::finish);
        add("fragments that contradict each other", Peer::begin, peer -> {
            DtlsHandshakeMessageFragment other = peer.part(2, 4);
            other.setFragmentContent(Modifiable.explicit(new byte[] { 1, 1, 1, 1 }));
            peer.sendParts(peer.part(0, 6), other, peer.part(6, 4));
        }, Peer::finish);
        add("fragments with a gap", Peer::begin,
                peer -> peer.sendParts(peer.part(0, 3), peer.part(5, 5)));
        add("an empty fragment before the message", Peer::begin,
                peer -> peer.sendParts(peer.part(0, 0), peer.part(0, 10)), Peer::finish);
        add("empty fragments alone", Peer::begin,
                peer -> peer.sendParts(peer.part(0, 0), peer.part(0, 0), peer.part(0, 0)));
        add("a fragment beyond the message", Peer::begin, peer -> {
            DtlsHandshakeMessageFragment beyond = peer.part(0, 10);
            beyond.setFragmentOffset(Modifiable.explicit(0xff_fffe));
            peer.sendParts(beyond);
        });
        add("a fragment longer than its record", Peer::begin, peer -> {
            DtlsHandshakeMessageFragment longer = peer.part(0, 10);
            longer.setFragmentLength(Modifiable.explicit(11));
            peer.sendParts(longer);
        });
        add("a message of 16 MB", Peer::begin, peer -> {
            DtlsHandshakeMessageFragment first = peer.part(0, 10);
            first.setLength(Modifiable.explicit(0xff_ffff));
            peer.sendParts(first);
        });
        add("a message whose length changes", Peer::begin, peer -> {
            DtlsHandshakeMessageFragment last = peer.part(5, 5);
            last.setLength(Modifiable.explicit(11));
            peer.sendParts(peer.part(0, 5), last);
        });
    }

    private void addReplays() {
        add("a Finished again", Peer::begin, peer -> peer.send(peer.keyExchange()), peer -> {
            peer.send(new ChangeCipherSpecMessage());
            byte[] finished = Peer.bytesOf(peer.send(new FinishedMessage()));
            peer.receive(new ChangeCipherSpecMessage(), new FinishedMessage());
            peer.sendBytes(finished);
        });
        add("application data again", Peer::connect, peer -> {
            byte[] ping = peer.answeredPing();
            peer.sendBytes(ping);
            peer.sendBytes(ping);
        });
        add("application data of another session", Peer::connect, peer -> {
            try (Peer other = peer(CCM_8, UNCHANGED)) {
                other.connect();
                peer.sendBytes(other.answeredPing());
            }
        });
        add("application data from another address", Peer::connect, peer -> {
            try (Peer other = peer(CCM_8, UNCHANGED)) {
                other.sendBytes(peer.answeredPing());
            }
        });
        add("a renegotiation", peer -> {
            peer.connect();
            peer.send(new ClientHelloMessage(peer.config()));
            ReceiveAction received = peer.receive(new AlertMessage());
            AlertMessage alert = (AlertMessage) received.getReceivedMessages().get(0);
            expect(AlertDescription.NO_RENEGOTIATION,
                    AlertDescription.getAlertDescription(alert.getDescription().getValue()));
        }, peer -> expect(true, peer.isServed()));
        add("a ClientHello in the clear", Peer::connect, peer -> {
            peer.setWriteEpoch(0);
            peer.send(new ClientHelloMessage(peer.config()));
            peer.receive(new HelloVerifyRequestMessage());
            peer.setWriteEpoch(1);
            expect(true, peer.isServed());
        });
    }

    /** Each is authentic in one respect alone, in the session and at the Finished. */
    private void addForgeries() {
        Map<String, Forgery> ofCbc = Map.of(
                "MAC", computed(it -> it.setMac(Modifiable.xor(new byte[] { 1 }, 0))),
                "last byte of the MAC", computed(
                        it -> it.setMac(Modifiable.xor(new byte[] { 1 }, 31))),
                // The MAC is right: only the holder of the key can send it.
                "padding", computed(it -> it.setPadding(Modifiable.xor(new byte[] { 1 }, 0))),
                "length of the padding", computed(
                        it -> it.setPadding(Modifiable.xor(new byte[] { 0x70 }, -1))),
                "ciphertext", record -> record.setProtocolMessageBytes(
                        Modifiable.xor(new byte[] { 1 }, 17)),
                "initialization vector", record -> record.setProtocolMessageBytes(
                        Modifiable.xor(new byte[] { 1 }, 0)),
                "end", record -> record.setProtocolMessageBytes(Modifiable.delete(40, 20)),
                "everything", record -> record.setProtocolMessageBytes(
                        Modifiable.explicit(new byte[0])));
        ofCbc.forEach((what, forgery) -> {
            addForgery("CBC", CBC, UNCHANGED, what, forgery);
            addForgery("bare CBC", CBC, WITHOUT_ENCRYPT_THEN_MAC, what, forgery);
        });
        byte[] padding = new byte[80];
        Arrays.fill(padding, (byte) (padding.length - 1));
        addForgery("bare CBC", CBC, WITHOUT_ENCRYPT_THEN_MAC, "everything but padding",
                computed(it -> it.setPlainRecordBytes(Modifiable.explicit(padding))));
        addForgery("bare CBC", CBC, WITHOUT_ENCRYPT_THEN_MAC, "plaintext of zeros",
                computed(it -> it.setPlainRecordBytes(Modifiable.explicit(new byte[80]))));
        Map<String, Forgery> ofCcm = Map.of(
                "tag", computed(it -> it.setAuthenticationTag(Modifiable.xor(new byte[] { 1 }, 0))),
                "nonce", record -> record.setProtocolMessageBytes(
                        Modifiable.xor(new byte[] { 1 }, 7)),
                "ciphertext", record -> record.setProtocolMessageBytes(
                        Modifiable.xor(new byte[] { 1 }, 8)),
                "everything", record -> record.setProtocolMessageBytes(
                        Modifiable.explicit(new byte[0])));
        ofCcm.forEach(
                (what, forgery) -> addForgery("CCM_8", CCM_8, UNCHANGED, what, forgery));
    }

    @FunctionalInterface
    private interface Forgery {
        void change(Record record);
    }

    private void addForgery(String suiteName, CipherSuite suite, Consumer<Config> change,
            String what, Forgery forgery) {
        add(suiteName + " data with another " + what, suite, change, Peer::connect, peer -> {
            peer.sendIn(forged(forgery), Peer.ping());
            expect("nothing", peer.answers());
            expect(true, peer.isServed());
        });
        addFinished(suiteName + " Finished with another " + what, suite, change,
                peer -> peer.sendIn(forged(forgery), new FinishedMessage()));
    }

    private static Record forged(Forgery forgery) {
        Record record = new Record();
        forgery.change(record);
        return record;
    }

    private static Forgery computed(Consumer<RecordCryptoComputations> change) {
        return record -> {
            RecordCryptoComputations computations = new RecordCryptoComputations();
            change.accept(computations);
            record.setComputations(computations);
        };
    }

    private void addDowngrades() {
        add("DTLS 1.0", CCM_8, config -> {
            config.setHighestProtocolVersion(ProtocolVersion.DTLS10);
            config.setDefaultSelectedProtocolVersion(ProtocolVersion.DTLS10);
        }, Peer::getCookie, peer -> peer.send(new ClientHelloMessage(peer.config())));
        add("no extended master secret", CCM_8,
                config -> config.setAddExtendedMasterSecretExtension(false), Peer::connect,
                peer -> expect(true, peer.isServed()));
        add("CBC without encrypt-then-MAC", CBC, WITHOUT_ENCRYPT_THEN_MAC, Peer::getCookie,
                peer -> peer.send(new ClientHelloMessage(peer.config())));
        add("no renegotiation indication", CCM_8,
                config -> config.setAddRenegotiationInfoExtension(false), Peer::getCookie,
                peer -> peer.send(new ClientHelloMessage(peer.config())));
        for (CipherSuite suite : List.of(CipherSuite.TLS_PSK_WITH_NULL_SHA256,
                CipherSuite.TLS_PSK_WITH_RC4_128_SHA, CipherSuite.TLS_PSK_WITH_AES_128_CBC_SHA,
                CipherSuite.TLS_RSA_WITH_AES_128_CBC_SHA)) {
            add(suite.name(), suite, UNCHANGED, Peer::getCookie,
                    peer -> peer.send(new ClientHelloMessage(peer.config())));
        }
    }

    private static void expect(Object expected, Object found) {
        if (!expected.equals(found)) {
            throw new IllegalStateException("expected " + expected + ", found " + found);
        }
    }
}
