"""Tables as Spark's catalogs have them: one call of a catalog, where SQL would plan and run a statement.

And the sessions of commands that look at tables.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from headwater.config.spark_submit import spark_properties
from headwater.errors import ConfigurationError, TerminalError, advise_import

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SESSION_CATALOG: Final = "spark_catalog"


@dataclass(frozen=True)
class CatalogTable:
    """A table as its catalog gives it."""

    catalog: Any
    identifier: Any
    table: Any

    @property
    def provider(self) -> str:
        """What made it, in lower case: `iceberg`, `delta`; empty for a view."""
        return str(self.table.properties().get("provider") or "").lower()

    def reload(self) -> CatalogTable:
        """Return the table anew, past what the catalog remembers of it."""
        self.catalog.invalidateTable(self.identifier)
        return CatalogTable(self.catalog, self.identifier, self.catalog.loadTable(self.identifier))


def load_table(spark: SparkSession, name: str, *, anew: bool = False) -> CatalogTable:
    """Return a table by its name in SQL, with `anew` past what its catalog remembers. An AnalysisException if there is
    none."""
    catalog, identifier = identify(spark, name)
    if anew:
        catalog.invalidateTable(identifier)
    return CatalogTable(catalog, identifier, catalog.loadTable(identifier))


def find_table(spark: SparkSession, name: str) -> CatalogTable | None:
    """Return a table by its name in SQL; None if there is none."""
    from pyspark.errors import AnalysisException  # noqa: PLC0415 - an extra

    catalog, identifier = identify(spark, name)
    try:
        return CatalogTable(catalog, identifier, catalog.loadTable(identifier))
    except AnalysisException:
        if catalog.tableExists(identifier):
            raise
        return None


def identify(spark: SparkSession, name: str) -> tuple[Any, Any]:
    """Return the catalog of a table and its identifier there, as Spark finds them by a name in SQL. A
    ConfigurationError if the session lacks the catalog."""
    inside: Any = spark
    jvm, gateway = inside._jvm, inside.sparkContext._gateway  # noqa: SLF001
    # Catalogs are made with the settings of the session that is active in this thread.
    find_class = getattr(inside, "_get_j_spark_session_class", None)  # from Spark 4 on
    (find_class(jvm) if find_class else jvm.SparkSession).setActiveSession(inside._jsparkSession)  # noqa: SLF001
    state = inside._jsparkSession.sessionState()  # noqa: SLF001
    manager, parsed = state.catalogManager(), state.sqlParser().parseMultipartIdentifier(name)
    parts = [str(parsed.apply(place)) for place in range(parsed.size())]
    catalog = manager.currentCatalog()
    if len(parts) == 1:
        namespace = list(manager.currentNamespace())
    elif manager.isCatalogRegistered(parts[0]):
        catalog, namespace = manager.catalog(parts[0]), parts[1:-1]
    elif len(parts) > 2 and str(catalog.name()) == _SESSION_CATALOG:
        raise ConfigurationError(
            f"Spark has no catalog {parts[0]!r} in this session: give it spark.sql.catalog.{parts[0]} and what that "
            "needs, as the job has it (spark-defaults.conf, --properties-file or --conf)"
        )
    else:
        namespace = parts[:-1]
    levels = gateway.new_array(jvm.java.lang.String, len(namespace))
    for place, level in enumerate(namespace):
        levels[place] = level
    return catalog, jvm.org.apache.spark.sql.connector.catalog.Identifier.of(levels, parts[-1])


@contextmanager
def command_session(
    properties: Mapping[str, str], command: str, *, is_reported: bool = False
) -> Generator[SparkSession]:
    """Yield the Spark session of a command, with these properties. headwater reports nothing of it, unless it may and
    the properties say so."""
    try:
        from pyspark.sql import SparkSession  # noqa: PLC0415
    except ImportError as e:
        raise TerminalError(f"`{command}` uses Spark, and {e}: {advise_import(e)}") from e
    own = {"spark.app.name": command, "spark.ui.showConsoleProgress": "false"}
    # Whoever hands over the properties of a production job has switched it on there.
    silent = {} if is_reported else {"spark.headwater.enabled": "false"}
    with spark_properties({**own, **properties, **silent}):
        builder: Any = SparkSession.builder
        spark: SparkSession = builder.getOrCreate()
    try:
        yield spark
    finally:
        spark.stop()


def end_jvm() -> None:
    """End the JVM that pyspark has started in this process, after its session: a later session gets a new one."""
    from pyspark import SparkContext  # noqa: PLC0415 - an extra

    context: Any = SparkContext
    gateway = context._gateway  # noqa: SLF001
    process = getattr(gateway, "proc", None)
    if process is None:
        return  # it is another program's
    gateway.shutdown()
    process.stdin.close()  # the JVM ends with that
    process.wait()
    context._gateway = context._jvm = None  # noqa: SLF001
