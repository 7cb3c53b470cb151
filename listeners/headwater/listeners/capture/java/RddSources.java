package headwater.capture;

import java.util.ArrayList;
import java.util.IdentityHashMap;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.util.StringUtils;
import org.apache.spark.Dependency;
import org.apache.spark.Partition;
import org.apache.spark.rdd.HadoopPartition;
import org.apache.spark.rdd.HadoopRDD;
import org.apache.spark.rdd.NewHadoopPartition;
import org.apache.spark.rdd.NewHadoopRDD;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.execution.datasources.FilePartition;
import org.apache.spark.sql.execution.datasources.FileScanRDD;
import org.apache.spark.sql.execution.datasources.PartitionedFile;
import org.apache.spark.sql.execution.datasources.v2.DataSourceRDD;

/**
 * What an RDD was made from, through all its parents: files that Hadoop's input formats or a scan of Spark's read, and
 * whatever the RDDs of formats show.
 *
 * What was read, partitions say; whether a directory, a pattern or a file was asked for, Hadoop's configuration. Spark
 * computes nothing for it. What isn't seen (rows of the driver's, a socket, a checkpoint) leaves the RDD partly unknown,
 * and so does a plan of Spark SQL's: the tables that it broadcasts aren't among the parents.
 */
final class RddSources {
    private static final int MOST_RDDS = 10000;
    private static final int MOST_FILES = 100000;
    private static final String ASKED = "mapreduce.input.fileinputformat.inputdir";
    /** Whose files are a table's of some version, though a scan shows nothing but the files. */
    private static volatile List logs = new ArrayList();
    private static volatile FormatExtractor[] extractors = new FormatExtractor[0];
    private static final int LEVELS = 5;
    private final LinkedHashSet paths = new LinkedHashSet();
    /** By the directory of a scan: the file, or the directory itself where several files are in it. */
    private final Map scanned = new LinkedHashMap();
    /** By the RDD of a scan: the directories that it reads. */
    private final Map scans = new IdentityHashMap();
    /** What the RDDs of formats read, as JSON. */
    private final LinkedHashSet ofFormats = new LinkedHashSet();
    /** By the RDD: the paths that its files are called by. */
    private final Map read = new IdentityHashMap();
    private Configuration configuration;
    private boolean isWhole = true;

    private RddSources() { }

    /** Names of directories in which the formats of this driver keep the log of a table, beside its files. */
    static void setTableLogs(List names) { logs = new ArrayList(names); }

    /** Those of them that know RDDs are asked. */
    static void setExtractors(FormatExtractor[] known) { extractors = known; }

    static RddSources of(RDD rdd) {
        RddSources sources = new RddSources();
        try {
            sources.walk(rdd);
        } catch (Throwable e) {
            CaughtErrors.report("RddSources.of", e);
            sources.isWhole = false;
        }
        return sources;
    }

    /** Into an open object: the paths, and whether they are all that it was made from. */
    void write(Json json) {
        for (Iterator each = scanned.entrySet().iterator(); each.hasNext();) {
            Map.Entry scan = (Map.Entry) each.next();
            if (!isOfTable((Path) scan.getKey())) paths.add(scan.getValue().toString());
        }
        scanned.clear();
        FilePaths.write(paths, json);
        json.entry("isWhole", isWhole && !paths.isEmpty());
        if (ofFormats.isEmpty()) return;
        json.key("ofFormats").openList();
        for (Iterator each = ofFormats.iterator(); each.hasNext();) json.raw((String) each.next());
        json.closeList();
    }

    /** What an RDD's files are called by, where no other RDD's are; null where they have several names. */
    String onlyPathOf(RDD rdd) {
        Set own = pathsOf(rdd);
        if (own.size() != 1) return null;
        Object path = own.iterator().next();
        List others = new ArrayList(read.keySet());
        others.addAll(scans.keySet());
        for (int i = 0; i < others.size(); i++)
            if (others.get(i) != rdd && pathsOf((RDD) others.get(i)).contains(path)) return null;
        return (String) path;
    }

    private Set pathsOf(RDD rdd) {
        Set own = new LinkedHashSet();
        if (read.containsKey(rdd)) own.addAll((Set) read.get(rdd));
        Set roots = (Set) scans.get(rdd);
        if (roots == null) return own;
        for (Iterator each = roots.iterator(); each.hasNext();) {
            Object at = scanned.get(each.next());
            own.add(at == null ? null : at.toString());
        }
        return own;
    }

    /** What Spark reads by an RDD of files, or of a source of the second kind: nothing of any other one. */
    static List inputPartitions(RDD rdd) throws Exception {
        List found = new ArrayList();
        if (rdd instanceof FileScanRDD) return PlanWriter.list(((FileScanRDD) rdd).filePartitions());
        Object groups = rdd instanceof DataSourceRDD ? LazyFields.value(rdd, "inputPartitions") : null;
        Iterator each = groups == null ? found.iterator() : PlanWriter.list(groups).iterator();
        while (each.hasNext()) {
            Object group = each.next();
            if (group instanceof InputPartition) found.add(group);
            else found.addAll(PlanWriter.list(group));
        }
        return found;
    }

    private void walk(RDD root) throws Exception {
        Map seen = new IdentityHashMap();
        List waiting = new ArrayList();
        waiting.add(root);
        while (!waiting.isEmpty()) {
            RDD next = (RDD) waiting.remove(waiting.size() - 1);
            if (next == null || seen.size() == MOST_RDDS) isWhole = false;
            else if (seen.put(next, next) == null && !isRead(next)) addParents(next, waiting);
            if (seen.size() == MOST_RDDS) return;
        }
    }

    private void addParents(RDD rdd, List waiting) throws Exception {
        Object parents = LazyFields.value(rdd, "dependencies_");
        List known = parents == null ? new ArrayList() : PlanWriter.list(parents);
        if (known.isEmpty() || rdd.getClass().getName().startsWith("org.apache.spark.sql.")) isWhole = false;
        for (int i = 0; i < known.size(); i++) waiting.add(((Dependency) known.get(i)).rdd());
    }

    private boolean isRead(RDD rdd) throws Exception {
        if (rdd instanceof HadoopRDD) hadoop(rdd, ((HadoopRDD) rdd).getConf());
        else if (rdd instanceof NewHadoopRDD) hadoop(rdd, ((NewHadoopRDD) rdd).getConf());
        else return isScan(rdd) || isOfFormat(rdd);
        return true;
    }

    private boolean isScan(RDD rdd) throws Exception {
        List partitions = inputPartitions(rdd);
        if (!(rdd instanceof FileScanRDD) && (partitions.isEmpty() || !(partitions.get(0) instanceof FilePartition))) return false;
        scan(rdd, partitions.iterator());
        return true;
    }

    /** One that fails says nothing of the others. */
    private boolean isOfFormat(RDD rdd) {
        FormatExtractor[] known = extractors;
        for (int i = 0; i < known.length; i++) {
            if (!(known[i] instanceof RddExtractor)) continue;
            Json json = new Json().open().entry("format", known[i].format());
            try {
                if (!((RddExtractor) known[i]).rdd(rdd, json)) continue;
                ofFormats.add(json.close().toString());
                isWhole = false;
                return true;
            } catch (Throwable e) {
                CaughtErrors.report("RddSources.isOfFormat", e);
            }
        }
        return false;
    }

    private void hadoop(RDD rdd, Configuration conf) throws Exception {
        LinkedHashSet files = new LinkedHashSet();
        Object partitions = LazyFields.value(rdd, "partitions_");
        String asked = conf.get(ASKED);
        if (asked == null || partitions == null || !addFiles((Partition[]) partitions, files) || files.isEmpty()) {
            isWhole = false;
            return;
        }
        String[] texts = StringUtils.split(asked);
        List names = new ArrayList();
        List patterns = new ArrayList();
        for (int i = 0; i < texts.length; i++) {
            String text = StringUtils.unEscapeString(texts[i]);
            (FilePaths.isPattern(text) ? patterns : names).add(new Path(text));
        }
        Set own = new LinkedHashSet();
        for (Iterator each = files.iterator(); each.hasNext();) {
            Path file = (Path) each.next();
            Path at = named(file, names, patterns.isEmpty());
            if (at == null) at = meant(file, patterns);
            if (at == null) isWhole = false;
            own.add(at == null ? null : at.toString());
        }
        read.put(rdd, own);
        paths.addAll(own);
        paths.remove(null);
    }

    /** The files that Hadoop splits; false where it read something else too. */
    private static boolean addFiles(Partition[] partitions, LinkedHashSet files) {
        for (int i = 0; i < partitions.length; i++) {
            Object split = partitions[i] instanceof HadoopPartition ? ((HadoopPartition) partitions[i]).inputSplit().value()
                : partitions[i] instanceof NewHadoopPartition ? ((NewHadoopPartition) partitions[i]).serializableHadoopSplit().value() : null;
            if (split instanceof org.apache.hadoop.mapred.FileSplit) files.add(((org.apache.hadoop.mapred.FileSplit) split).getPath());
            else if (split instanceof org.apache.hadoop.mapreduce.lib.input.FileSplit)
                files.add(((org.apache.hadoop.mapreduce.lib.input.FileSplit) split).getPath());
            else if (split instanceof org.apache.hadoop.mapreduce.lib.input.CombineFileSplit)
                files.addAll(java.util.Arrays.asList(((org.apache.hadoop.mapreduce.lib.input.CombineFileSplit) split).getPaths()));
            else return false;
            if (files.size() > MOST_FILES) return false;
        }
        return true;
    }

    /** Which of the paths that were asked for a file is in, or is itself: then its directory, if it wasn't the only one. */
    private static Path named(Path file, List names, boolean isAll) {
        for (int i = 0; i < names.size(); i++) {
            Path asked = (Path) names.get(i);
            Path at = above(file, asked.depth());
            if (!at.toUri().getPath().equals(asked.toUri().getPath())) continue;
            return at.equals(file) && (!isAll || names.size() > 1) ? file.getParent() : at;
        }
        return null;
    }

    /** The directory that a pattern meant, where all patterns mean directories, or files, of one depth. */
    private static Path meant(Path file, List patterns) {
        if (patterns.isEmpty()) return null;
        int depth = FilePaths.depth((Path) patterns.get(0));
        for (int i = 1; i < patterns.size(); i++) if (FilePaths.depth((Path) patterns.get(i)) != depth) return null;
        Path at = above(file, depth);
        return at.equals(file) ? file.getParent() : at;
    }

    private static Path above(Path file, int depth) {
        Path at = file;
        while (at.depth() > depth) at = at.getParent();
        return at;
    }

    private void scan(RDD scan, Iterator partitions) {
        isWhole = false;
        configuration = scan.sparkContext().hadoopConfiguration();
        Set roots = new LinkedHashSet();
        scans.put(scan, roots);
        int count = 0;
        while (partitions.hasNext()) {
            PartitionedFile[] files = ((FilePartition) partitions.next()).files();
            count += files.length;
            if (count > MOST_FILES) roots.add(null);
            if (count > MOST_FILES) return;
            for (int i = 0; i < files.length; i++) {
                Path file = files[i].toPath();
                Path root = withoutPartitions(file.getParent(), files[i].partitionValues().numFields());
                roots.add(root);
                if (root == null) continue;
                Object known = scanned.get(root);
                boolean isAlone = (known == null || known.equals(file)) && !file.getName().startsWith("part-");
                scanned.put(root, isAlone ? file : root);
            }
        }
    }

    /** The directory above those of a file's partitions; null where they aren't called as partitions are. */
    private static Path withoutPartitions(Path directory, int count) {
        Path at = directory;
        for (int i = 0; i < count; i++, at = at.getParent()) if (at == null || at.getName().indexOf('=') < 1) return null;
        return at;
    }

    /** Whether a directory has, or is in one that has, the log of a table; it counts as one where that can't be seen. */
    private boolean isOfTable(Path directory) {
        try {
            FileSystem system = directory.getFileSystem(configuration);
            List known = logs;
            Path at = directory;
            for (int level = 0; at != null && level < LEVELS; level++, at = at.getParent())
                for (int i = 0; i < known.size(); i++) if (system.exists(new Path(at, (String) known.get(i)))) return true;
            return false;
        } catch (Throwable e) {
            CaughtErrors.log("RddSources.isOfTable", e);
            return true;
        }
    }
}
