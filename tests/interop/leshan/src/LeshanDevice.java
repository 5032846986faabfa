import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.net.InetAddress;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

import org.eclipse.californium.core.observe.ObserveRelation;
import org.eclipse.californium.core.server.resources.Resource;
import org.eclipse.californium.core.server.resources.ResourceObserverAdapter;
import org.eclipse.leshan.client.LeshanClient;
import org.eclipse.leshan.client.LeshanClientBuilder;
import org.eclipse.leshan.client.engine.DefaultRegistrationEngineFactory;
import org.eclipse.leshan.client.resource.LwM2mObjectEnabler;
import org.eclipse.leshan.client.resource.ObjectEnabler;
import org.eclipse.leshan.client.send.ManualDataSender;
import org.eclipse.leshan.client.send.NoDataException;
import org.eclipse.leshan.client.servers.LwM2mServer;
import org.eclipse.leshan.core.node.LwM2mObjectInstance;
import org.eclipse.leshan.core.node.LwM2mPath;
import org.eclipse.leshan.core.request.ContentFormat;
import org.eclipse.leshan.core.request.CreateRequest;
import org.eclipse.leshan.transport.californium.client.endpoint.CaliforniumClientEndpointsProvider;

/**
 * A LwM2M device on Eclipse Leshan: registers, serves a few objects, prints its events.
 *
 * <p>Arguments: {@code --server coap://HOST:PORT --bind ADDRESS --endpoint NAME [--lifetime
 * SECONDS] [--queue-mode yes] [--firmware push|pull]}; with {@code --check yes} it is only
 * created. Each line on standard output is one event:
 *
 * <pre>
 * registered LOCATION      register-failed CODE
 * updated                  update-failed CODE
 * deregistered             deregister-failed CODE
 * wrote PATH VALUE         executed PATH ARGUMENTS
 * set PATH
 * observed PATH            unobserved PATH
 * collected PATH
 * sent CODE                send-failed REASON
 * installed SHA256         download-failed REASON
 * </pre>
 *
 * <p>Each line on standard input is one command:
 *
 * <pre>
 * set PATH VALUE           gives a resource another value; a multiple one gives its instance 0
 * create PATH              adds an instance of an object
 * update                   sends a registration update
 * send NUMBER PATH..       sends the current values of paths, in a Content-Format
 * collect PATH..           collects the current values of paths, with the time
 * send-collected NUMBER    sends the collected values, in a Content-Format
 * reboot                   loses power, then starts again: from another port, without memory
 * deregister               sends a de-registration
 * </pre>
 *
 * <p>It ends when the input ends.
 */
final class LeshanDevice {
    private static final String LIFETIME_S = "300";

    /** Longer than Californium retransmits a message, so that Californium gives up first. */
    private static final long SEND_TIMEOUT_MS = 120_000;

    private final Map<String, String> options;
    private LeshanClient client;

    private LeshanDevice(Map<String, String> options) throws IOException {
        this.options = options;
        client = made();
    }

    private LeshanClient made() throws IOException {
        InetAddress address = InetAddress.getByName(options.get("--bind"));
        CaliforniumClientEndpointsProvider endpoints =
                new CaliforniumClientEndpointsProvider.Builder().setClientAddress(address).build();
        DefaultRegistrationEngineFactory engine = new DefaultRegistrationEngineFactory();
        engine.setQueueMode(options.containsKey("--queue-mode"));
        long lifetimeSeconds = Long.parseLong(options.getOrDefault("--lifetime", LIFETIME_S));
        LeshanClient client = new LeshanClientBuilder(options.get("--endpoint"))
                .setObjects(Objects.of(options.get("--server"), lifetimeSeconds,
                        options.get("--firmware")))
                .setDataSenders(new ManualDataSender())
                .setEndpointsProviders(endpoints).setRegistrationEngineFactory(engine).build();
        client.addObserver(new Registrar());
        for (Resource object : endpoints.getCoapServer().getRoot().getChildren()) {
            object.addObserver(new Observations());
        }
        return client;
    }

    public static void main(String[] arguments) throws IOException {
        LeshanDevice device = new LeshanDevice(options(arguments));
        if (List.of(arguments).contains("--check")) {
            Runtime.getRuntime().halt(0);
        }
        device.client.start();
        InputStreamReader input = new InputStreamReader(System.in, StandardCharsets.UTF_8);
        BufferedReader commands = new BufferedReader(input);
        for (String line = commands.readLine(); line != null; line = commands.readLine()) {
            device.obey(line.split(" ", 3));
        }
        Runtime.getRuntime().halt(0);
    }

    private void obey(String[] words) throws IOException {
        switch (words[0]) {
            case "set" -> set(new LwM2mPath(words[1]), words[2]);
            case "create" -> create(new LwM2mPath(words[1]));
            case "update" -> client.triggerRegistrationUpdate();
            case "send" -> send(format(words[1]), List.of(words[2].split(" ")));
            case "collect" -> {
                collector().collectData(List.of(new LwM2mPath(words[1])));
                EventPrinter.event("collected", words[1]);
            }
            case "send-collected" -> sendCollected(format(words[1]));
            case "reboot" -> {
                client.destroy(false);
                client = made();
                client.start();
            }
            case "deregister" -> client.stop(true);
            default -> throw new IllegalArgumentException("no such command: " + words[0]);
        }
    }

    private void set(LwM2mPath path, String text) {
        ObjectEnabler object = (ObjectEnabler) object(path);
        Instance instance = (Instance) object.getInstance(path.getObjectInstanceId());
        instance.set(path.getResourceId(), text);
    }

    private void create(LwM2mPath path) {
        LwM2mObjectInstance instance = new LwM2mObjectInstance(path.getObjectInstanceId());
        object(path).create(LwM2mServer.SYSTEM, new CreateRequest(path.getObjectId(), instance));
    }

    private void send(ContentFormat format, List<String> paths) {
        client.getSendService().sendData(server(), format, paths, SEND_TIMEOUT_MS,
                response -> EventPrinter.event("sent", response.getCode().getCode()),
                error -> EventPrinter.event("send-failed", error.getClass().getSimpleName()));
    }

    private void sendCollected(ContentFormat format) {
        try {
            collector().sendCollectedData(server(), format, SEND_TIMEOUT_MS, false);
        } catch (NoDataException nothing) {
            EventPrinter.event("send-failed", nothing.getClass().getSimpleName());
        }
    }

    private ManualDataSender collector() {
        return client.getSendService().getDataSender(ManualDataSender.DEFAULT_NAME,
                ManualDataSender.class);
    }

    private LwM2mServer server() {
        return client.getRegisteredServers().values().iterator().next();
    }

    private static ContentFormat format(String number) {
        return ContentFormat.fromCode(Integer.parseInt(number));
    }

    private LwM2mObjectEnabler object(LwM2mPath path) {
        return client.getObjectTree().getObjectEnabler(path.getObjectId());
    }

    private static Map<String, String> options(String[] arguments) {
        Map<String, String> options = new HashMap<>();
        for (int at = 0; at + 1 < arguments.length; at += 2) {
            options.put(arguments[at], arguments[at + 1]);
        }
        return options;
    }

    /** Prints observations that begin and end, as Californium reports them. */
    private static final class Observations extends ResourceObserverAdapter {
        @Override
        public void addedObserveRelation(ObserveRelation relation) {
            EventPrinter.event("observed", path(relation));
        }

        @Override
        public void removedObserveRelation(ObserveRelation relation) {
            EventPrinter.event("unobserved", path(relation));
        }

        private static String path(ObserveRelation relation) {
            return "/" + relation.getExchange().getRequest().getOptions().getUriPathString();
        }
    }
}
