package headwater.capture;

import java.util.ArrayList;
import java.util.Collections;
import java.util.Comparator;
import java.util.Iterator;
import java.util.List;
import java.util.TreeSet;
import org.apache.hudi.AvroConversionUtils;
import org.apache.hudi.HoodiePartitionFileSliceMapping;
import org.apache.hudi.common.fs.FSUtils;
import org.apache.hudi.common.model.FileSlice;
import org.apache.hudi.common.model.HoodieCommitMetadata;
import org.apache.hudi.common.model.HoodieLogFile;
import org.apache.hudi.common.table.HoodieTableMetaClient;
import org.apache.hudi.common.table.TableSchemaResolver;
import org.apache.hudi.common.table.timeline.HoodieInstant;
import org.apache.hudi.common.table.timeline.HoodieInstantTimeGenerator;
import org.apache.hudi.common.table.timeline.HoodieTimeline;
import org.apache.hudi.hadoop.fs.HadoopFSUtils;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.execution.FileSourceScanExec;
import org.apache.spark.sql.execution.datasources.FileStatusWithMetadata;
import org.apache.spark.sql.execution.datasources.PartitionDirectory;

/**
 * What a table's timeline tells. Instants are called by the time at which they were asked for; the table's states follow
 * each other in the order in which instants were completed, which is another one where several write at once.
 */
final class HudiTimeline {
    private static final int MOST = 200;
    private static final int MOST_READ = 50;

    private HudiTimeline() { }

    /** Completed instants that made the table's rows what they are, as this client has loaded them. */
    static List commits(HoodieTableMetaClient client) {
        List found = new ArrayList(client.getCommitsAndCompactionTimeline().filterCompletedInstants().getInstants());
        return newest(found);
    }

    private static List newest(List instants) {
        Collections.sort(instants, new Comparator() {
            public int compare(Object one, Object other) { return completed((HoodieInstant) one).compareTo(completed((HoodieInstant) other)); }
        });
        return instants.size() > MOST ? instants.subList(instants.size() - MOST, instants.size()) : instants;
    }

    private static String completed(HoodieInstant instant) {
        return instant.getCompletionTime() == null ? instant.requestedTime() : instant.getCompletionTime();
    }

    /** `[instant, completed in milliseconds, whether this JVM did it]` each. */
    static void list(String path, List instants, Json json) throws Exception {
        json.openList();
        for (int i = 0; i < instants.size(); i++) {
            HoodieInstant instant = (HoodieInstant) instants.get(i);
            json.openList().value(instant.requestedTime()).value(millis(instant)).value(HudiState.HOOK.isOwn(HudiTargets.key(path, instant.requestedTime()))).closeList();
        }
        json.closeList();
    }

    private static long millis(HoodieInstant instant) throws Exception {
        return HoodieInstantTimeGenerator.parseDateFromInstantTime(completed(instant)).getTime();
    }

    /** The table's timeline now: the newest instants, and more of those that were completed since this moment. */
    static void write(HoodieTableMetaClient client, String path, long since, Json json) throws Exception {
        HoodieTimeline timeline = client.getActiveTimeline();
        List instants = newest(new ArrayList(timeline.filterCompletedInstants().getInstants()));
        int read = 0;
        json.key(path).openList();
        for (int i = 0; i < instants.size(); i++) {
            HoodieInstant instant = (HoodieInstant) instants.get(i);
            long millis = millis(instant);
            json.open().entry("instant", instant.requestedTime()).entry("completed", millis).entry("action", instant.getAction());
            json.entry("at", completed(instant));
            if (millis >= since && since >= 0 && read++ < MOST_READ) details(timeline, instant, json);
            json.close();
        }
        json.closeList();
    }

    /** The table as it is now; null where it is gone. */
    static HoodieTableMetaClient opened(SparkSession session, String path) {
        try {
            return HoodieTableMetaClient.builder().setConf(HadoopFSUtils.getStorageConf(session.sessionState().newHadoopConf()))
                .setBasePath(path).build();
        } catch (Throwable missing) {
            CaughtErrors.reportUnforeseen("HudiTimeline.opened", missing);
            return null;
        }
    }

    /** The schema of the newest commit that is ours, where the commit before it had another one. */
    static void evolved(HoodieTableMetaClient client, String path, long since, Json json) {
        try {
            List commits = commits(client);
            for (int i = commits.size() - 1; i > 0; i--) {
                HoodieInstant instant = (HoodieInstant) commits.get(i);
                if (millis(instant) < since) return;
                if (!HudiState.HOOK.isOwn(HudiTargets.key(path, instant.requestedTime()))) continue;
                String before = schema(client, (HoodieInstant) commits.get(i - 1));
                String after = schema(client, instant);
                if (!before.equals(after)) json.open().entry("path", path).entry("before", before).entry("after", after).close();
                return;
            }
        } catch (Throwable none) {
            CaughtErrors.reportUnforeseen("HudiTimeline.evolved", none);
            // without a schema of its own, as what only deletes may be
        }
    }

    private static String schema(HoodieTableMetaClient client, HoodieInstant instant) throws Exception {
        org.apache.avro.Schema schema = new TableSchemaResolver(client).getTableAvroSchema(instant, false);
        return AvroConversionUtils.convertAvroSchemaToStructType(schema).json();
    }

    private static void details(HoodieTimeline timeline, HoodieInstant instant, Json json) {
        try {
            String action = instant.getAction();
            if (action.equals("commit") || action.equals("deltacommit")) written(timeline.readCommitMetadata(instant), json);
            else if (action.equals("replacecommit")) written(timeline.readReplaceCommitMetadata(instant), json);
            else if (action.equals("rollback")) texts("undone", timeline.readRollbackMetadata(instant).getCommitsRollback(), json);
            else if (action.equals("restore")) texts("undone", timeline.readRestoreMetadata(instant).getInstantsToRollback(), json);
        } catch (Throwable unread) {
            CaughtErrors.reportUnforeseen("HudiTimeline.details", unread);
            // archived meanwhile, or written by another version: the instant alone is reported
        }
    }

    private static void written(HoodieCommitMetadata metadata, Json json) {
        if (metadata.getOperationType() != null) json.entry("operation", metadata.getOperationType().name());
    }

    private static void texts(String name, List texts, Json json) {
        json.key(name).openList();
        for (int i = 0; i < texts.size(); i++) json.value(texts.get(i).toString());
        json.closeList();
    }

    /** Instants that files of the scan were written by, in as far as files had been chosen when it ran. */
    static void onScan(FileSourceScanExec scan, Json json) throws Exception {
        Object chosen = LazyFields.value(scan, "selectedPartitions");
        if (!(chosen instanceof PartitionDirectory[])) return;
        TreeSet instants = new TreeSet();
        PartitionDirectory[] directories = (PartitionDirectory[]) chosen;
        for (int i = 0; i < directories.length; i++) {
            List files = PlanWriter.list(directories[i].files());
            for (int f = 0; f < files.size(); f++) file(directories[i], (FileStatusWithMetadata) files.get(f), instants);
        }
        json.key("files").openList();
        for (Iterator i = instants.iterator(); i.hasNext();) json.value((String) i.next());
        json.closeList();
    }

    private static void file(PartitionDirectory directory, FileStatusWithMetadata file, TreeSet instants) {
        String name = file.fileStatus().getPath().getName();
        try {
            instants.add(FSUtils.getCommitTime(name));
            if (!(directory.values() instanceof HoodiePartitionFileSliceMapping)) return;
            Object slice = ScalaOptions.get(((HoodiePartitionFileSliceMapping) directory.values()).getSlice(FSUtils.getFileId(name)));
            if (slice == null) return;
            for (Iterator i = ((FileSlice) slice).getLogFiles().iterator(); i.hasNext();)
                instants.add(((HoodieLogFile) i.next()).getDeltaCommitTime());
        } catch (Throwable unknown) {
            CaughtErrors.reportUnforeseen("HudiTimeline.file", unknown);
            // a file of another name: it says nothing
        }
    }
}
