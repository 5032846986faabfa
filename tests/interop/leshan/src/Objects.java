import java.util.ArrayList;
import java.util.List;
import java.util.Map;

import org.eclipse.leshan.client.object.Security;
import org.eclipse.leshan.client.object.Server;
import org.eclipse.leshan.client.resource.LwM2mObjectEnabler;
import org.eclipse.leshan.client.resource.ObjectsInitializer;
import org.eclipse.leshan.core.LwM2mId;
import org.eclipse.leshan.core.model.ObjectLoader;
import org.eclipse.leshan.core.model.ObjectModel;
import org.eclipse.leshan.core.model.ResourceModel;
import org.eclipse.leshan.core.model.ResourceModel.Operations;
import org.eclipse.leshan.core.model.ResourceModel.Type;
import org.eclipse.leshan.core.model.StaticModel;

/** Which objects the device has, and with which values it starts. */
final class Objects {
    static final int TEMPERATURE = 3303;
    static final int LIGHT_CONTROL = 3311;

    private static final int SHORT_SERVER_ID = 1;
    private static final int REBOOT = 4;

    private Objects() {
    }

    static List<LwM2mObjectEnabler> of(String server, long lifetimeSeconds) {
        ObjectsInitializer objects = new ObjectsInitializer(models());
        objects.setInstancesForObject(LwM2mId.SECURITY, Security.noSec(server, SHORT_SERVER_ID));
        objects.setInstancesForObject(LwM2mId.SERVER, new Server(SHORT_SERVER_ID, lifetimeSeconds));
        put(objects, LwM2mId.DEVICE, Map.of(
                0, "Lamp Works",
                7, Map.of(0, 3800L, 1, 5000L),
                9, 80L,
                11, Map.of(0, 0L),
                15, "Europe/Berlin",
                16, "U"), REBOOT);
        put(objects, TEMPERATURE, Map.of(5700, 21.5, 5701, "Cel"));
        put(objects, LIGHT_CONTROL, Map.of(5850, false, 5851, 40L));
        return objects.createAll();
    }

    private static void put(ObjectsInitializer objects, int object, Map<Integer, Object> values,
            Integer... executable) {
        objects.setFactoryForObject(object, (model, id, used) -> {
            Instance created = new Instance(id, values, executable);
            created.setModel(model);
            return created;
        });
        objects.setInstancesForObject(object, new Instance(0, values, executable));
    }

    /** Leshan brings the objects of the core; those of IPSO are described here. */
    private static StaticModel models() {
        List<ObjectModel> models = new ArrayList<>(ObjectLoader.loadDefault());
        models.add(model(TEMPERATURE, "Temperature", "1.1",
                resource(5700, "Sensor Value", Operations.R, Type.FLOAT),
                resource(5701, "Sensor Units", Operations.R, Type.STRING)));
        models.add(model(LIGHT_CONTROL, "Light Control", "1.0",
                resource(5850, "On/Off", Operations.RW, Type.BOOLEAN),
                resource(5851, "Dimmer", Operations.RW, Type.INTEGER)));
        return new StaticModel(models);
    }

    private static ObjectModel model(int id, String name, String version,
            ResourceModel... resources) {
        return new ObjectModel(id, name, "", version, true, false, resources);
    }

    private static ResourceModel resource(int id, String name, Operations operations, Type type) {
        return new ResourceModel(id, name, operations, false, false, type, "", "", "");
    }
}
