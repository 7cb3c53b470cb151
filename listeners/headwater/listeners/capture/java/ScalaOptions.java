package headwater.capture;

/** Scala's Option without ceremony. */
public final class ScalaOptions {
    private ScalaOptions() { }

    /** What is in it; null where nothing is. A value that is no Option is itself. */
    public static Object get(Object option) {
        if (!(option instanceof scala.Option)) return option;
        return ((scala.Option) option).isDefined() ? ((scala.Option) option).get() : null;
    }
}
