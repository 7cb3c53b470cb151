package headwater.capture;

import java.lang.reflect.Field;

/** Looks at what Spark computed, and never makes it compute: a lazy value that isn't there stays so. */
public final class LazyFields {
    private LazyFields() { }

    /** The lazy value of this name, or null where it hasn't been computed. Spark 4 keeps some behind a LazyTry. */
    public static Object value(Object owner, String name) throws Exception {
        Field plain = field(owner.getClass(), name);
        if (plain != null) return plain.get(owner);
        Field behind = field(owner.getClass(), "lazy" + Character.toUpperCase(name.charAt(0)) + name.substring(1));
        if (behind == null) return null;
        Object kept = behind.get(owner);
        Object done = kept == null ? null : value(kept, "tryT");
        return done instanceof scala.util.Success ? ((scala.util.Success) done).get() : null;
    }

    /** A field by its name, wherever in the class's ancestry it is, or null. */
    public static Field field(Class start, String name) {
        for (Class at = start; at != null; at = at.getSuperclass()) {
            try {
                Field found = at.getDeclaredField(name);
                found.setAccessible(true);
                return found;
            } catch (NoSuchFieldException e) {
                // further up
            }
        }
        return null;
    }
}
