package headwater.lens;

/** A statement reads or writes something that the lens of its session can't answer for. */
public final class LensError extends IllegalArgumentException {
    public LensError(String message) {
        super(message);
    }

    LensError(String message, Throwable cause) {
        super(message, cause);
    }
}
