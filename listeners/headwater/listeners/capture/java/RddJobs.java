package headwater.capture;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import org.apache.spark.SparkContext;
import org.apache.spark.scheduler.SparkListenerJobEnd;
import org.apache.spark.scheduler.SparkListenerJobStart;
import org.apache.spark.scheduler.Stage;
import org.apache.spark.scheduler.StageInfo;

/**
 * Jobs that give an RDD's rows away: `saveAsTextFile` and its kin, `foreach`, `foreachPartition`. They are no statement, and
 * have no plan. What runs within a statement is that statement's, and passed over by one look at the job's properties.
 */
final class RddJobs {
    private static final int MOST = 1000;
    private static final String TAGS = "spark.job.tags";
    private static final String WRITER = "runJob at SparkHadoopWriter";
    private volatile String[] libraries = {"org.apache.spark.sql.", "org.apache.spark.ml.", "org.apache.spark.mllib."};
    private final SparkContext context;
    private final ExecutionTracker running;
    /** By the job's number, until it ends. */
    private final Map open = new LinkedHashMap() {
        protected boolean removeEldestEntry(Map.Entry eldest) { return size() > MOST; }
    };

    RddJobs(SparkContext context, ExecutionTracker running) {
        this.context = context;
        this.running = running;
    }

    /** What the names of the formats' classes begin with: a job that one of them runs gives nobody's rows away. */
    void addLibraries(List packages) {
        List all = new ArrayList(Arrays.asList(libraries));
        all.addAll(packages);
        libraries = (String[]) all.toArray(new String[0]);
    }

    /** `kept` is the stage that the job is for, where somebody kept it for us. */
    synchronized void started(SparkListenerJobStart start, Object kept) {
        try {
            Properties properties = start.properties();
            if (properties == null) return;
            String execution = properties.getProperty("spark.sql.execution.id");
            if (isWithin(execution)) {
                running.ranJob(Long.parseLong(execution));
                return;
            }
            StageInfo last = last(start);
            String site = site(last, properties);
            if (site == null || isOwn(properties)) return;
            boolean saves = last.name().startsWith(WRITER);
            Stage giving = !saves ? null : kept != null ? (Stage) kept : RddJobOutput.stageOf(context, start.jobId());
            open.put(Integer.valueOf(start.jobId()), new RddJobOutput(site, properties.getProperty(TAGS), start.time(), saves, giving));
        } catch (Throwable e) {
            CaughtErrors.report("RddJobs.started", e);
        }
    }

    /** A thread keeps the number of the execution that it was born in, also when that is over. */
    private boolean isWithin(String execution) { return execution != null && !running.hasEnded(Long.parseLong(execution)); }

    synchronized void failed(int stage) {
        for (Iterator each = open.values().iterator(); each.hasNext();) ((RddJobOutput) each.next()).failed(stage);
    }

    synchronized void ended(SparkListenerJobEnd end) {
        RddJobOutput job = open.isEmpty() ? null : (RddJobOutput) open.remove(Integer.valueOf(end.jobId()));
        if (job == null) return;
        boolean isDone = end.jobResult().getClass().getSimpleName().equals("JobSucceeded$");
        if (job.ended(end.time(), isDone)) CommitRecorder.noteOutsideExecution(job);
    }

    /** The stage that the job is for: those before it have smaller numbers. */
    private static StageInfo last(SparkListenerJobStart start) {
        StageInfo found = null;
        scala.collection.Iterator stages = start.stageInfos().iterator();
        while (stages.hasNext()) {
            StageInfo each = (StageInfo) stages.next();
            if (found == null || each.stageId() > found.stageId()) found = each;
        }
        return found;
    }

    private static boolean isOwn(Properties properties) {
        String tags = properties.getProperty(TAGS);
        return tags != null && ("," + tags + ",").contains("," + SqlExecutionListener.OWN + ",");
    }

    /** What was called and where, without directories; null where rows stay with Spark, or a library gave them away. */
    private String site(StageInfo stage, Properties properties) {
        if (stage == null) return null;
        String text = properties.getProperty("callSite.short");
        String site = text != null ? text : stage.name();
        if (!site.startsWith(WRITER) && !givesAway(word(site))) return null;
        String[] lines = stage.details() == null ? new String[0] : stage.details().split("\n");
        if (text == null && !site.startsWith(WRITER) && lines.length > 1 && isOfLibrary(lines[1])) return null;
        return site.startsWith(WRITER) ? scope(properties) : withoutDirectories(site);
    }

    private static String word(String site) {
        int end = site.indexOf(" at ");
        return end < 0 ? site : site.substring(0, end);
    }

    private static boolean givesAway(String word) { return word.startsWith("foreach") || word.startsWith("saveAs"); }

    private boolean isOfLibrary(String frame) {
        for (int i = 0; i < libraries.length; i++) if (frame.trim().startsWith(libraries[i])) return true;
        return false;
    }

    private static String withoutDirectories(String site) {
        int at = site.indexOf(" at ");
        if (at < 0) return site;
        String place = site.substring(at + 4);
        return site.substring(0, at + 4) + place.substring(Math.max(place.lastIndexOf('/'), place.lastIndexOf('\\')) + 1);
    }

    /** Of what the writer does, the stage's name tells only that; Spark's own name for the operation is the method's. */
    private static String scope(Properties properties) {
        String scope = properties.getProperty("spark.rdd.scope");
        java.util.regex.Matcher name = java.util.regex.Pattern.compile("\"name\":\"(\\w+)\"").matcher(scope == null ? "" : scope);
        return name.find() ? name.group(1) : "saveAsHadoopDataset";
    }
}
