import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;

import org.eclipse.leshan.client.resource.SimpleInstanceEnabler;
import org.eclipse.leshan.client.servers.LwM2mServer;
import org.eclipse.leshan.core.model.ObjectModel;
import org.eclipse.leshan.core.model.ResourceModel;
import org.eclipse.leshan.core.node.LwM2mMultipleResource;
import org.eclipse.leshan.core.node.LwM2mResource;
import org.eclipse.leshan.core.node.LwM2mSingleResource;
import org.eclipse.leshan.core.request.argument.Arguments;
import org.eclipse.leshan.core.response.ExecuteResponse;
import org.eclipse.leshan.core.response.WriteResponse;

/** An instance of an object with initial values; it prints the operations of a server. */
final class Instance extends SimpleInstanceEnabler {
    private final List<Integer> executable;

    Instance(int id, Map<Integer, Object> values, Integer... executable) {
        super(id, values);
        this.executable = List.of(executable);
    }

    /** Gives a resource another value, as a sensor or a hand would; observers are notified. */
    void set(int resource, String text) {
        ResourceModel described = model.resources.get(resource);
        Object parsed = parsed(described, text);
        LwM2mResource value = described.multiple
                ? LwM2mMultipleResource.newResource(resource, Map.of(0, parsed), described.type)
                : LwM2mSingleResource.newResource(resource, parsed, described.type);
        super.write(LwM2mServer.SYSTEM, false, resource, value);
        EventPrinter.event("set", getResourcePath(resource));
    }

    @Override
    public WriteResponse write(LwM2mServer server, boolean replace, int resource,
            LwM2mResource value) {
        WriteResponse response = super.write(server, replace, resource, value);
        Object written = value.isMultiInstances() ? value.getInstances() : value.getValue();
        EventPrinter.event("wrote", getResourcePath(resource), written);
        return response;
    }

    @Override
    public ExecuteResponse execute(LwM2mServer server, int resource, Arguments arguments) {
        if (!executable.contains(resource)) {
            return ExecuteResponse.notFound();
        }
        EventPrinter.event("executed", getResourcePath(resource), arguments.serialize());
        return ExecuteResponse.success();
    }

    @Override
    public List<Integer> getAvailableResourceIds(ObjectModel model) {
        List<Integer> available = new ArrayList<>(resources.keySet());
        available.addAll(executable);
        Collections.sort(available);
        return available;
    }

    private static Object parsed(ResourceModel described, String text) {
        return switch (described.type) {
            case BOOLEAN -> Boolean.valueOf(text);
            case FLOAT -> Double.valueOf(text);
            case INTEGER -> Long.valueOf(text);
            case STRING -> text;
            default -> throw new IllegalArgumentException("no values of type " + described.type);
        };
    }
}
