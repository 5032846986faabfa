import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;

import org.eclipse.californium.core.CoapClient;
import org.eclipse.californium.core.CoapResponse;
import org.eclipse.californium.core.config.CoapConfig;
import org.eclipse.californium.elements.config.Configuration;
import org.eclipse.leshan.client.resource.BaseInstanceEnabler;
import org.eclipse.leshan.client.servers.LwM2mServer;
import org.eclipse.leshan.core.model.ObjectModel;
import org.eclipse.leshan.core.model.ResourceModel.Type;
import org.eclipse.leshan.core.node.LwM2mResource;
import org.eclipse.leshan.core.request.argument.Arguments;
import org.eclipse.leshan.core.response.ExecuteResponse;
import org.eclipse.leshan.core.response.ReadResponse;
import org.eclipse.leshan.core.response.WriteResponse;

/** The firmware object of a device that is sent images, or downloads them over CoAP. */
final class Firmware extends BaseInstanceEnabler {
    private static final int PACKAGE = 0;
    private static final int PACKAGE_URI = 1;
    private static final int UPDATE = 2;
    private static final int STATE = 3;
    private static final int RESULT = 5;
    private static final int PROTOCOLS = 8;
    private static final int METHODS = 9;

    private static final long OVER_COAP = 0;
    private static final long CONNECTION_LOST = 4;
    private static final long TIMEOUT_MS = 30_000;

    static {
        // Otherwise Californium writes a file of settings to the working directory.
        CoapConfig.register();
        Configuration.createStandardWithoutFile();
    }

    private final boolean isPushedTo;
    private long state;
    private long result;
    private byte[] image = {};

    Firmware(boolean isPushedTo) {
        super(0);
        this.isPushedTo = isPushedTo;
    }

    @Override
    public synchronized ReadResponse read(LwM2mServer server, int resource) {
        return switch (resource) {
            case STATE -> ReadResponse.success(resource, state);
            case RESULT -> ReadResponse.success(resource, result);
            case PROTOCOLS -> ReadResponse.success(resource, Map.of(0, OVER_COAP), Type.INTEGER);
            case METHODS -> ReadResponse.success(resource, isPushedTo ? 1L : 0L);
            default -> ReadResponse.notFound();
        };
    }

    @Override
    public synchronized WriteResponse write(LwM2mServer server, boolean replace, int resource,
            LwM2mResource value) {
        switch (resource) {
            case PACKAGE -> has((byte[]) value.getValue());
            case PACKAGE_URI -> download((String) value.getValue());
            default -> {
                return WriteResponse.notFound();
            }
        }
        return WriteResponse.success();
    }

    @Override
    public synchronized ExecuteResponse execute(LwM2mServer server, int resource,
            Arguments arguments) {
        if (resource != UPDATE || state != 2) {
            return ExecuteResponse.methodNotAllowed();
        }
        EventPrinter.event("installed", digest());
        state = 0;
        result = 1;
        return ExecuteResponse.success();
    }

    @Override
    public List<Integer> getAvailableResourceIds(ObjectModel model) {
        return List.of(PACKAGE, PACKAGE_URI, UPDATE, STATE, RESULT, PROTOCOLS, METHODS);
    }

    private void download(String uri) {
        state = uri.isEmpty() ? 0 : 1;
        result = 0;
        if (!uri.isEmpty()) {
            new Thread(() -> downloadFrom(uri)).start();
        }
    }

    private void downloadFrom(String uri) {
        byte[] downloaded = null;
        try {
            CoapResponse response = new CoapClient(uri).setTimeout(TIMEOUT_MS).get();
            if (response != null && response.isSuccess()) {
                downloaded = response.getPayload();
            }
        } catch (Exception failure) {
            EventPrinter.event("download-failed", failure.getClass().getSimpleName());
        }
        has(downloaded);
    }

    private synchronized void has(byte[] taken) {
        state = taken == null ? 0 : 2;
        result = taken == null ? CONNECTION_LOST : 0;
        image = taken == null ? image : taken;
    }

    private String digest() {
        try {
            byte[] digest = MessageDigest.getInstance("SHA-256").digest(image);
            return HexFormat.of().formatHex(digest);
        } catch (NoSuchAlgorithmException impossible) {
            throw new IllegalStateException(impossible);
        }
    }
}
