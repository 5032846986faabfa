import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.function.Consumer;

import de.rub.nds.modifiablevariable.util.Modifiable;
import de.rub.nds.tlsattacker.core.config.Config;
import de.rub.nds.tlsattacker.core.connection.OutboundConnection;
import de.rub.nds.tlsattacker.core.constants.AlertDescription;
import de.rub.nds.tlsattacker.core.constants.CipherSuite;
import de.rub.nds.tlsattacker.core.constants.HandshakeMessageType;
import de.rub.nds.tlsattacker.core.constants.ProtocolVersion;
import de.rub.nds.tlsattacker.core.dtls.DtlsHandshakeMessageFragment;
import de.rub.nds.tlsattacker.core.layer.constant.StackConfiguration;
import de.rub.nds.tlsattacker.core.protocol.ProtocolMessage;
import de.rub.nds.tlsattacker.core.protocol.message.ApplicationMessage;
import de.rub.nds.tlsattacker.core.protocol.message.ChangeCipherSpecMessage;
import de.rub.nds.tlsattacker.core.protocol.message.ClientHelloMessage;
import de.rub.nds.tlsattacker.core.protocol.message.FinishedMessage;
import de.rub.nds.tlsattacker.core.protocol.message.HelloVerifyRequestMessage;
import de.rub.nds.tlsattacker.core.protocol.message.PskClientKeyExchangeMessage;
import de.rub.nds.tlsattacker.core.protocol.message.ServerHelloDoneMessage;
import de.rub.nds.tlsattacker.core.protocol.message.ServerHelloMessage;
import de.rub.nds.tlsattacker.core.record.Record;
import de.rub.nds.tlsattacker.core.state.State;
import de.rub.nds.tlsattacker.core.workflow.DTLSWorkflowExecutor;
import de.rub.nds.tlsattacker.core.workflow.WorkflowTrace;
import de.rub.nds.tlsattacker.core.workflow.action.ReceiveAction;
import de.rub.nds.tlsattacker.core.workflow.action.SendAction;
import de.rub.nds.tlsattacker.core.workflow.factory.WorkflowTraceType;
import de.rub.nds.tlsattacker.transport.TransportHandlerType;

/** A DTLS client at a port of its own, which sends whatever an attack wants sent. */
final class Peer implements AutoCloseable {
    static final byte[] PING = { 0x40, 0x00, 0x12, 0x34 };
    private static final byte[] RESET = { 0x70, 0x00, 0x12, 0x34 };
    private static final String ALIAS = "client";
    private static final int TIMEOUT_MS = 20_000;
    private static final int PING_TIMEOUT_MS = 2_000;
    private static final int PINGS_MAX = 10;
    private static final int RECORD_HEADER = 13;
    /** The record number of the hello after an attack; its HelloVerifyRequest has the same. */
    private static final byte[] LAST_NUMBER = { 0, 0, 0x7f, 0, 0, 0x7f };

    private final State state;
    private byte[] hello;

    /** Who a handshake is with, and the key. */
    record Target(String host, int port, byte[] identity, byte[] key) {
    }

    Peer(Target target, CipherSuite suite, Consumer<Config> change) throws IOException {
        Config config = new Config();
        config.setHighestProtocolVersion(ProtocolVersion.DTLS12);
        config.setSupportedVersions(ProtocolVersion.DTLS12);
        config.setDefaultSelectedProtocolVersion(ProtocolVersion.DTLS12);
        config.setDefaultLayerConfiguration(StackConfiguration.DTLS);
        config.setWorkflowTraceType(WorkflowTraceType.HELLO);
        config.setDefaultClientSupportedCipherSuites(suite);
        config.setDefaultSelectedCipherSuite(suite);
        config.setDefaultPSKIdentity(target.identity());
        config.setDefaultPSKKey(target.key());
        config.setAddExtendedMasterSecretExtension(true);
        config.setAddEncryptThenMacExtension(true);
        config.setAddRenegotiationInfoExtension(true);
        config.setAddECPointFormatExtension(false);
        config.setAddEllipticCurveExtension(false);
        config.setAddSignatureAndHashAlgorithmsExtension(false);
        config.setStopActionsAfterFatal(false);
        config.setCreateFragmentsDynamically(false);
        config.setIndividualTransportPacketsForFragments(true);
        OutboundConnection connection = config.getDefaultClientConnection();
        connection.setAlias(ALIAS);
        connection.setHostname(target.host());
        connection.setIp(target.host());
        connection.setPort(target.port());
        connection.setTransportHandlerType(TransportHandlerType.UDP);
        connection.setTimeout(TIMEOUT_MS);
        change.accept(config);
        state = new State(config, new WorkflowTrace(List.of(connection)));
        new DTLSWorkflowExecutor(state).initAllLayer();
    }

    /** Gets a cookie and begins a handshake, up to the flight of the server. */
    void begin() {
        getCookie();
        send(new ClientHelloMessage(config()));
        receive(new ServerHelloMessage(), new ServerHelloDoneMessage());
    }

    void getCookie() {
        hello = bytesOf(send(new ClientHelloMessage(config())));
        receive(new HelloVerifyRequestMessage());
    }

    /** A whole handshake. */
    void connect() {
        begin();
        send(keyExchange());
        finish();
    }

    void finish() {
        send(new ChangeCipherSpecMessage());
        send(new FinishedMessage());
        receive(new ChangeCipherSpecMessage(), new FinishedMessage());
    }

    /** Whether a CoAP ping in the session is answered. */
    boolean isServed() {
        return answeredPing() != null;
    }

    /**
     * The record of a CoAP ping that was answered with a Reset (RFC 7252 section 4.3), or null. As
     * any CoAP message, a ping may be lost: it is repeated.
     */
    byte[] answeredPing() {
        for (int ping = 0; ping < PINGS_MAX; ping++) {
            byte[] record = bytesOf(send(ping()));
            state.getContext(ALIAS).getTransportHandler().setTimeout(PING_TIMEOUT_MS);
            ReceiveAction received = new ReceiveAction(ALIAS, new ApplicationMessage());
            received.execute(state);
            state.getContext(ALIAS).getTransportHandler().setTimeout(TIMEOUT_MS);
            List<ProtocolMessage> messages = received.getReceivedMessages();
            if (messages.size() == 1 && messages.get(0) instanceof ApplicationMessage answer
                    && Arrays.equals(answer.getData().getValue(), RESET)) {
                return record;
            }
        }
        return null;
    }

    PskClientKeyExchangeMessage keyExchange() {
        return new PskClientKeyExchangeMessage();
    }

    static ApplicationMessage ping() {
        ApplicationMessage message = new ApplicationMessage();
        message.setDataConfig(PING);
        return message;
    }

    Config config() {
        return state.getConfig();
    }

    SendAction send(ProtocolMessage... messages) {
        return perform(new SendAction(ALIAS, messages));
    }

    /** Sends a message in a record that is prepared in part. */
    SendAction sendIn(Record record, ProtocolMessage message) {
        SendAction action = new SendAction(ALIAS, message);
        action.setConfiguredRecords(List.of(record));
        return perform(action);
    }

    /** A part of the key exchange, whose body is the identity behind its length. */
    DtlsHandshakeMessageFragment part(int offset, int length) {
        byte[] identity = config().getDefaultPSKIdentity();
        byte[] body = ByteBuffer.allocate(2 + identity.length).putShort((short) identity.length)
                .put(identity).array();
        DtlsHandshakeMessageFragment part = new DtlsHandshakeMessageFragment(1);
        part.setFragmentOffset(Modifiable.explicit(offset));
        part.setFragmentLength(Modifiable.explicit(length));
        part.setFragmentContent(
                Modifiable.explicit(Arrays.copyOfRange(body, offset, offset + length)));
        part.setLength(Modifiable.explicit(body.length));
        return part;
    }

    /** Sends the key exchange in these parts alone, each in a datagram of its own. */
    void sendParts(DtlsHandshakeMessageFragment... parts) {
        SendAction action = new SendAction(ALIAS, keyExchange());
        action.setConfiguredDtlsHandshakeMessageFragments(new ArrayList<>(List.of(parts)));
        perform(action);
    }

    void sendBytes(byte[] datagram) throws IOException {
        state.getContext(ALIAS).getTransportHandler().sendData(datagram);
    }

    ReceiveAction receive(ProtocolMessage... messages) {
        ReceiveAction action = new ReceiveAction(ALIAS, messages);
        action.execute(state);
        if (!action.executedAsPlanned()) {
            throw new IllegalStateException("expected " + Arrays.toString(messages) + ", received "
                    + action.getReceivedMessages());
        }
        return action;
    }

    /**
     * What the server has answered since the last message received: a ClientHello without a cookie
     * is always answered, and after everything before it.
     */
    String answers() throws IOException {
        List<String> answers = new ArrayList<>();
        byte[] last = hello.clone();
        System.arraycopy(LAST_NUMBER, 0, last, 5, LAST_NUMBER.length);
        sendBytes(last);
        byte[] datagram = nextDatagram();
        while (!Arrays.equals(datagram, 5, 11, LAST_NUMBER, 0, LAST_NUMBER.length)) {
            addNames(ByteBuffer.wrap(datagram), answers);
            datagram = nextDatagram();
        }
        return answers.isEmpty() ? "nothing" : String.join(",", answers);
    }

    /** What the server answers first: it does so once it has looked up the key. */
    String awaitedAnswer() throws IOException {
        List<String> answer = new ArrayList<>();
        addNames(ByteBuffer.wrap(nextDatagram()), answer);
        return String.join(",", answer);
    }

    private byte[] nextDatagram() throws IOException {
        return state.getContext(ALIAS).getTransportHandler().fetchData();
    }

    private static void addNames(ByteBuffer records, List<String> names) {
        while (records.hasRemaining()) {
            names.add(nameOf(records));
        }
    }

    void setWriteEpoch(int epoch) {
        state.getContext(ALIAS).getTlsContext().getRecordLayer().setWriteEpoch(epoch);
    }

    static byte[] bytesOf(SendAction action) {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        for (Record record : action.getSentRecords()) {
            bytes.writeBytes(record.getCompleteRecordBytes().getValue());
        }
        return bytes.toByteArray();
    }

    private SendAction perform(SendAction action) {
        action.execute(state);
        return action;
    }

    private static String nameOf(ByteBuffer records) {
        byte[] header = new byte[RECORD_HEADER];
        records.get(header);
        byte[] content = new byte[Short.toUnsignedInt(ByteBuffer.wrap(header, 11, 2).getShort())];
        records.get(content);
        boolean isProtected = header[3] != 0 || header[4] != 0;
        String name = switch (header[0]) {
            case 20 -> "change_cipher_spec";
            case 21 -> isProtected ? "alert"
                    : "alert " + AlertDescription.getAlertDescription(content[1]).name();
            case 22 -> isProtected ? "handshake"
                    : HandshakeMessageType.getMessageType(content[0]).name();
            case 23 -> "application_data";
            default -> "record " + header[0];
        };
        return (isProtected ? "protected " : "") + name.toLowerCase(Locale.ROOT);
    }

    static Target target(String[] arguments) {
        String[] address = arguments[0].split(":");
        return new Target(address[0], Integer.parseInt(address[1]),
                arguments[1].getBytes(StandardCharsets.UTF_8),
                arguments[2].getBytes(StandardCharsets.UTF_8));
    }

    @Override
    public void close() throws IOException {
        state.getContext(ALIAS).getTransportHandler().closeConnection();
    }
}
