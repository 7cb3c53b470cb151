"""The table formats that aligned jobs can read and write exactly once: one module each, and the interface.

They use Spark's JVM, so a session of Spark Connect can't run aligned jobs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from headwater.versions.aligned.formats.delta import DeltaTable
from headwater.versions.aligned.formats.iceberg import IcebergTable
from headwater.versions.aligned.formats.paimon import PaimonTable
from headwater.versions.aligned.formats.protocol import AlignableTable, UnalignableTableError
from headwater.versions.spark_tables import CatalogTable, find_table, load_table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_FORMATS: Final[dict[str, type[AlignableTable]]] = {
    table_type.format: table_type for table_type in (IcebergTable, DeltaTable, PaimonTable)
}


class TableLooker:
    """Looks at the tables of one job. Each look is one call of a catalog, which sees the table as it is then; what was
    read of its history before isn't read again."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark: Final = spark
        self._tables: Final[dict[str, AlignableTable]] = {}

    def source(self, name: str, *, anew: bool = False) -> AlignableTable:
        """Return a table that is to be read by snapshots, as it is now; with `anew` past what its catalog remembers."""
        found = self._look(name, load_table(self._spark, name, anew=anew))
        if found is None:
            raise UnalignableTableError(
                f"{name} is no table of {', '.join(sorted(_FORMATS))}: it has no snapshots that an aligned job could "
                "read. Read it in the function itself, if its newest rows are good enough there"
            )
        return found

    def sink(self, name: str) -> AlignableTable | None:
        """Return a table whose writes can carry a mark, as it is now; None for another one, and where there is none."""
        loaded = find_table(self._spark, name)
        return None if loaded is None else self._look(name, loaded)

    def _look(self, name: str, loaded: CatalogTable) -> AlignableTable | None:
        kind = _FORMATS.get(loaded.provider)
        if kind is None:
            return None
        found = self._tables.get(name)
        if not isinstance(found, kind):
            found = self._tables[name] = kind(self._spark, name)
        found.look(loaded)
        return found
