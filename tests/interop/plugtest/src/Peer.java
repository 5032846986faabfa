import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.function.Predicate;

import org.eclipse.californium.core.coap.CoAP.Code;
import org.eclipse.californium.core.coap.CoAP.Type;
import org.eclipse.californium.core.coap.EmptyMessage;
import org.eclipse.californium.core.coap.Message;
import org.eclipse.californium.core.coap.Request;
import org.eclipse.californium.core.coap.Response;
import org.eclipse.californium.core.coap.Token;
import org.eclipse.californium.core.config.CoapConfig;
import org.eclipse.californium.core.network.CoapEndpoint;
import org.eclipse.californium.core.network.interceptors.MessageInterceptor;
import org.eclipse.californium.elements.config.Configuration;
import org.eclipse.californium.elements.config.UdpConfig;

/** Californium's client, with a record of each message sent and received. */
final class Peer implements AutoCloseable, MessageInterceptor {
    /** Long enough for a loaded machine; a check that passes never waits this long. */
    private static final long PATIENCE_MS = 20_000;

    private static final int BLOCK_BYTES = 64;

    private final String server;
    private final CoapEndpoint endpoint;
    private final List<Message> sent = new ArrayList<>();
    private final List<Message> received = new ArrayList<>();
    private final List<String> lines = new ArrayList<>();
    private final List<Predicate<Message>> losses = new ArrayList<>();
    private final BlockingQueue<Response> notified = new LinkedBlockingQueue<>();
    private boolean isDeaf;

    Peer(String server) throws IOException {
        CoapConfig.register();
        UdpConfig.register();
        Configuration rules = Configuration.createStandardWithoutFile();
        rules.set(CoapConfig.ACK_TIMEOUT, 400, TimeUnit.MILLISECONDS);
        rules.set(CoapConfig.MAX_MESSAGE_SIZE, BLOCK_BYTES);
        rules.set(CoapConfig.PREFERRED_BLOCK_SIZE, BLOCK_BYTES);
        this.server = server;
        endpoint =
                CoapEndpoint.builder()
                        .setConfiguration(rules)
                        .setInetSocketAddress(
                                new InetSocketAddress(InetAddress.getLoopbackAddress(), 0))
                        .build();
        endpoint.addInterceptor(this);
        endpoint.addNotificationListener((request, answer) -> notified.add(answer));
        endpoint.start();
    }

    Request request(Code code, Type type, String path) {
        return new Request(code, type).setURI(server + path);
    }

    /** Sends a request and returns the answer. */
    Response ask(Request request) throws InterruptedException {
        request.send(endpoint);
        Response answer = request.waitForResponse(PATIENCE_MS);
        Expect.that(answer != null, "an answer to " + request);
        return answer;
    }

    Response get(String path) throws InterruptedException {
        return ask(request(Code.GET, Type.CON, path));
    }

    Response put(String path, String text, int format) throws InterruptedException {
        Request request = request(Code.PUT, Type.CON, path);
        request.setPayload(text).getOptions().setContentFormat(format);
        return ask(request);
    }

    /** Whether the server answers a ping with a Reset. */
    boolean pings() throws InterruptedException {
        Request ping = Request.newPing();
        ping.setToken(Token.EMPTY);
        ping.setURI(server);
        ping.send(endpoint);
        ping.waitForResponse(PATIENCE_MS);
        return ping.isRejected();
    }

    /** Has Californium forget an observation: it rejects further notifications. */
    void forget(Token token) {
        endpoint.cancelObservation(token);
    }

    /** Loses the next received message that matches. */
    synchronized void loseNext(Predicate<Message> one) {
        losses.add(one);
    }

    /** Ignores all messages from now on, or no longer. */
    synchronized void setDeaf(boolean isDeaf) {
        this.isDeaf = isDeaf;
    }

    synchronized List<Message> sent() {
        return List.copyOf(sent);
    }

    synchronized List<Message> received() {
        return List.copyOf(received);
    }

    /** Each message once, however often it was retransmitted. */
    List<Message> receivedOnce() {
        Set<Integer> ids = new HashSet<>();
        return received().stream().filter(it -> ids.add(it.getMID())).toList();
    }

    synchronized List<String> lines() {
        return List.copyOf(lines);
    }

    /** The next notification of an observation, with its whole state. */
    Response notified(Token token) throws InterruptedException {
        long deadline = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(PATIENCE_MS);
        while (true) {
            long left = deadline - System.nanoTime();
            Response next = notified.poll(left, TimeUnit.NANOSECONDS);
            Expect.that(next != null, "a notification");
            if (token.equals(next.getToken()) && next.getType() != Type.ACK) {
                return next;
            }
        }
    }

    /** How many Empty messages of a type were sent; waits for the first one. */
    synchronized long sentEmpty(Type type) throws InterruptedException {
        long deadline = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(PATIENCE_MS);
        while (true) {
            long count =
                    sent.stream()
                            .filter(it -> it instanceof EmptyMessage && it.getType() == type)
                            .count();
            long left = TimeUnit.NANOSECONDS.toMillis(deadline - System.nanoTime());
            if (count > 0 || left <= 0) {
                return count;
            }
            wait(left);
        }
    }

    /** The first matching message from a place on; waits until it arrives. */
    Message receive(int from, String what, Predicate<Message> one) throws InterruptedException {
        Message found = receiveWithin(PATIENCE_MS, from, one);
        Expect.that(found != null, what);
        return found;
    }

    /** Waits for a matching message; returns null if none arrives. */
    synchronized Message receiveWithin(long millis, int from, Predicate<Message> one)
            throws InterruptedException {
        long deadline = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(millis);
        while (true) {
            for (int place = from; place < received.size(); place++) {
                if (one.test(received.get(place))) {
                    return received.get(place);
                }
            }
            long left = TimeUnit.NANOSECONDS.toMillis(deadline - System.nanoTime());
            if (left <= 0) {
                return null;
            }
            wait(left);
        }
    }

    @Override
    public void close() {
        endpoint.destroy();
    }

    @Override
    public void sendRequest(Request request) {
        left(request);
    }

    @Override
    public void sendResponse(Response response) {
        left(response);
    }

    @Override
    public void sendEmptyMessage(EmptyMessage message) {
        left(message);
    }

    @Override
    public void receiveRequest(Request request) {
        came(request);
    }

    @Override
    public void receiveResponse(Response response) {
        came(response);
    }

    @Override
    public void receiveEmptyMessage(EmptyMessage message) {
        came(message);
    }

    private synchronized void left(Message message) {
        sent.add(message);
        lines.add("> " + message);
        notifyAll();
    }

    private synchronized void came(Message message) {
        if (isDeaf || losses.removeIf(loss -> loss.test(message))) {
            message.setCanceled(true);
        }
        received.add(message);
        lines.add((message.isCanceled() ? "lost < " : "< ") + message);
        notifyAll();
    }
}
