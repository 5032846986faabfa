import java.util.List;

import org.eclipse.californium.core.coap.CoAP.Code;
import org.eclipse.californium.core.coap.CoAP.ResponseCode;
import org.eclipse.californium.core.coap.CoAP.Type;
import org.eclipse.californium.core.coap.Request;
import org.eclipse.californium.core.coap.Response;
import org.eclipse.californium.core.coap.option.BlockOption;
import org.eclipse.californium.core.coap.option.StandardOptionRegistry;

/** TD_COAP_BLOCK: bodies in blocks, in either direction and in both. */
final class Blocks {
    private static final int TEXT = 0;
    private static final int BODY_BYTES = 1280;

    private Blocks() {}

    static void addTo(Plugtest plugtest) {
        plugtest.add("TD_COAP_BLOCK_01", peer -> early(peer, 64));
        plugtest.add("TD_COAP_BLOCK_02", Blocks::late);
        plugtest.add("TD_COAP_BLOCK_03", Blocks::replaced);
        plugtest.add("TD_COAP_BLOCK_04", Blocks::created);
        plugtest.add("TD_COAP_BLOCK_05", Blocks::bothWays);
        plugtest.add("TD_COAP_BLOCK_06", peer -> early(peer, 16));
    }

    /** The first request announces the size, and every block has it. */
    private static void early(Peer peer, int size) throws Exception {
        Request request = peer.request(Code.GET, Type.CON, "/large");
        request.getOptions().setBlock2(BlockOption.size2Szx(size), false, 0);
        Response answer = peer.ask(request);
        Expect.code(ResponseCode.CONTENT, answer);
        Expect.same(BODY_BYTES, answer.getPayloadSize(), "bytes of the body");
        List<BlockOption> blocks = blocks2(peer);
        Expect.same(BODY_BYTES / size, blocks.size(), "number of blocks");
        for (int number = 0; number < blocks.size(); number++) {
            boolean hasMore = number + 1 < blocks.size();
            BlockOption expected =
                    StandardOptionRegistry.BLOCK2.create(
                            BlockOption.size2Szx(size), hasMore, number);
            Expect.same(expected, blocks.get(number), "block");
        }
    }

    /** The server chooses a large block, the client continues with smaller ones. */
    private static void late(Peer peer) throws Exception {
        Response whole = peer.get("/large");
        Expect.code(ResponseCode.CONTENT, whole);
        Expect.same(BODY_BYTES, whole.getPayloadSize(), "bytes of the body");
        Expect.same(lines(), whole.getPayloadString(), "body");
        List<BlockOption> blocks = blocks2(peer);
        Expect.same(1024, blocks.get(0).getSize(), "bytes of the first block");
        Expect.same(1024, blocks.get(1).getOffset(), "offset of the second block");
        Expect.that(blocks.size() > 2, "smaller blocks, not " + blocks);
    }

    private static String lines() {
        StringBuilder text = new StringBuilder();
        for (int number = 1; number <= BODY_BYTES / 64; number++) {
            String line = "line " + number + " of " + BODY_BYTES + " bytes ";
            text.append(line).append("-".repeat(63 - line.length())).append('\n');
        }
        return text.toString();
    }

    private static void replaced(Peer peer) throws Exception {
        Request request = peer.request(Code.PUT, Type.CON, "/large-update");
        request.setPayload(body("replaced")).getOptions().setContentFormat(TEXT);
        Response answer = peer.ask(request);
        Expect.code(ResponseCode.CHANGED, answer);
        continued(peer);
        Expect.same(body("replaced"), peer.get("/large-update").getPayloadString(), "body");
    }

    private static void created(Peer peer) throws Exception {
        Request request = peer.request(Code.POST, Type.CON, "/large-create");
        request.setPayload(body("created")).getOptions().setContentFormat(TEXT);
        Response answer = peer.ask(request);
        Expect.code(ResponseCode.CREATED, answer);
        Expect.same(2, answer.getOptions().getLocationPathCount(), "segments of the location");
        continued(peer);
        Response read = peer.get("/" + answer.getOptions().getLocationPathString());
        Expect.same(body("created"), read.getPayloadString(), "body");
    }

    private static void bothWays(Peer peer) throws Exception {
        Request request = peer.request(Code.POST, Type.CON, "/large-post");
        request.setPayload(body("posted")).getOptions().setContentFormat(TEXT);
        Response answer = peer.ask(request);
        Expect.code(ResponseCode.CHANGED, answer);
        Expect.same(body("posted").toUpperCase(), answer.getPayloadString(), "body");
        continued(peer);
        Expect.that(blocks2(peer).size() > 1, "several blocks of the answer");
    }

    /** Every block but the last was answered with 2.31 and its own number. */
    private static void continued(Peer peer) {
        List<Response> blocks =
                peer.receivedOnce().stream()
                        .filter(it -> it.getOptions().hasBlock1())
                        .map(it -> (Response) it)
                        .toList();
        Expect.same(BODY_BYTES / 64, blocks.size(), "number of blocks");
        for (int number = 0; number < blocks.size(); number++) {
            Response answer = blocks.get(number);
            boolean isLast = number + 1 == blocks.size();
            boolean goesOn = answer.getCode() == ResponseCode.CONTINUE;
            Expect.same(!isLast, goesOn, "2.31 to block " + number);
            BlockOption expected =
                    StandardOptionRegistry.BLOCK1.create(BlockOption.size2Szx(64), !isLast, number);
            Expect.same(expected, answer.getOptions().getBlock1(), "block");
        }
    }

    private static List<BlockOption> blocks2(Peer peer) {
        return peer.receivedOnce().stream()
                .filter(it -> it.getOptions().hasBlock2())
                .map(it -> it.getOptions().getBlock2())
                .toList();
    }

    private static String body(String word) {
        return (word + "-".repeat(64)).substring(0, 64).repeat(BODY_BYTES / 64);
    }
}
