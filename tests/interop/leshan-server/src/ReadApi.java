// How does a caller read a resource of a device at Leshan's server? Over HTTP, with as much of the
// API of the service as its load test calls: a read is requested and answered with its id, and its
// status is asked for. Requests and their statuses are in memory.

import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Executors;
import java.util.concurrent.atomic.AtomicLong;
import org.eclipse.leshan.core.request.ReadRequest;
import org.eclipse.leshan.server.LeshanServer;

final class ReadApi {
    private static final String DEVICES = "/management-api/v1/integrate/devices/";
    private static final String REQUESTS = DEVICES + "actions/requests";
    private static final int THREADS = 8;
    private static final int READ_TIMEOUT_MS = 93_000;

    private final LeshanServer server;
    private final AtomicLong last = new AtomicLong();
    private final AtomicLong succeeded = new AtomicLong();
    private final Map<String, String> statusById = new ConcurrentHashMap<>();

    private ReadApi(LeshanServer server) {
        this.server = server;
    }

    /** Serves it on a free port of loopback, and returns its address. */
    static String serve(LeshanServer server) throws IOException {
        // Without it, each answer waits for the acknowledgement of its head.
        System.setProperty("sun.net.httpserver.nodelay", "true");
        HttpServer http = HttpServer.create(new InetSocketAddress("127.0.0.1", 0), 0);
        http.createContext("/", new ReadApi(server)::handle);
        http.setExecutor(Executors.newFixedThreadPool(THREADS));
        http.start();
        return "http://127.0.0.1:" + http.getAddress().getPort();
    }

    private void handle(HttpExchange call) throws IOException {
        try (call) {
            call.getRequestBody().readAllBytes();
            String path = call.getRequestURI().getPath();
            if (call.getRequestMethod().equals("POST") && path.startsWith(DEVICES)) {
                String rest = path.substring(DEVICES.length());
                answer(call, 202, read(rest.substring(0, rest.indexOf('/'))));
            } else if (path.equals(REQUESTS)) {
                String pages = "{\"items\":[{}],\"pageAmount\":" + succeeded + "}";
                answer(call, 200, succeeded.get() == 0 ? "{\"items\":[]}" : pages);
            } else {
                String id = path.substring(path.lastIndexOf('/') + 1);
                answer(call, 200, "{\"status\":\"" + statusById.get(id) + "\"}");
            }
        }
    }

    /** Requests a read of a device; returns the body of the answer. */
    private String read(String endpoint) {
        String id = Long.toString(last.incrementAndGet());
        statusById.put(id, "IN_PROGRESS");
        server.send(
                server.getRegistrationService().getByEndpoint(endpoint),
                new ReadRequest(3, 0, 0),
                READ_TIMEOUT_MS,
                response -> end(id, response.isSuccess()),
                error -> end(id, false));
        return "{\"id\":\"" + id + "\"}";
    }

    private void end(String id, boolean isSuccess) {
        statusById.put(id, isSuccess ? "SUCCEEDED" : "FAILED");
        if (isSuccess) {
            succeeded.incrementAndGet();
        }
    }

    private static void answer(HttpExchange call, int status, String body) throws IOException {
        byte[] bytes = body.getBytes(StandardCharsets.UTF_8);
        call.getResponseHeaders().set("Content-Type", "application/json");
        call.sendResponseHeaders(status, bytes.length);
        call.getResponseBody().write(bytes);
    }
}
