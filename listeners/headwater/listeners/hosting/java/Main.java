package headwater.hosting;

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import org.apache.spark.util.ShutdownHookManager;

/**
 * Runs a main method on a thread of its own, while Python watches it.
 *
 * `System.exit` shows in a shutdown hook only, in which everything still works: there, before Spark's own, it is waited until
 * what the program did is reported. For a short time at most, and not at all where nobody watches any more.
 */
public final class Main implements Runnable {
    /** Spark's context has 50, and what comes first has the greater number. */
    private static final int BEFORE_SPARK = 90;
    private static final long MOST = 3000L;
    private static final long UNWATCHED = 2000L;

    private final Method main;
    private final String[] arguments;
    private final ClassLoader loader;
    private String state = "running";
    private Throwable thrown;
    private boolean isReleased;
    private long watched = System.currentTimeMillis();

    public Main(Method main, String[] arguments, ClassLoader loader) {
        this.main = main;
        this.arguments = arguments;
        this.loader = loader;
    }

    public void start() {
        ShutdownHookManager.addShutdownHook(BEFORE_SPARK, new scala.runtime.AbstractFunction0() {
            public Object apply() {
                atExit();
                return scala.runtime.BoxedUnit.UNIT;
            }
        });
        Thread thread = new Thread(this, "main");
        thread.setContextClassLoader(loader);
        thread.start();
    }

    public void run() {
        try {
            main.invoke(null, new Object[] {arguments});
            ended("returned", null);
        } catch (InvocationTargetException e) {
            show(e.getCause());
            ended("thrown", e.getCause());
        } catch (Throwable e) {
            // shown to the user as his own, and Python learns of it
            show(e);
            ended("thrown", e);
        }
    }

    /** As a JVM does it. */
    private static void show(Throwable error) {
        System.out.flush();
        System.err.print("Exception in thread \"main\" ");
        error.printStackTrace();
        System.err.flush();
    }

    synchronized void ended(String how, Throwable error) {
        if (state.equals("running")) state = how;
        thrown = error;
        notifyAll();
    }

    /** running, returned, thrown or exiting; waits so long for an end. */
    public synchronized String watch(int millis) throws InterruptedException {
        watched = System.currentTimeMillis();
        if (state.equals("running")) wait(millis);
        watched = System.currentTimeMillis();
        return state;
    }

    public synchronized Throwable thrown() { return thrown; }

    /** Nobody need wait any more. */
    public synchronized void release() {
        isReleased = true;
        notifyAll();
    }

    synchronized void atExit() {
        if (!state.equals("running")) return;
        state = "exiting";
        notifyAll();
        long now = System.currentTimeMillis();
        long end = now - watched < UNWATCHED ? now + MOST : now;
        try {
            for (; !isReleased && now < end; now = System.currentTimeMillis()) wait(end - now);
        } catch (InterruptedException e) {
            // the end goes on
        }
    }
}
