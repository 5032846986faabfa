import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.atomic.AtomicInteger;
import org.jsmpp.SMPPConstant;
import org.jsmpp.bean.BroadcastSm;
import org.jsmpp.bean.CancelBroadcastSm;
import org.jsmpp.bean.CancelSm;
import org.jsmpp.bean.DataCodings;
import org.jsmpp.bean.DataSm;
import org.jsmpp.bean.ESMClass;
import org.jsmpp.bean.GSMSpecificFeature;
import org.jsmpp.bean.MessageMode;
import org.jsmpp.bean.MessageType;
import org.jsmpp.bean.NumberingPlanIndicator;
import org.jsmpp.bean.OptionalParameter;
import org.jsmpp.bean.QueryBroadcastSm;
import org.jsmpp.bean.QuerySm;
import org.jsmpp.bean.RegisteredDelivery;
import org.jsmpp.bean.ReplaceSm;
import org.jsmpp.bean.SubmitMulti;
import org.jsmpp.bean.SubmitSm;
import org.jsmpp.bean.TypeOfNumber;
import org.jsmpp.extra.ProcessRequestException;
import org.jsmpp.session.BindRequest;
import org.jsmpp.session.BroadcastSmResult;
import org.jsmpp.session.DataSmResult;
import org.jsmpp.session.QueryBroadcastSmResult;
import org.jsmpp.session.QuerySmResult;
import org.jsmpp.session.SMPPServerSession;
import org.jsmpp.session.SMPPServerSessionListener;
import org.jsmpp.session.ServerMessageReceiverListener;
import org.jsmpp.session.Session;
import org.jsmpp.session.SubmitMultiResult;
import org.jsmpp.session.SubmitSmResult;
import org.jsmpp.util.MessageId;

/**
 * An SMS centre on jSMPP. It understands the commands of {@code smpp/smsc.js}, and prints what that
 * one does.
 */
public final class Smsc implements ServerMessageReceiverListener {
    private static final int WAIT_MS = 20;

    private final AtomicInteger throttled = new AtomicInteger();
    private final AtomicInteger accepted = new AtomicInteger();
    private final ExecutorService workers = Executors.newFixedThreadPool(16);
    private volatile SMPPServerSession session;

    private Smsc() {}

    public static void main(String[] args) throws Exception {
        if (args.length == 1 && args[0].equals("--check")) {
            return;
        }
        Smsc smsc = new Smsc();
        try (SMPPServerSessionListener listener = new SMPPServerSessionListener(port(args))) {
            Thread accepting = new Thread(() -> smsc.accept(listener));
            accepting.setDaemon(true);
            accepting.start();
            print("{\"port\":" + listener.getPort() + "}");
            BufferedReader lines =
                    new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
            for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                smsc.perform(line.split(" "));
            }
        }
        System.exit(0);
    }

    private static int port(String[] args) throws IOException {
        if (args.length > 0) {
            return Integer.parseInt(args[0]);
        }
        // The library does not say which port the system chose.
        try (java.net.ServerSocket free = new java.net.ServerSocket(0)) {
            return free.getLocalPort();
        }
    }

    private void accept(SMPPServerSessionListener listener) {
        while (true) {
            SMPPServerSession accepted;
            try {
                accepted = listener.accept();
            } catch (IOException closed) {
                return;
            }
            try {
                accepted.setMessageReceiverListener(this);
                BindRequest bind = accepted.waitForBind(10_000);
                if (!bind.getPassword().equals("secret08")) {
                    bind.reject(SMPPConstant.STAT_ESME_RINVPASWD);
                    continue;
                }
                bind.accept("jsmpp");
                session = accepted;
                print("{\"bound\":\"" + bind.getSystemId() + "\"}");
            } catch (Exception broken) {
                System.err.println("no session: " + broken);
            }
        }
    }

    private void perform(String[] words) {
        switch (words[0]) {
            case "deliver" -> deliver(words);
            case "throttle" -> throttled.set(Integer.parseInt(words[1]));
            case "break" -> {
                SMPPServerSession bound = session;
                if (bound != null) {
                    bound.close();
                }
            }
            default -> System.err.println("unknown: " + words[0]);
        }
    }

    private void deliver(String[] words) {
        int count = Integer.parseInt(words[1]);
        ExecutorService window = Executors.newFixedThreadPool(Integer.parseInt(words[2]));
        AtomicInteger left = new AtomicInteger(count);
        for (int number = 0; number < count; number++) {
            String source = words[3 + number % (words.length - 3)];
            String text = "message " + number;
            window.execute(() -> {
                while (!isDelivered(source, "1234", new ESMClass(), text)) {
                    pause();
                }
                if (left.decrementAndGet() == 0) {
                    print("{\"delivered\":" + count + "}");
                    window.shutdown();
                }
            });
        }
    }

    private boolean isDelivered(
            String source,
            String dest,
            ESMClass esmClass,
            String text,
            OptionalParameter... parameters) {
        SMPPServerSession bound = session;
        if (bound == null) {
            return false;
        }
        try {
            bound.deliverShortMessage("", TypeOfNumber.INTERNATIONAL, NumberingPlanIndicator.ISDN,
                    source, TypeOfNumber.INTERNATIONAL, NumberingPlanIndicator.ISDN, dest, esmClass,
                    (byte) 0, (byte) 0, new RegisteredDelivery(0), DataCodings.ZERO,
                    text.getBytes(StandardCharsets.US_ASCII), parameters);
            return true;
        } catch (Exception refusedOrBroken) {
            return false;
        }
    }

    private static void pause() {
        try {
            Thread.sleep(WAIT_MS);
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
        }
    }

    private static synchronized void print(String line) {
        System.out.println(line);
        System.out.flush();
    }

    @Override
    public SubmitSmResult onAcceptSubmitSm(SubmitSm submit, SMPPServerSession from)
            throws ProcessRequestException {
        if (throttled.getAndUpdate(left -> Math.max(0, left - 1)) > 0) {
            throw new ProcessRequestException("too many", SMPPConstant.STAT_ESME_RTHROTTLED);
        }
        int number = 1_000_000 + accepted.incrementAndGet();
        String octets = HexFormat.of().formatHex(submit.getShortMessage());
        print("{\"accepted\":\"" + submit.getSourceAddr() + " " + octets + "\"}");
        if (submit.getRegisteredDelivery() == 1) {
            workers.execute(() -> report(submit, number));
        }
        try {
            MessageId id = new MessageId(Integer.toHexString(number));
            return new SubmitSmResult(id, new OptionalParameter[0]);
        } catch (org.jsmpp.PDUStringException impossible) {
            throw new IllegalStateException(impossible);
        }
    }

    /** Reports a message as delivered until that is acknowledged. */
    private void report(SubmitSm submit, int number) {
        ESMClass receipt = new ESMClass(MessageMode.DEFAULT, MessageType.SMSC_DEL_RECEIPT,
                GSMSpecificFeature.DEFAULT);
        String text = "id:" + number + " sub:001 dlvrd:001 submit date:2611241200 "
                + "done date:2611241201 stat:DELIVRD err:000 text:";
        // The response may follow: the reference tells what it is about.
        OptionalParameter reference =
                submit.getOptionalParameter(OptionalParameter.User_message_reference.class);
        while (!isDelivered(submit.getDestAddress(), submit.getSourceAddr(), receipt, text,
                reference)) {
            pause();
        }
    }

    @Override
    public SubmitMultiResult onAcceptSubmitMulti(SubmitMulti submit, SMPPServerSession from)
            throws ProcessRequestException {
        throw unexpected();
    }

    @Override
    public QuerySmResult onAcceptQuerySm(QuerySm query, SMPPServerSession from)
            throws ProcessRequestException {
        throw unexpected();
    }

    @Override
    public void onAcceptReplaceSm(ReplaceSm replace, SMPPServerSession from)
            throws ProcessRequestException {
        throw unexpected();
    }

    @Override
    public void onAcceptCancelSm(CancelSm cancel, SMPPServerSession from) {
        print("{\"cancelled\":\"" + cancel.getMessageId() + "\"}");
    }

    @Override
    public BroadcastSmResult onAcceptBroadcastSm(BroadcastSm broadcast, SMPPServerSession from)
            throws ProcessRequestException {
        throw unexpected();
    }

    @Override
    public void onAcceptCancelBroadcastSm(CancelBroadcastSm cancel, SMPPServerSession from)
            throws ProcessRequestException {
        throw unexpected();
    }

    @Override
    public QueryBroadcastSmResult onAcceptQueryBroadcastSm(
            QueryBroadcastSm query, SMPPServerSession from) throws ProcessRequestException {
        throw unexpected();
    }

    @Override
    public DataSmResult onAcceptDataSm(DataSm data, Session from) throws ProcessRequestException {
        throw unexpected();
    }

    private static ProcessRequestException unexpected() {
        return new ProcessRequestException("not supported", SMPPConstant.STAT_ESME_RINVCMDID);
    }
}
