package headwater.capture;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.plans.QueryPlan;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;

/**
 * What files are read from: the directories that a reader was given, or that its pattern meant, or the one file that it
 * was given by its name. Several files, or those that a pattern meant, count as the directories that they lie in.
 *
 * So many are written one by one; of more only what they have in common, how many there are, the first and the last.
 */
final class FilePaths {
    private static final int MOST = 50;
    private static final String WILDCARDS = "*?[{\\";

    private FilePaths() { }

    /** What a relation of files reads, into an open object. */
    static void write(HadoopFsRelation files, Json json) throws Exception {
        Object leaves = LazyFields.optional(files.location(), "cachedLeafFiles");
        List roots = PlanWriter.list(files.location().rootPaths());
        Object asked = ScalaOptions.get(files.options().get("path"));
        boolean isNamed = roots.size() == 1 && (asked == null || !isPattern((String) asked));
        LinkedHashSet found = new LinkedHashSet();
        for (Iterator each = roots.iterator(); each.hasNext();) {
            Path path = (Path) each.next();
            boolean isFile = leaves instanceof scala.collection.Map && ((scala.collection.Map) leaves).contains(path);
            found.add((isFile && !isNamed && path.getParent() != null ? path.getParent() : path).toString());
        }
        write(found, json);
    }

    /** What a micro-batch read of a stream of files that a pattern names. Nothing for other streams, or if it isn't seen. */
    static void writeOfBatch(LogicalPlan stream, Object source, LogicalPlan batch, Json json) {
        try {
            ofBatch(stream, source, batch, json);
        } catch (Throwable e) {
            CaughtErrors.log("FilePaths.writeOfBatch", e);
            // whoever reads this knows that a pattern was asked for, and says that what it meant isn't known
        }
    }

    private static void ofBatch(LogicalPlan stream, Object source, LogicalPlan batch, Json json) throws Exception {
        Object asked = source == null ? null : LazyFields.optional(source, "qualifiedBasePath");
        if (!(asked instanceof Path) || batch == null || !isPattern(asked.toString())) return;
        HadoopFsRelation files = filesOf(stream, batch);
        if (files == null) return;
        int depth = depth((Path) asked);
        LinkedHashSet found = new LinkedHashSet();
        for (Iterator each = PlanWriter.list(files.location().rootPaths()).iterator(); each.hasNext();) {
            Path at = ((Path) each.next()).getParent();
            while (at != null && at.depth() > depth) at = at.getParent();
            if (at != null) found.add(at.toString());
        }
        write(found, json);
    }

    static boolean isPattern(String path) {
        for (int i = 0; i < path.length(); i++) if (WILDCARDS.indexOf(path.charAt(i)) >= 0) return true;
        return false;
    }

    /** Of the directories that a pattern means; a pattern whose alternatives differ in depth means those of the files. */
    static int depth(Path pattern) {
        for (Path at = pattern; at != null; at = at.getParent())
            if (at.getName().indexOf('{') >= 0 != at.getName().indexOf('}') >= 0) return Integer.MAX_VALUE;
        return pattern.depth();
    }

    /** In a batch's plan a stream is what it gave, below a projection that gives its columns the stream's own ids. */
    private static HadoopFsRelation filesOf(LogicalPlan stream, LogicalPlan batch) {
        List columns = PlanWriter.list(stream.output());
        if (columns.isEmpty()) return null;
        long wanted = ((Attribute) columns.get(0)).exprId().id();
        List waiting = new ArrayList(Arrays.asList(new Object[] {batch}));
        while (!waiting.isEmpty()) {
            QueryPlan next = (QueryPlan) waiting.remove(waiting.size() - 1);
            waiting.addAll(PlanWriter.list(next.children()));
            if (!(next instanceof Project)) continue;
            List given = PlanWriter.list(((Project) next).projectList());
            if (given.isEmpty() || ((NamedExpression) given.get(0)).exprId().id() != wanted) continue;
            List leaves = PlanWriter.list(((Project) next).collectLeaves());
            if (leaves.size() != 1 || !(leaves.get(0) instanceof LogicalRelation)) continue;
            Object relation = ((LogicalRelation) leaves.get(0)).relation();
            if (relation instanceof HadoopFsRelation) return (HadoopFsRelation) relation;
        }
        return null;
    }

    static void write(Collection found, Json json) {
        boolean isWhole = found.size() <= MOST;
        Iterator each = (isWhole ? found : roots(found)).iterator();
        json.key("paths").openList();
        while (each.hasNext()) json.value((String) each.next());
        json.closeList();
        if (!isWhole) json.entry("pathsRead", found.size() + " from " + java.util.Collections.min(found) + " to " + java.util.Collections.max(found));
    }

    /** In each file system the deepest directory that has all of them. */
    private static Collection roots(Collection paths) {
        Map roots = new LinkedHashMap();
        for (Iterator each = paths.iterator(); each.hasNext();) {
            Path path = new Path((String) each.next());
            String system = path.toUri().getScheme() + "://" + path.toUri().getAuthority();
            String known = (String) roots.get(system);
            roots.put(system, known == null ? path.toString() : common(new Path(known), path));
        }
        return new LinkedHashSet(roots.values());
    }

    private static String common(Path one, Path other) {
        while (!one.equals(other)) {
            if (one.depth() >= other.depth() && one.getParent() != null) one = one.getParent();
            else if (other.getParent() != null) other = other.getParent();
            else break;
        }
        return one.toString();
    }
}
