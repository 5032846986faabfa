import java.util.List;
import java.util.Set;
import java.util.stream.Collectors;

import org.eclipse.californium.core.coap.CoAP.Code;
import org.eclipse.californium.core.coap.CoAP.ResponseCode;
import org.eclipse.californium.core.coap.CoAP.Type;
import org.eclipse.californium.core.coap.Message;
import org.eclipse.californium.core.coap.Request;
import org.eclipse.californium.core.coap.Response;
import org.eclipse.californium.core.coap.Token;

/** TD_COAP_OBS: observers are notified of changes for as long as they observe. */
final class Observations {
    private static final int TEXT = 0;
    private static final int XML = 41;
    private static final String PATH = "/obs";

    /** Several times the interval of changes. */
    private static final long SILENCE_MS = 2_000;

    /** How long a sent message may take to be recorded. */
    private static final long SETTLED_MS = 200;

    /** Longer than the server retransmits an unacknowledged notification. */
    private static final long GIVEN_UP_MS = 6_000;

    private Observations() {}

    static void addTo(Plugtest plugtest) {
        plugtest.add("TD_COAP_OBS_01", peer -> observe(peer, PATH, Type.CON));
        plugtest.add("TD_COAP_OBS_02", peer -> observe(peer, "/obs-non", Type.NON));
        plugtest.add("TD_COAP_OBS_04", Observations::theServerForgets);
        plugtest.add("TD_COAP_OBS_05", Observations::theClientIsOff);
        plugtest.add("TD_COAP_OBS_06", Observations::aReset);
        plugtest.add("TD_COAP_OBS_07", Observations::theResourceIsDeleted);
        plugtest.add("TD_COAP_OBS_08", Observations::theFormatChanges);
        plugtest.add("TD_COAP_OBS_09", Observations::theValueIsReplaced);
        plugtest.add("TD_COAP_OBS_10", Observations::aPlainGetBetween);
        plugtest.add("TD_COAP_OBS_12", Observations::anExplicitEnd);
    }

    /** Four notifications in order, each acknowledged if it is confirmable. */
    private static void observe(Peer peer, String path, Type type) throws Exception {
        Token token = begin(peer, path, type);
        int last = -1;
        int id = -1;
        int from = 0;
        for (int count = 0; count < 4; ) {
            Response notification = next(peer, from, token);
            from = peer.received().indexOf(notification) + 1;
            if (notification.getMID() == id) {
                continue;
            }
            id = notification.getMID();
            Expect.same(type, notification.getType(), "type");
            int sequence = notification.getOptions().getObserve();
            Expect.that(sequence > last, "a number above " + last + ", not " + sequence);
            last = sequence;
            count++;
        }
        if (type == Type.CON) {
            long acknowledged = peer.sentEmpty(Type.ACK);
            Expect.that(acknowledged >= 3, "3 acknowledgements, not " + acknowledged);
        }
        end(peer, path, token);
    }

    /** The client detects by Max-Age that notifications have ended, and observes again. */
    private static void theServerForgets(Peer peer) throws Exception {
        Token token = begin(peer, PATH, Type.CON);
        Response notification = next(peer, 0, token);
        Expect.that(notification.getOptions().hasMaxAge(), "a Max-Age in " + notification);
        Request restart = peer.request(Code.POST, Type.CON, "/obs-reset");
        Expect.code(ResponseCode.CHANGED, peer.ask(restart));
        silent(peer, token);
        int from = peer.received().size();
        Request again = peer.request(Code.GET, Type.CON, PATH);
        again.setToken(token);
        again.setObserve();
        Response answer = peer.ask(again);
        Expect.piggybacked(ResponseCode.CONTENT, again, answer);
        Expect.that(answer.getOptions().hasObserve(), "an Observe in " + answer);
        next(peer, from, token);
        end(peer, PATH, token);
    }

    private static void theClientIsOff(Peer peer) throws Exception {
        Token token = begin(peer, PATH, Type.CON);
        next(peer, 0, token);
        peer.setDeaf(true);
        int from = peer.received().size();
        Response lost = next(peer, from, token);
        peer.receiveWithin(GIVEN_UP_MS, from, it -> false);
        long repeated =
                peer.received().stream()
                        .skip(from)
                        .filter(it -> it.getMID() == lost.getMID() && it instanceof Response)
                        .count();
        Expect.that(repeated > 1, "repetitions of " + lost);
        peer.setDeaf(false);
        silent(peer, token);
    }

    /** The client's stack rejects an unknown notification; the server stops. */
    private static void aReset(Peer peer) throws Exception {
        Token token = begin(peer, PATH, Type.CON);
        next(peer, 0, token);
        Expect.that(peer.sentEmpty(Type.ACK) > 0, "an acknowledgement");
        int from = peer.received().size();
        peer.forget(token);
        Response unwanted = next(peer, from, token);
        Expect.that(peer.sentEmpty(Type.RST) > 0, "a reset of " + unwanted);
        silent(peer, token);
    }

    private static void theResourceIsDeleted(Peer peer) throws Exception {
        Token token = begin(peer, PATH, Type.CON);
        next(peer, 0, token);
        Request request = peer.request(Code.DELETE, Type.CON, PATH);
        Expect.piggybacked(ResponseCode.DELETED, request, peer.ask(request));
        ended(peer, token, ResponseCode.NOT_FOUND);
        Expect.code(ResponseCode.CREATED, peer.put(PATH, "anew", TEXT));
        silent(peer, token);
    }

    private static void theFormatChanges(Peer peer) throws Exception {
        Token token = begin(peer, PATH, Type.CON);
        next(peer, 0, token);
        Expect.code(ResponseCode.CHANGED, peer.put(PATH, "<text/>", XML));
        ended(peer, token, ResponseCode.NOT_ACCEPTABLE);
        Expect.code(ResponseCode.CHANGED, peer.put(PATH, "text again", TEXT));
        silent(peer, token);
    }

    private static void theValueIsReplaced(Peer peer) throws Exception {
        Token token = begin(peer, PATH, Type.CON);
        next(peer, 0, token);
        Expect.code(ResponseCode.CHANGED, peer.put(PATH, "New value", TEXT));
        Response notification =
                (Response)
                        peer.receive(
                                0,
                                "a notification of the new value",
                                it ->
                                        isAnswer(it, token)
                                                && "New value".equals(it.getPayloadString()));
        Expect.same(Type.CON, notification.getType(), "type");
        Expect.that(notification.getOptions().hasObserve(), "an Observe in " + notification);
        end(peer, PATH, token);
    }

    private static void aPlainGetBetween(Peer peer) throws Exception {
        Token token = begin(peer, PATH, Type.CON);
        next(peer, 0, token);
        Request request = peer.request(Code.GET, Type.CON, PATH);
        Response answer = peer.ask(request);
        Expect.piggybacked(ResponseCode.CONTENT, request, answer);
        Expect.that(!answer.getOptions().hasObserve(), "no Observe in " + answer);
        next(peer, peer.received().size(), token);
        end(peer, PATH, token);
    }

    private static void anExplicitEnd(Peer peer) throws Exception {
        Token token = begin(peer, PATH, Type.CON);
        next(peer, 0, token);
        end(peer, PATH, token);
        silent(peer, token);
    }

    private static Token begin(Peer peer, String path, Type type) throws Exception {
        Request request = peer.request(Code.GET, type, path);
        request.setObserve();
        Response answer = peer.ask(request);
        if (type == Type.CON) {
            Expect.piggybacked(ResponseCode.CONTENT, request, answer);
        } else {
            Expect.nonConfirmable(ResponseCode.CONTENT, request, answer);
        }
        Expect.that(answer.getOptions().hasObserve(), "an Observe in " + answer);
        Expect.content(answer);
        return request.getToken();
    }

    private static void end(Peer peer, String path, Token token) throws Exception {
        Request request = peer.request(Code.GET, Type.CON, path);
        request.setToken(token);
        request.setObserveCancel();
        Response answer = peer.ask(request);
        Expect.code(ResponseCode.CONTENT, answer);
        Expect.that(!answer.getOptions().hasObserve(), "no Observe in " + answer);
    }

    /** The next notification, in a message of its own. */
    private static Response next(Peer peer, int from, Token token) throws Exception {
        Message received = peer.receive(from, "a notification", it -> isNotification(it, token));
        Response notification = (Response) received;
        Expect.code(ResponseCode.CONTENT, notification);
        Expect.content(notification);
        return notification;
    }

    private static void ended(Peer peer, Token token, ResponseCode code) throws Exception {
        Message received =
                peer.receive(
                        0,
                        "a notification of the end",
                        it -> isAnswer(it, token) && ((Response) it).getCode() == code);
        Expect.same(Type.CON, received.getType(), "type");
        Expect.that(!received.getOptions().hasObserve(), "no Observe in " + received);
    }

    /** No further notification arrives; one in flight may still come. */
    private static void silent(Peer peer, Token token) throws Exception {
        peer.receiveWithin(SETTLED_MS, 0, it -> false);
        List<Message> before = peer.received();
        Set<Integer> ids = before.stream().map(Message::getMID).collect(Collectors.toSet());
        Message received =
                peer.receiveWithin(
                        SILENCE_MS,
                        before.size(),
                        it -> isNotification(it, token) && !ids.contains(it.getMID()));
        Expect.that(received == null, "no notification, not " + received);
    }

    private static boolean isNotification(Message message, Token token) {
        boolean isOwn = message.getType() == Type.CON || message.getType() == Type.NON;
        return isOwn && isAnswer(message, token) && message.getOptions().hasObserve();
    }

    private static boolean isAnswer(Message message, Token token) {
        return message instanceof Response && token.equals(message.getToken());
    }
}
