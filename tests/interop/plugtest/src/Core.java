import java.util.HexFormat;
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
import org.eclipse.californium.core.coap.option.StringOption;

/** TD_COAP_CORE: methods, tokens, paths and queries, a lost answer, a ping. */
final class Core {
    private static final int TEXT = 0;

    private Core() {}

    static void addTo(Plugtest plugtest) {
        plugtest.add("TD_COAP_CORE_01", peer -> confirmable(peer, Code.GET, ResponseCode.CONTENT));
        plugtest.add(
                "TD_COAP_CORE_02", peer -> confirmable(peer, Code.DELETE, ResponseCode.DELETED));
        plugtest.add("TD_COAP_CORE_03", peer -> confirmable(peer, Code.PUT, ResponseCode.CHANGED));
        plugtest.add("TD_COAP_CORE_04", peer -> confirmable(peer, Code.POST, ResponseCode.CREATED));
        plugtest.add("TD_COAP_CORE_05", peer -> other(peer, Code.GET, ResponseCode.CONTENT));
        plugtest.add("TD_COAP_CORE_06", peer -> other(peer, Code.DELETE, ResponseCode.DELETED));
        plugtest.add("TD_COAP_CORE_07", peer -> other(peer, Code.PUT, ResponseCode.CHANGED));
        plugtest.add("TD_COAP_CORE_08", peer -> other(peer, Code.POST, ResponseCode.CREATED));
        plugtest.add("TD_COAP_CORE_10", peer -> token(peer, new Token(new byte[] {42, 0, 7})));
        plugtest.add("TD_COAP_CORE_12", peer -> token(peer, Token.EMPTY));
        plugtest.add("TD_COAP_CORE_13", Core::severalSegments);
        plugtest.add("TD_COAP_CORE_14", Core::severalArguments);
        plugtest.add("TD_COAP_CORE_15", Core::aLostAnswer);
        plugtest.add("TD_COAP_CORE_18", Core::severalSegmentsOfALocation);
        plugtest.add("TD_COAP_CORE_19", Core::severalArgumentsOfALocation);
        plugtest.add(
                "TD_COAP_CORE_31", peer -> Expect.that(peer.pings(), "a rejection of the ping"));
    }

    private static void confirmable(Peer peer, Code method, ResponseCode code) throws Exception {
        Request request = test(peer, method, Type.CON);
        Response answer = peer.ask(request);
        Expect.piggybacked(code, request, answer);
        if (method == Code.GET) {
            Expect.content(answer);
        }
    }

    private static void other(Peer peer, Code method, ResponseCode code) throws Exception {
        Request request = test(peer, method, Type.NON);
        Response answer = peer.ask(request);
        Expect.nonConfirmable(code, request, answer);
        if (method == Code.GET) {
            Expect.content(answer);
        }
    }

    private static Request test(Peer peer, Code method, Type type) {
        Request request = peer.request(method, type, "/test");
        if (method == Code.PUT || method == Code.POST) {
            request.setPayload("a text").getOptions().setContentFormat(TEXT);
        }
        return request;
    }

    private static void token(Peer peer, Token token) throws Exception {
        Request request = peer.request(Code.GET, Type.CON, "/test");
        request.setToken(token);
        Response answer = peer.ask(request);
        Expect.piggybacked(ResponseCode.CONTENT, request, answer);
        Expect.same(token, answer.getToken(), "token");
    }

    private static void severalSegments(Peer peer) throws Exception {
        Request request = peer.request(Code.GET, Type.CON, "/seg1/seg2/seg3");
        Response answer = peer.ask(request);
        Expect.same(3, request.getOptions().getURIPathCount(), "number of segments");
        Expect.piggybacked(ResponseCode.CONTENT, request, answer);
        Expect.content(answer);
    }

    private static void severalArguments(Peer peer) throws Exception {
        Request request = peer.request(Code.GET, Type.CON, "/query?first=1&second=2&third=3");
        Response answer = peer.ask(request);
        Expect.same(3, request.getOptions().getURIQueryCount(), "number of arguments");
        Expect.piggybacked(ResponseCode.CONTENT, request, answer);
        Expect.same("first=1\nsecond=2\nthird=3", answer.getPayloadString(), "payload");
    }

    /** The request is retransmitted, answered with the same bytes, and performed once. */
    private static void aLostAnswer(Peer peer) throws Exception {
        String before = created(peer).getOptions().getLocationPathString();
        peer.loseNext(message -> message instanceof Response);
        Response answer = created(peer);
        List<Message> answers = of(answer.getMID(), peer.received());
        Expect.that(answers.size() >= 2, "a second answer, not only " + answers);
        Set<String> different = answers.stream().map(Core::hex).collect(Collectors.toSet());
        Expect.same(1, different.size(), "number of different answers");
        List<Message> requests = of(answer.getMID(), peer.sent());
        Expect.that(requests.size() >= 2, "a second request, not only " + requests);
        String location = answer.getOptions().getLocationPathString();
        Expect.same(number(before) + 1, number(location), "location behind " + before);
    }

    private static List<Message> of(int id, List<Message> messages) {
        return messages.stream().filter(it -> it.getMID() == id).toList();
    }

    private static Response created(Peer peer) throws Exception {
        Request request = peer.request(Code.POST, Type.CON, "/large-create");
        request.setPayload("small").getOptions().setContentFormat(TEXT);
        Response answer = peer.ask(request);
        Expect.piggybacked(ResponseCode.CREATED, request, answer);
        return answer;
    }

    private static int number(String location) {
        return Integer.parseInt(location.substring(location.lastIndexOf('/') + 1));
    }

    private static String hex(Message message) {
        return HexFormat.of().formatHex(message.getBytes());
    }

    private static void severalSegmentsOfALocation(Peer peer) throws Exception {
        Request request = test(peer, Code.POST, Type.CON);
        Response answer = peer.ask(request);
        Expect.piggybacked(ResponseCode.CREATED, request, answer);
        List<String> expected = List.of("location1", "location2", "location3");
        Expect.same(expected, texts(answer.getOptions().getLocationPath()), "location");
    }

    private static void severalArgumentsOfALocation(Peer peer) throws Exception {
        Request request = peer.request(Code.POST, Type.CON, "/location-query");
        request.setPayload("a text").getOptions().setContentFormat(TEXT);
        Response answer = peer.ask(request);
        Expect.piggybacked(ResponseCode.CREATED, request, answer);
        List<String> expected = List.of("first=1", "second=2");
        Expect.same(expected, texts(answer.getOptions().getLocationQuery()), "location query");
    }

    private static List<String> texts(List<StringOption> options) {
        return options.stream().map(StringOption::getStringValue).toList();
    }
}
