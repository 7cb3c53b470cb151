"""The table formats that aligned jobs can read and write exactly once: one module each, and the interface.

They use Spark's JVM, so a session of Spark Connect can't run aligned jobs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from headwater.versions.aligned.formats.delta import DeltaTables
from headwater.versions.aligned.formats.iceberg import IcebergTables
from headwater.versions.aligned.formats.paimon import PaimonTables
from headwater.versions.aligned.formats.protocol import AlignableFormat, UnalignableTableError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_FORMATS: Final[dict[str, AlignableFormat]] = {
    "iceberg": IcebergTables(),
    "delta": DeltaTables(),
    "paimon": PaimonTables(),
}


def find_format(spark: SparkSession, table: str) -> AlignableFormat | None:
    """Return the format of a table; None for one without snapshots that can be told apart."""
    rows = spark.sql(f"DESCRIBE TABLE EXTENDED {table}").where("col_name IN ('Provider', 'provider')").collect()
    provider = rows[0]["data_type"].lower() if rows else ""
    return _FORMATS.get(provider)


def format_of_source(spark: SparkSession, table: str) -> AlignableFormat:
    """Return the format of a table that is to be read by snapshots."""
    found = find_format(spark, table)
    if found is None:
        raise UnalignableTableError(
            f"{table} is no table of {', '.join(sorted(_FORMATS))}: it has no snapshots that an aligned job could "
            "read. Read it in the function itself, if its newest rows are good enough there"
        )
    return found
