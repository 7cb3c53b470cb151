package headwater.lens;

import java.lang.reflect.Constructor;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.streaming.WriteToStreamStatement;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCatalog;
import org.apache.spark.sql.internal.SessionState;

/**
 * Streams that write a table which the lens leads elsewhere. A writer has looked the table up before anything is
 * analysed, so its sink is made anew. A name is what leads elsewhere: a sink that was named by its path is left, and refused.
 */
final class StreamSinks {
    private static final String DELTA = "org.apache.spark.sql.delta.sources.DeltaSink";

    private StreamSinks() { }

    static LogicalPlan of(LensSpec lens, SessionState session, WriteToStreamStatement stream) {
        Object sink = Leaves.call(stream, "sink");
        if (lens.writesElsewhere || sink == null || PlanNodes.isHarmlessSink(sink)) return stream;
        String name = LensCheck.sinkName(stream, sink);
        String other = lens.redirectOf(name);
        if (other == null) return stream;
        String[] parts = TableNames.full(LensRewrite.parts(session, other), session, org.apache.spark.sql.catalyst.analysis.AnalysisContext.get().catalogAndNamespace());
        try {
            TableCatalog catalog = (TableCatalog) session.catalogManager().catalog(parts[0]);
            Identifier identifier = UnreadablePin.identifier((String[]) java.util.Arrays.copyOfRange(parts, 1, parts.length - 1), parts[parts.length - 1]);
            Table table = catalog.loadTable(identifier);
            if (IcebergTableBranches.isBranch(table, identifier.name()) && isSpark4()) throw LensCheck.branchSinkError(lens, name);
            Object pair = Leaves.call(stream, "catalogAndIdent");
            if (pair instanceof scala.Option && ((scala.Option) pair).isDefined()) {
                LogicalPlan led = LensRewrite.with(stream, sink, table);
                return LensRewrite.with(led, pair, scala.Option.apply(new scala.Tuple2(catalog, identifier)));
            }
            if (!sink.getClass().getName().equals(DELTA)) return stream;
            LogicalPlan led = LensRewrite.with(stream, sink, deltaSink((scala.Product) sink, table));
            Object named = Leaves.call(stream, "catalogTable");
            boolean isNamed = named instanceof scala.Option && ((scala.Option) named).isDefined();
            return isNamed ? LensRewrite.with(led, named, Leaves.call(table, "catalogTable")) : led;
        } catch (LensError e) {
            throw e;
        } catch (Exception e) {
            Throwable cause = e.getCause() == null ? e : e.getCause();
            throw new LensError("the lens '" + lens.name + "' can't lead the sink of a stream from " + name + " to " + other + " (" + cause + "): write in foreachBatch", cause);
        }
    }

    /** There a stream writes main, whatever branch its table was loaded for. */
    private static boolean isSpark4() {
        try {
            Class.forName("org.apache.spark.sql.classic.SparkSession", false, SessionState.class.getClassLoader());
            return true;
        } catch (ClassNotFoundException older) {
            return false;
        }
    }

    /** The sink of another table, with all else that the writer gave. */
    private static Object deltaSink(scala.Product sink, Table table) throws Exception {
        Object catalogTable = Leaves.call(table, "catalogTable");
        Object[] arguments = new Object[sink.productArity()];
        for (int i = 0; i < arguments.length; i++) {
            Object argument = sink.productElement(i);
            if (argument instanceof Path) argument = Leaves.call(table, "path");
            else if (argument instanceof scala.Option) argument = catalogTable;
            arguments[i] = argument;
        }
        Constructor made = sink.getClass().getConstructors()[0];
        return made.newInstance(arguments);
    }
}
