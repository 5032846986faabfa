/** Says on standard output what happens to the device: one line per event. */
final class Told {
    private Told() {
    }

    /** Says an event and what belongs to it. */
    static synchronized void event(String name, Object... details) {
        StringBuilder line = new StringBuilder(name);
        for (Object detail : details) {
            line.append(' ').append(detail);
        }
        System.out.println(line);
        System.out.flush();
    }
}
