"""A lake store of Delta tables."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timezone
from typing import Final

from headwater.errors import ConfigurationError
from headwater.lineage.lake.address import LakeAddress
from headwater.lineage.lake.formats.base import LakeFormat, SqlSession, text_of_properties

_PROPERTIES: Final = {
    # Of two writers that add the same row one has to fail.
    "delta.isolationLevel": "Serializable",
    # so that readers needn't know of deletion vectors
    "delta.enableDeletionVectors": "false",
}
_CHECK: Final = "spark.databricks.delta.retentionDurationCheck.enabled"
_LEAST_HOURS: Final = 168


class DeltaLakeFormat(LakeFormat):
    title = "Delta"
    extensions = "io.delta.sql.DeltaSparkSessionExtension"
    catalog_class = "org.apache.spark.sql.delta.catalog.DeltaCatalog"
    packages = {  # noqa: RUF012 - a mapping that is only read
        "3.5": "io.delta:delta-spark_2.12:3.3.3",
        "4.0": "io.delta:delta-spark_4.0_2.13:4.4.0",
        "4.1": "io.delta:delta-spark_4.1_2.13:4.4.0",
    }
    conflicts = ("Concurrent", "MetadataChangedException", "ProtocolChangedException")

    def clauses(self, properties: Mapping[str, str]) -> str:
        return f"USING delta {text_of_properties({**properties, **_PROPERTIES})}"

    def newest_version(self, session: SqlSession, table: str) -> int | None:
        (newest,) = session.sql(f"DESCRIBE HISTORY {table} LIMIT 1").collect()
        return int(newest.version)

    def compact(self, session: SqlSession, address: LakeAddress, name: str, sort: str | None, smallest: int) -> int:
        """Sorted files let a MERGE find the few that it has to read."""
        table = address.table(name)
        (detail,) = session.sql(f"DESCRIBE DETAIL {table}").collect()
        if detail.numFiles < max(smallest, 2):
            return 0
        (found,) = session.sql(f"OPTIMIZE {table}" + ("" if sort is None else f" ZORDER BY (`{sort}`)")).collect()
        return int(found.metrics.numFilesRemoved)

    def expire(self, session: SqlSession, address: LakeAddress, name: str, before: datetime, retained: int) -> int:  # noqa: ARG002 - VACUUM knows hours only
        hours = max(0.0, (datetime.now(timezone.utc) - before).total_seconds() / 3600)
        if hours < _LEAST_HOURS and session.conf.get(_CHECK, "true") != "false":
            raise ConfigurationError(
                f"Delta keeps {_LEAST_HOURS} hours at least, because who reads or writes may need a file so long: say "
                f"--older-than 7d or more, or set {_CHECK}=false if nothing runs that long"
            )
        vacuum = f"VACUUM {address.table(name)} RETAIN {hours:.6f} HOURS"
        removed = session.sql(f"{vacuum} DRY RUN").count()
        session.sql(vacuum).collect()
        return int(removed)
