import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.Collectors;

import org.eclipse.californium.core.WebLink;
import org.eclipse.californium.core.coap.CoAP.Code;
import org.eclipse.californium.core.coap.CoAP.ResponseCode;
import org.eclipse.californium.core.coap.CoAP.Type;
import org.eclipse.californium.core.coap.LinkFormat;
import org.eclipse.californium.core.coap.Request;
import org.eclipse.californium.core.coap.Response;

/** TD_COAP_LINK: the resources a server lists. */
final class Links {
    private static final int LINK_FORMAT = 40;
    private static final String ENTRY = "/.well-known/core";

    private Links() {}

    static void addTo(Plugtest plugtest) {
        plugtest.add("TD_COAP_LINK_01", Links::all);
        plugtest.add("TD_COAP_LINK_02", peer -> chosen(peer, "rt=Type3", "/link2", "/link3"));
        plugtest.add("TD_COAP_LINK_03", peer -> having(peer, "rt=*", "rt"));
        plugtest.add("TD_COAP_LINK_04", peer -> chosen(peer, "rt=Type2", "/link1", "/link2"));
        plugtest.add("TD_COAP_LINK_05", peer -> chosen(peer, "if=If*", "/link1", "/link2"));
        plugtest.add("TD_COAP_LINK_06", peer -> having(peer, "sz=*", "sz"));
        plugtest.add("TD_COAP_LINK_07", peer -> chosen(peer, "href=/link1", "/link1"));
        plugtest.add(
                "TD_COAP_LINK_08",
                peer -> chosen(peer, "href=/link*", "/link1", "/link2", "/link3"));
        plugtest.add("TD_COAP_LINK_09", Links::hierarchy);
    }

    private static void all(Peer peer) throws Exception {
        Set<String> paths = paths(links(peer, ENTRY));
        for (String path : List.of("/test", "/separate", "/query", "/large", "/obs", "/link1")) {
            Expect.that(paths.contains(path), path + " among " + paths);
        }
    }

    private static void chosen(Peer peer, String query, String... expected) throws Exception {
        Set<String> paths = paths(links(peer, ENTRY + "?" + query));
        Expect.same(new TreeSet<>(List.of(expected)), paths, "links");
    }

    /** Exactly those links have the attribute that have it without the query. */
    private static void having(Peer peer, String query, String name)
            throws Exception {
        Set<WebLink> having =
                links(peer, ENTRY).stream()
                        .filter(link -> link.getAttributes().containsAttribute(name))
                        .collect(Collectors.toSet());
        Set<String> paths = paths(links(peer, ENTRY + "?" + query));
        Expect.that(!paths.isEmpty(), "links with " + name);
        Expect.same(paths(having), paths, "links");
    }

    /** From the entry to a list of links, and on to resources that only that list names. */
    private static void hierarchy(Peer peer) throws Exception {
        Set<WebLink> lists = links(peer, ENTRY + "?ct=40");
        Expect.same(Set.of("/path"), paths(lists), "links");
        Set<String> below = paths(links(peer, "/path"));
        Expect.that(below.contains("/path/sub1"), "/path/sub1 among " + below);
        Expect.that(!paths(links(peer, ENTRY)).contains("/path/sub1"), "/path/sub1 below alone");
        for (String path : below) {
            Response answer = peer.get(path);
            Expect.code(ResponseCode.CONTENT, answer);
            Expect.content(answer);
        }
    }

    private static Set<WebLink> links(Peer peer, String uri) throws Exception {
        Request request = peer.request(Code.GET, Type.CON, uri);
        Response answer = peer.ask(request);
        Expect.code(ResponseCode.CONTENT, answer);
        Expect.same(LINK_FORMAT, answer.getOptions().getContentFormat(), "content format");
        return LinkFormat.parse(answer.getPayloadString());
    }

    private static Set<String> paths(Set<WebLink> links) {
        return links.stream().map(WebLink::getURI).collect(Collectors.toCollection(TreeSet::new));
    }
}
