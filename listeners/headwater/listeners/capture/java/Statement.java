package headwater.capture;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.execution.QueryExecution;

/** One statement: a root execution, with what its nested ones have reported so far; or a call, which has no query. */
public final class Statement {
    public final long id;
    /** Milliseconds; -1 where its start wasn't seen, as of one that failed in planning. */
    public long started = -1;
    public long ended;
    public String description;
    /** JSON: whose it is, where a server in this driver runs it for a client. */
    public String client;
    /** Whether Spark ran a job for it. */
    public boolean ranJob;
    /** Whether all that Spark reported of it was kept before there was anybody to read it. */
    boolean isReadLate;
    public Map confs = new HashMap();
    public List tags = new ArrayList();
    /** Executions within it, itself among them, whose facts are its facts. */
    public final List executions = new ArrayList();
    /** JSON objects: versions that leaves of nested plans read. */
    public final List reads = new ArrayList();
    /** JSON objects: what extractors saw in nested plans. */
    public final List hints = new ArrayList();
    /** Anything an extractor keeps between a nested plan and the end of the statement, by its own name. */
    public final Map kept = new HashMap();
    /** By which an extractor refers to a catalog. */
    public CatalogWriter catalogs;
    public FormatExtractor[] extractors;
    public SparkSession session;
    public QueryExecution query;
    public LogicalPlan plan;
    /** Of a micro-batch: the query that it is of. */
    public StreamQuery stream;
    /** Which of its micro-batches. */
    public long batch = -1;
    /** By digest, the plans that its text refers to: its own, and its parts'. */
    public final Map shapes = new HashMap();
    /** Within a micro-batch that a user's function was given. */
    public boolean isPart;
    /** JSON objects: what hooks noted, once the statement has ended. */
    public List noted = new ArrayList();
    /** JSON objects: what a user's function did with a micro-batch. */
    public final List parts = new ArrayList();

    public Statement(long id) {
        this.id = id;
        executions.add(Long.valueOf(id));
    }

    /** What another one was found to be a part of this. */
    void take(Statement part) {
        reads.addAll(part.reads);
        hints.addAll(part.hints);
        ranJob |= part.ranJob;
        kept.putAll(part.kept);
    }
}
