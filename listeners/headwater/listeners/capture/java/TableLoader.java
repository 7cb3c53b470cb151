package headwater.capture;

import org.apache.spark.sql.connector.catalog.CatalogPlugin;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.Table;

/** An extractor whose format can look up a table of its catalogs so that the session doesn't notice. */
public interface TableLoader {
    boolean hasTablesOf(CatalogPlugin catalog);
    /** The table as it is now; null where there is none, or none that may be read. */
    Table load(CatalogPlugin catalog, Identifier identifier, Statement statement) throws Exception;
}
