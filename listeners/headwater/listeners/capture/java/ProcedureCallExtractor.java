package headwater.capture;

/** An extractor that also looks up what a procedure did that Spark ran outside of any execution. */
public interface ProcedureCallExtractor {
    /** Whether every call of this catalog's procedures is seen. */
    boolean watches(org.apache.spark.sql.connector.catalog.CatalogPlugin catalog);
    /** Entries of the call, written into an object that is open, on the reader's thread. */
    void called(Statement statement, ProcedureCall called, Json json) throws Exception;
}
