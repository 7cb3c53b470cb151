package headwater.capture;

import java.lang.reflect.InvocationTargetException;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.SparkContext;

/** What Python does with our classes at a start: one call for each thing, where it takes a dozen by reflection. */
public final class Parts {
    private final List extractors = new ArrayList();

    /** An object of a class of ours that is made of nothing. */
    public Object make(String name) throws Throwable {
        try {
            return load(name).getConstructors()[0].newInstance(new Object[0]);
        } catch (InvocationTargetException e) {
            throw e.getCause();
        }
    }

    /** Call a static method of a class of ours that takes nothing. */
    public void call(String name, String method) throws Throwable {
        try {
            load(name).getMethod(method, new Class[0]).invoke(null, new Object[0]);
        } catch (InvocationTargetException e) {
            throw e.getCause();
        }
    }

    public void add(FormatExtractor extractor) { extractors.add(extractor); }

    /** With the extractors that were added. */
    public SqlExecutionListener listener(SparkContext context, StreamCapture streams, boolean reads, boolean sql, int mostPlans, long mostWeight, int mostTexts, long mostBytes) {
        FormatExtractor[] added = (FormatExtractor[]) extractors.toArray(new FormatExtractor[0]);
        return new SqlExecutionListener(context, added, streams, reads, sql, mostPlans, mostWeight, mostTexts, mostBytes);
    }

    public void attach(SparkContext context) { CommitRecorder.attach(context); }

    public void detach(SparkContext context) { CommitRecorder.detach(context); }

    public int recordVersion() { return SqlExecutionListener.recordVersion(); }

    private static Class load(String name) throws ClassNotFoundException {
        return Class.forName("headwater.capture." + name, true, Parts.class.getClassLoader());
    }
}
