/** Prints the events of the device on standard output, one line each. */
final class EventPrinter {
    private EventPrinter() {
    }

    /** Prints an event and its details. */
    static synchronized void event(String name, Object... details) {
        StringBuilder line = new StringBuilder(name);
        for (Object detail : details) {
            line.append(' ').append(detail);
        }
        System.out.println(line);
        System.out.flush();
    }
}
