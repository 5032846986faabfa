import org.eclipse.californium.core.coap.CoAP.Code;
import org.eclipse.californium.core.coap.CoAP.ResponseCode;
import org.eclipse.californium.core.coap.CoAP.Type;
import org.eclipse.californium.core.coap.Request;
import org.eclipse.californium.core.coap.Response;

/** TD_COAP_CORE: requested formats, versions, and conditional requests. */
final class Conditions {
    private static final int TEXT = 0;
    private static final int XML = 41;
    private static final int EXI = 47;

    private Conditions() {}

    static void addTo(Plugtest plugtest) {
        plugtest.add("TD_COAP_CORE_20", Conditions::accept);
        plugtest.add("TD_COAP_CORE_21", Conditions::validate);
        plugtest.add("TD_COAP_CORE_22", Conditions::ifMatch);
        plugtest.add("TD_COAP_CORE_23", Conditions::ifNoneMatch);
    }

    private static void accept(Peer peer) throws Exception {
        for (int format : new int[] {TEXT, XML}) {
            Request request = peer.request(Code.GET, Type.CON, "/multi-format");
            request.getOptions().setAccept(format);
            Response answer = peer.ask(request);
            Expect.piggybacked(ResponseCode.CONTENT, request, answer);
            Expect.same(format, answer.getOptions().getContentFormat(), "content format");
            Expect.content(answer);
        }
        Request request = peer.request(Code.GET, Type.CON, "/multi-format");
        request.getOptions().setAccept(EXI);
        Expect.piggybacked(ResponseCode.NOT_ACCEPTABLE, request, peer.ask(request));
    }

    private static void validate(Peer peer) throws Exception {
        byte[] tag = tag(peer.get("/validate"));
        Request known = peer.request(Code.GET, Type.CON, "/validate");
        known.getOptions().addETag(tag);
        Response valid = peer.ask(known);
        Expect.piggybacked(ResponseCode.VALID, known, valid);
        Expect.same(0, valid.getPayloadSize(), "payload");
        Expect.that(valid.getOptions().containsETag(tag), "the tag again in " + valid);
        Expect.code(ResponseCode.CHANGED, peer.put("/validate", "another version", TEXT));
        Request outdated = peer.request(Code.GET, Type.CON, "/validate");
        outdated.getOptions().addETag(tag);
        Response fresh = peer.ask(outdated);
        Expect.piggybacked(ResponseCode.CONTENT, outdated, fresh);
        Expect.same("another version", fresh.getPayloadString(), "payload");
        Expect.that(!fresh.getOptions().containsETag(tag), "another tag in " + fresh);
    }

    private static void ifMatch(Peer peer) throws Exception {
        byte[] tag = tag(peer.get("/validate"));
        Expect.code(ResponseCode.CHANGED, peer.ask(replacement(peer, tag)));
        Response changed = peer.get("/validate");
        Expect.that(!changed.getOptions().containsETag(tag), "another tag in " + changed);
        Request late = replacement(peer, tag);
        Expect.piggybacked(ResponseCode.PRECONDITION_FAILED, late, peer.ask(late));
        Expect.same("replaced", peer.get("/validate").getPayloadString(), "payload");
    }

    private static Request replacement(Peer peer, byte[] tag) {
        Request request = peer.request(Code.PUT, Type.CON, "/validate");
        request.setPayload("replaced").getOptions().setContentFormat(TEXT).addIfMatch(tag);
        return request;
    }

    private static void ifNoneMatch(Peer peer) throws Exception {
        Request first = creation(peer);
        Expect.piggybacked(ResponseCode.CREATED, first, peer.ask(first));
        Request second = creation(peer);
        Expect.piggybacked(ResponseCode.PRECONDITION_FAILED, second, peer.ask(second));
        Request end = peer.request(Code.DELETE, Type.CON, "/create1");
        Expect.piggybacked(ResponseCode.DELETED, end, peer.ask(end));
    }

    private static Request creation(Peer peer) {
        Request request = peer.request(Code.PUT, Type.CON, "/create1");
        request.setPayload("created").getOptions().setContentFormat(TEXT).setIfNoneMatch(true);
        return request;
    }

    private static byte[] tag(Response answer) {
        Expect.code(ResponseCode.CONTENT, answer);
        Expect.content(answer);
        Expect.same(1, answer.getOptions().getETagCount(), "number of tags");
        return answer.getOptions().getETags().get(0).getValue();
    }
}
