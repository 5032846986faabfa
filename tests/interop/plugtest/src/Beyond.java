import org.eclipse.californium.core.coap.CoAP.Code;
import org.eclipse.californium.core.coap.CoAP.ResponseCode;
import org.eclipse.californium.core.coap.CoAP.Type;
import org.eclipse.californium.core.coap.Request;
import org.eclipse.californium.core.coap.Response;
import org.eclipse.californium.core.coap.Token;

/** Requirements of the standards beyond the test descriptions. */
final class Beyond {
    private static final int TEXT = 0;

    /** More than the server accepts. */
    private static final int TOO_MANY_BYTES = 17 * 1024;

    private static final int LARGE_BYTES = 1288;

    private Beyond() {}

    static void addTo(Plugtest plugtest) {
        plugtest.add("RFC_7252_PROXY", Beyond::aProxy);
        plugtest.add("RFC_7252_NOT_ALLOWED", Beyond::aMethodThatIsNotAllowed);
        plugtest.add("RFC_7959_TOO_LARGE", Beyond::aBodyThatIsTooLarge);
        plugtest.add("RFC_7959_OBSERVE", Beyond::aLargeStateObserved);
    }

    /** A critical option that the server does not know. */
    private static void aProxy(Peer peer) throws Exception {
        Request request = peer.request(Code.GET, Type.CON, "/test");
        request.getOptions().setProxyUri("coap://192.0.2.1/test");
        Expect.piggybacked(ResponseCode.BAD_OPTION, request, peer.ask(request));
    }

    private static void aMethodThatIsNotAllowed(Peer peer) throws Exception {
        Request request = peer.request(Code.DELETE, Type.CON, "/seg1/seg2/seg3");
        Expect.piggybacked(ResponseCode.METHOD_NOT_ALLOWED, request, peer.ask(request));
        Expect.code(ResponseCode.NOT_FOUND, peer.get("/seg1/seg2"));
    }

    /** Refused at once, by the size that the first block announces. */
    private static void aBodyThatIsTooLarge(Peer peer) throws Exception {
        Request request = peer.request(Code.PUT, Type.CON, "/large-update");
        request.setPayload("x".repeat(TOO_MANY_BYTES)).getOptions().setContentFormat(TEXT);
        Response answer = peer.ask(request);
        Expect.code(ResponseCode.REQUEST_ENTITY_TOO_LARGE, answer);
        Expect.same(16 * 1024, answer.getOptions().getSize1(), "largest size");
        Expect.same(1, peer.receivedOnce().size(), "number of answers");
    }

    /** A notification has the first block; the others are requested. */
    private static void aLargeStateObserved(Peer peer) throws Exception {
        Request request = peer.request(Code.GET, Type.CON, "/obs-large");
        request.setObserve();
        Response first = peer.ask(request);
        Expect.code(ResponseCode.CONTENT, first);
        Expect.same(LARGE_BYTES, first.getPayloadSize(), "bytes of the state");
        Token token = request.getToken();
        Response notified = peer.notified(token);
        Expect.code(ResponseCode.CONTENT, notified);
        Expect.same(LARGE_BYTES, notified.getPayloadSize(), "bytes of the new state");
        String before = first.getPayloadString();
        Expect.that(!before.equals(notified.getPayloadString()), "another state");
    }
}
