import java.util.ArrayList;
import java.util.List;
import java.util.Map;

import org.eclipse.leshan.client.object.LwM2mTestObject;
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

/** The objects of the device, with their initial values. */
final class Objects {
    private static final int TEMPERATURE = 3303;
    private static final int LIGHT_CONTROL = 3311;
    private static final int TEST = 3442;

    private static final int SHORT_SERVER_ID = 1;
    private static final int REBOOT = 4;

    private Objects() {
    }

    static List<LwM2mObjectEnabler> of(String server, long lifetimeSeconds, String firmware) {
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
        objects.setInstancesForObject(TEST, new LwM2mTestObject());
        if (firmware != null) {
            boolean isPushedTo = firmware.equals("push");
            objects.setFactoryForObject(LwM2mId.FIRMWARE, (model, id, used) -> {
                Firmware created = new Firmware(isPushedTo);
                created.setModel(model);
                return created;
            });
            objects.setInstancesForObject(LwM2mId.FIRMWARE, new Firmware(isPushedTo));
        }
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

    /** Leshan brings the objects of the core; the others are described here. */
    private static StaticModel models() {
        List<ObjectModel> models = new ArrayList<>(ObjectLoader.loadDefault());
        models.add(model(TEMPERATURE, "Temperature", "1.1", List.of(
                resource(5700, "Sensor Value", Operations.R, Type.FLOAT),
                resource(5701, "Sensor Units", Operations.R, Type.STRING))));
        models.add(model(LIGHT_CONTROL, "Light Control", "1.0", List.of(
                resource(5850, "On/Off", Operations.RW, Type.BOOLEAN),
                resource(5851, "Dimmer", Operations.RW, Type.INTEGER))));
        models.add(testObject());
        return new StaticModel(models);
    }

    /**
     * A resource of every type, and 1000 further on a multiple one. Leshan has the object, not its
     * model.
     */
    private static ObjectModel testObject() {
        Map<Integer, Type> values = Map.of(
                110, Type.STRING,
                120, Type.INTEGER,
                125, Type.UNSIGNED_INTEGER,
                130, Type.FLOAT,
                140, Type.BOOLEAN,
                150, Type.OPAQUE,
                160, Type.TIME,
                170, Type.OBJLNK,
                180, Type.CORELINK);
        List<ResourceModel> resources = new ArrayList<>();
        resources.add(resource(0, "Reset values", Operations.E, Type.NONE));
        resources.add(resource(2, "Clear values", Operations.E, Type.NONE));
        resources.add(resource(3, "Exec With Arguments", Operations.E, Type.NONE));
        resources.add(several(4, "Arguments List", Operations.R, Type.STRING));
        values.forEach((id, type) -> {
            resources.add(resource(id, type + " Value", Operations.RW, type));
            resources.add(several(id + 1000, type + " Values", Operations.RW, type));
        });
        return model(TEST, "LwM2M v1.1 Test Object", "1.0", resources);
    }

    private static ObjectModel model(int id, String name, String version,
            List<ResourceModel> resources) {
        return new ObjectModel(id, name, "", version, true, false, resources);
    }

    private static ResourceModel resource(int id, String name, Operations operations, Type type) {
        return new ResourceModel(id, name, operations, false, false, type, "", "", "");
    }

    private static ResourceModel several(int id, String name, Operations operations, Type type) {
        return new ResourceModel(id, name, operations, true, false, type, "", "", "");
    }
}
