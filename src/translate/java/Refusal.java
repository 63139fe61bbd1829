package bugeye;

/** A request that can't be done, with the message for the client. */
final class Refusal extends RuntimeException {
    private static final long serialVersionUID = 1;

    Refusal(String message) {
        super(message, null, false, false);
    }

    /** What no one can do here, told from what was asked wrongly. */
    static Refusal unsupported(String message) {
        return new Refusal("unsupported: " + message);
    }
}
