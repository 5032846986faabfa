import java.util.Objects;

import org.eclipse.californium.core.coap.CoAP.ResponseCode;
import org.eclipse.californium.core.coap.CoAP.Type;
import org.eclipse.californium.core.coap.Message;
import org.eclipse.californium.core.coap.Response;

/** Assertions about messages. */
final class Expect {
    private Expect() {}

    static void that(boolean holds, String what) {
        if (!holds) {
            throw new AssertionError("expected " + what);
        }
    }

    static void same(Object expected, Object actual, String what) {
        that(Objects.equals(expected, actual), what + " " + expected + ", not " + actual);
    }

    static void code(ResponseCode expected, Response answer) {
        same(expected, answer.getCode(), "code");
    }

    /** An answer in the acknowledgement of its request. */
    static void piggybacked(ResponseCode code, Message request, Response answer) {
        code(code, answer);
        same(Type.ACK, answer.getType(), "type");
        same(request.getMID(), answer.getMID(), "message id");
        same(request.getToken(), answer.getToken(), "token");
    }

    /** A separate non-confirmable answer. */
    static void nonConfirmable(ResponseCode code, Message request, Response answer) {
        code(code, answer);
        same(Type.NON, answer.getType(), "type");
        same(request.getToken(), answer.getToken(), "token");
    }

    static void content(Response answer) {
        that(answer.getOptions().hasContentFormat(), "a content format in " + answer);
        that(answer.getPayloadSize() > 0, "a payload in " + answer);
    }
}
