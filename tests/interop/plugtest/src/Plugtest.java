import java.util.ArrayList;
import java.util.List;

/**
 * Runs the ETSI test descriptions for CoAP, and a little more, with Californium's client,
 * against a server.
 *
 * <p>Argument: {@code coap://HOST:PORT}, or {@code --check}, which sends nothing. Each line
 * on standard output is one verdict:
 *
 * <pre>
 * passed NAME
 * failed NAME REASON
 * done NUMBER
 * </pre>
 *
 * <p>A failure is followed by the messages sent and received, a line each, indented.
 */
final class Plugtest {
    private final List<Check> checks = new ArrayList<>();

    private Plugtest() {
        Core.addTo(this);
        Separate.addTo(this);
        Conditions.addTo(this);
        Blocks.addTo(this);
        Links.addTo(this);
        Observations.addTo(this);
        Beyond.addTo(this);
    }

    void add(String name, Body body) {
        checks.add(new Check(name, body));
    }

    private int run(String server) {
        int failed = 0;
        for (Check check : checks) {
            failed += check.passes(server) ? 0 : 1;
        }
        System.out.println("done " + checks.size());
        return failed;
    }

    public static void main(String[] arguments) {
        Plugtest plugtest = new Plugtest();
        boolean isCheck = "--check".equals(arguments[0]);
        System.exit(isCheck || plugtest.run(arguments[0]) == 0 ? 0 : 1);
    }

    /** The steps of a test description. */
    interface Body {
        void run(Peer peer) throws Exception;
    }

    /** A test description; each run has an endpoint of its own. */
    private record Check(String name, Body body) {
        boolean passes(String server) {
            try (Peer peer = new Peer(server)) {
                try {
                    body.run(peer);
                    System.out.println("passed " + name);
                    return true;
                } catch (Exception | AssertionError failure) {
                    System.out.println("failed " + name + " " + failure);
                    peer.lines().forEach(line -> System.out.println("    " + line));
                    return false;
                }
            } catch (Exception failure) {
                System.out.println("failed " + name + " " + failure);
                return false;
            }
        }
    }
}
