package headwater.capture;

import java.lang.reflect.Field;

/**
 * Looks at what Spark and the formats keep to themselves, and never makes them compute: a lazy value that isn't there stays so.
 *
 * A field that has another name in the version at hand must not look like a value that isn't there: reading it fails, which
 * is reported of the statement. All that is read is declared in `java/*.reflection`, and looked for once by `SelfTest`.
 */
public final class LazyFields {
    /** Knows what should be there and isn't; null where nobody looks. */
    private static volatile SelfTest test;

    private LazyFields() { }

    /** The value of a field, null where it is a lazy value that hasn't been computed. Fails where there is no such field. */
    public static Object value(Object owner, String name) throws Exception {
        Field found = valueField(owner.getClass(), name);
        if (found == null) throw unknown(owner.getClass(), name);
        return read(found, owner, name);
    }

    /** The same of what may be of a class without such a field: null then, but if the field should be there. */
    public static Object optional(Object owner, String name) throws Exception {
        return has(owner.getClass(), name) ? value(owner, name) : null;
    }

    /** Whether objects of this class have such a value. Fails where they should and don't. */
    public static boolean has(Class owner, String name) throws Exception {
        if (valueField(owner, name) != null) return true;
        SelfTest known = test;
        if (known != null && known.misses(owner, name)) throw unknown(owner, name);
        return false;
    }

    /** A field by its name, wherever in the class's ancestry it is. Fails where it isn't there. */
    public static Field field(Class owner, String name) throws Exception {
        Field found = find(owner, name);
        if (found == null) throw unknown(owner, name);
        return found;
    }

    /** The field that holds a value: Spark 4 keeps some lazy ones behind a LazyTry. Null where there is none. */
    static Field valueField(Class owner, String name) {
        Field plain = find(owner, name);
        return plain != null ? plain : find(owner, "lazy" + Character.toUpperCase(name.charAt(0)) + name.substring(1));
    }

    /** From now on the lack of what this test misses is no answer. */
    static void use(SelfTest begun) { test = begun; }

    private static Object read(Field found, Object owner, String name) throws Exception {
        Object held = found.get(owner);
        if (found.getName().equals(name)) return held;
        Object done = held == null ? null : value(held, "tryT");
        return done instanceof scala.util.Success ? ((scala.util.Success) done).get() : null;
    }

    private static Field find(Class start, String name) {
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

    private static NoSuchFieldException unknown(Class owner, String name) { return new NoSuchFieldException(owner.getName() + "." + name); }
}
