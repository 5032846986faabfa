import java.util.List;

import org.eclipse.californium.core.coap.CoAP.Code;
import org.eclipse.californium.core.coap.CoAP.ResponseCode;
import org.eclipse.californium.core.coap.CoAP.Type;
import org.eclipse.californium.core.coap.EmptyMessage;
import org.eclipse.californium.core.coap.Message;
import org.eclipse.californium.core.coap.Request;
import org.eclipse.californium.core.coap.Response;
import org.eclipse.californium.core.coap.Token;

/** TD_COAP_CORE: separate responses. */
final class Separate {
    private Separate() {}

    static void addTo(Plugtest plugtest) {
        plugtest.add("TD_COAP_CORE_09", peer -> confirmable(peer, null));
        plugtest.add(
                "TD_COAP_CORE_11", peer -> confirmable(peer, new Token(new byte[] {1, 2, 3, 4})));
        plugtest.add("TD_COAP_CORE_16", Separate::lossy);
        plugtest.add("TD_COAP_CORE_17", Separate::nonConfirmable);
    }

    private static void confirmable(Peer peer, Token token) throws Exception {
        Request request = peer.request(Code.GET, Type.CON, "/separate");
        if (token != null) {
            request.setToken(token);
        }
        Response answer = peer.ask(request);
        check(request, answer);
        Message first = peer.received().get(0);
        Expect.that(isEmpty(first, Type.ACK), "an empty acknowledgement first, not " + first);
        Expect.same(request.getMID(), first.getMID(), "message id of the acknowledgement");
        Expect.that(acknowledges(peer, answer.getMID()), "our acknowledgement of " + answer);
    }

    /** The acknowledgement and the answer are lost once each. */
    private static void lossy(Peer peer) throws Exception {
        peer.loseNext(message -> isEmpty(message, Type.ACK));
        peer.loseNext(message -> message instanceof Response);
        Request request = peer.request(Code.GET, Type.CON, "/separate");
        Response answer = peer.ask(request);
        check(request, answer);
        List<Message> answers =
                peer.received().stream().filter(it -> it instanceof Response).toList();
        Expect.that(answers.size() >= 2, "a second answer, not only " + answers);
        boolean isSame = answers.stream().allMatch(it -> it.getMID() == answer.getMID());
        Expect.that(isSame, "the repeated answer to be the same message: " + answers);
    }

    private static void nonConfirmable(Peer peer) throws Exception {
        Request request = peer.request(Code.GET, Type.NON, "/separate");
        Response answer = peer.ask(request);
        Expect.nonConfirmable(ResponseCode.CONTENT, request, answer);
        Expect.content(answer);
        Expect.same(1, peer.received().size(), "number of messages");
    }

    private static void check(Request request, Response answer) {
        Expect.code(ResponseCode.CONTENT, answer);
        Expect.same(Type.CON, answer.getType(), "type");
        Expect.same(request.getToken(), answer.getToken(), "token");
        Expect.content(answer);
    }

    private static boolean acknowledges(Peer peer, int id) {
        return peer.sent().stream().anyMatch(it -> isEmpty(it, Type.ACK) && it.getMID() == id);
    }

    private static boolean isEmpty(Message message, Type type) {
        return message instanceof EmptyMessage && message.getType() == type;
    }
}
