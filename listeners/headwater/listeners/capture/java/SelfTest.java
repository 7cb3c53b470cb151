package headwater.capture;

import java.lang.reflect.Constructor;
import java.lang.reflect.Method;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;

/**
 * Looks for each member that our sources reach by reflection, and that the driver's Spark and formats should have. Classes are
 * loaded and not initialised: nothing of theirs runs. On a thread of its own, because loading takes time.
 *
 * What is declared is text, a line for each: classes, names, and `?` where the class may be absent, with tabs between. One
 * of the names in one of the classes, with bars between, has to be there.
 */
public final class SelfTest implements Runnable {
    private static final int SECONDS = 10;
    private final CountDownLatch over = new CountDownLatch(1);
    private final String declared;
    private final Map classes = new HashMap();
    /** A line for each that isn't there: its place among those that were declared, a tab, and the jar of its class, or `?`. */
    private final StringBuilder missing = new StringBuilder();
    /** `class.member` of those. */
    private final Set names = new HashSet();
    private volatile boolean isDone;

    /** What is known to be missing is text, `class.member` in each line: it isn't looked for. */
    public SelfTest(String declared, String known) {
        this.declared = declared;
        if (!known.isEmpty()) names.addAll(java.util.Arrays.asList(known.split("\n")));
    }

    public void start() {
        LazyFields.use(this);
        if (declared.isEmpty()) {
            isDone = true;
            over.countDown();
            return;
        }
        Thread thread = new Thread(this, "headwater-self-test");
        thread.setDaemon(true);
        thread.start();
    }

    public void run() {
        try {
            look();
            isDone = true;
        } catch (Throwable e) {
            CaughtErrors.log("SelfTest.run", e);
        } finally {
            over.countDown();
        }
    }

    /** What isn't there, when that is known; null where it doesn't become known. */
    public String missing(int seconds) throws InterruptedException {
        return over.await(seconds, TimeUnit.SECONDS) && isDone ? missing.toString() : null;
    }

    /** Whether a class should have this member, and hasn't. Waits for the test, on threads of ours. */
    boolean misses(Class owner, String name) throws InterruptedException {
        if (!over.await(SECONDS, TimeUnit.SECONDS) || names.isEmpty()) return false;
        for (Class at = owner; at != null; at = at.getSuperclass()) if (names.contains(at.getName() + "." + name)) return true;
        return false;
    }

    private void look() {
        String[] lines = declared.split("\n");
        for (int i = 0; i < lines.length; i++) {
            String[] entry = lines[i].split("\t");
            String[] owners = entry[0].split("\\|");
            String[] members = entry[1].split("\\|");
            if (isThere(owners, members)) continue;
            if (entry[2].equals("?") && ownerOf(owners) == null) {
                missing.append(i).append("\t?\n");
                continue;
            }
            for (int o = 0; o < owners.length; o++) for (int m = 0; m < members.length; m++) names.add(owners[o] + "." + members[m]);
            missing.append(i).append('\t').append(jar(ownerOf(owners))).append('\n');
        }
    }

    private boolean isThere(String[] owners, String[] members) {
        for (int o = 0; o < owners.length; o++) {
            Class owner = load(owners[o]);
            for (int m = 0; m < members.length && owner != null; m++) if (has(owner, members[m])) return true;
        }
        return false;
    }

    private Class ownerOf(String[] owners) {
        for (int i = 0; i < owners.length; i++) if (load(owners[i]) != null) return load(owners[i]);
        return null;
    }

    private Class load(String name) {
        if (!classes.containsKey(name)) classes.put(name, loaded(name));
        return (Class) classes.get(name);
    }

    private Class loaded(String name) {
        try {
            return Class.forName(name, false, SelfTest.class.getClassLoader());
        } catch (ClassNotFoundException none) {
            return null;
        } catch (LinkageError e) {
            CaughtErrors.log("SelfTest.loaded", e);
            return null;
        }
    }

    private static boolean has(Class owner, String member) {
        try {
            if (member.endsWith(")")) return member.startsWith("new(") ? hasConstructor(owner, member) : hasMethod(owner, member);
            return LazyFields.valueField(owner, member) != null;
        } catch (Throwable e) {
            CaughtErrors.log("SelfTest.has", e);  // such as a field of a type that isn't there
            return false;
        }
    }

    private static boolean hasConstructor(Class owner, String constructor) {
        Constructor[] all = owner.getDeclaredConstructors();
        for (int i = 0; i < all.length; i++) if (constructor.equals("new" + types(all[i].getParameterTypes()))) return true;
        return false;
    }

    private static boolean hasMethod(Class owner, String method) {
        if (isAmong(owner.getMethods(), method)) return true;
        for (Class at = owner; at != null; at = at.getSuperclass()) if (isAmong(at.getDeclaredMethods(), method)) return true;
        return false;
    }

    private static boolean isAmong(Method[] methods, String method) {
        String name = method.substring(0, method.indexOf('('));
        for (int i = 0; i < methods.length; i++)
            if (methods[i].getName().equals(name) && method.equals(name + types(methods[i].getParameterTypes()))) return true;
        return false;
    }

    private static String types(Class[] parameters) {
        StringBuilder text = new StringBuilder("(");
        for (int i = 0; i < parameters.length; i++) text.append(i == 0 ? "" : ",").append(parameters[i].getTypeName());
        return text.append(')').toString();
    }

    private static String jar(Class owner) {
        try {
            String path = owner == null ? "" : owner.getProtectionDomain().getCodeSource().getLocation().getPath();
            return path.substring(path.lastIndexOf('/') + 1);
        } catch (Throwable e) {
            CaughtErrors.log("SelfTest.jar", e);
            return "";
        }
    }
}
