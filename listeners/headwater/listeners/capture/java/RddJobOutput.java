package headwater.capture;

import java.lang.reflect.Field;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Iterator;
import java.util.Map;
import java.util.Set;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.spark.SparkContext;
import org.apache.spark.scheduler.ActiveJob;
import org.apache.spark.scheduler.ResultStage;
import org.apache.spark.scheduler.Stage;
import org.apache.spark.scheduler.StageInfo;

/**
 * What a job gave an RDD's rows to. A job's end isn't its output's: the files are committed behind it, and the mark that
 * Hadoop's committer leaves says so. It is looked for when the fact is taken, again until it is there, or late enough.
 */
final class RddJobOutput implements DeferredFact {
    private static final String DIRECTORY = "mapreduce.output.fileoutputformat.outputdir";
    private static final String[] FORMATS = {"mapreduce.job.outputformat.class", "mapred.output.format.class"};
    private static final long PATIENCE = 60000;
    private final String site;
    private final String tags;
    private final long started;
    private final boolean saves;
    private final Map configured;
    private Stage stage;
    private Long rows;
    private final RddSources sources;
    private RddInputCounts reads;
    private Map counts;
    private final Set failedStages = new HashSet();
    private long ended;
    private boolean isCommitted;

    /** `stage` is the one that gives the rows away; null where it isn't known. */
    RddJobOutput(String site, String tags, long started, boolean saves, Stage stage) {
        this.site = site;
        this.tags = tags;
        this.started = started;
        this.saves = saves;
        this.stage = stage;
        this.configured = stage == null ? null : configured(stage);
        this.sources = stage == null ? null : RddSources.of(stage.rdd());
        this.reads = stage == null ? null : RddInputCounts.of(stage);
    }

    /** A task of this stage was tried in vain: Spark counts what it did, too. */
    void failed(int stage) { failedStages.add(Integer.valueOf(stage)); }

    /** Whether there is something to tell: Hadoop's committer takes back what a job that failed has written. */
    boolean ended(long time, boolean isDone) {
        ended = time;
        rows = stage == null || failedStages.contains(Integer.valueOf(stage.id())) ? null : rows(stage.latestInfo());
        counts = reads == null ? null : reads.ended(started, failedStages, sources);
        stage = null;
        reads = null;
        return isDone || !saves;
    }

    /**
     * The last stage of a job. The job may be gone from the scheduler's map, which is another thread's, by the time that we
     * look: null then.
     */
    static Stage stageOf(SparkContext context, int job) {
        try {
            Object active = ScalaOptions.get(context.dagScheduler().jobIdToActiveJob().get(Integer.valueOf(job)));
            return active == null ? null : ((ActiveJob) active).finalStage();
        } catch (Throwable e) {
            CaughtErrors.log("RddJobOutput.stageOf", e);  // that it saved something unknown is reported
            return null;
        }
    }

    /** What Hadoop's output was configured with, as the function that the stage runs holds it; null where it isn't there. */
    private static Map configured(Stage stage) {
        try {
            if (!(stage instanceof ResultStage)) return null;
            Object function = ((ResultStage) stage).func();
            Field[] fields = function.getClass().getDeclaredFields();
            for (int i = 0; i < fields.length; i++) {
                fields[i].setAccessible(true);
                Object held = java.lang.reflect.Modifier.isStatic(fields[i].getModifiers()) ? null : fields[i].get(function);
                if (held instanceof org.apache.spark.internal.io.HadoopWriteConfigUtil) return configuration(held);
            }
            return null;
        } catch (Throwable e) {
            CaughtErrors.log("RddJobOutput.configured", e);  // that it saved something unknown is reported
            return null;
        }
    }

    private static Map configuration(Object held) throws Exception {
        Object serializable = LazyFields.value(held, "conf");
        Configuration configuration = (Configuration) serializable.getClass().getMethod("value", new Class[0]).invoke(serializable, new Object[0]);
        Map found = new HashMap();
        found.put("", configuration);
        found.put(DIRECTORY, configuration.get(DIRECTORY));
        for (int i = 0; i < FORMATS.length; i++)
            if (configuration.get(FORMATS[i]) != null) found.put("format", configuration.getClass(FORMATS[i], null));
        return found;
    }

    public String resolve(boolean isLast) {
        Json json = new Json().open().entry("hook", "jobs").entry("site", site).entry("tags", tags);
        json.entry("started", started).entry("ended", ended).entry("saves", saves);
        try {
            String path = path();
            if (path != null && !isCommitted && !isLast && System.currentTimeMillis() < ended + PATIENCE) return null;
            if (path != null && isCommitted) {
                json.entry("path", path).entry("format", ((Class) configured.get("format")).getSimpleName());
                json.entry("fresh", ((Configuration) configured.get("")).getBoolean("spark.hadoop.validateOutputSpecs", true));
                if (rows != null) json.entry("rows", rows);
                json.key("sources").open();
                sources.write(json);
                writeCounts(json);
                json.close();
            }
        } catch (Throwable e) {
            CaughtErrors.report("RddJobOutput.resolve", e);
        }
        return json.close().toString();
    }

    private void writeCounts(Json json) {
        if (counts == null || counts.isEmpty()) return;
        json.key("counts").openList();
        for (Iterator i = counts.entrySet().iterator(); i.hasNext();) {
            Map.Entry each = (Map.Entry) i.next();
            Long[] of = (Long[]) each.getValue();
            json.open().entry("path", (String) each.getKey()).entry("rows", of[0]).entry("bytes", of[1]).close();
        }
        json.closeList();
    }

    /** The rows that the stage wrote; null where it didn't get by with one attempt, and Spark counts each by itself. */
    private static Long rows(StageInfo last) {
        return last.attemptNumber() > 0 || last.taskMetrics() == null ? null
            : Long.valueOf(last.taskMetrics().outputMetrics().recordsWritten());
    }

    /** The directory that it wrote files into; null where it wrote elsewhere. */
    private String path() throws Exception {
        Object directory = configured == null ? null : configured.get(DIRECTORY);
        if (directory == null || !isOfFiles((Class) configured.get("format"))) return null;
        Path path = new Path((String) directory);
        FileSystem system = path.getFileSystem((Configuration) configured.get(""));
        isCommitted = isMarked(system, new Path(path, "_SUCCESS"));
        return system.makeQualified(path).toString();
    }

    private static boolean isOfFiles(Class format) {
        return format != null && (org.apache.hadoop.mapred.FileOutputFormat.class.isAssignableFrom(format)
            || org.apache.hadoop.mapreduce.lib.output.FileOutputFormat.class.isAssignableFrom(format));
    }

    /** Stores keep whole seconds, and clocks of their own. */
    private boolean isMarked(FileSystem system, Path mark) throws Exception {
        try {
            FileStatus status = system.getFileStatus(mark);
            return status.getModificationTime() + 1000 >= started;
        } catch (java.io.FileNotFoundException none) {
            return false;
        }
    }
}
