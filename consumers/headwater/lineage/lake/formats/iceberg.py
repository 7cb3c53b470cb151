"""A lake store of Iceberg tables."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timezone
from typing import Any, Final

from headwater.lineage.lake.address import LakeAddress
from headwater.lineage.lake.formats.base import LakeFormat, SqlSession, text_of_properties

_PROPERTIES: Final = {
    "format-version": "2",
    # Of two writers that add the same row one has to fail: a MERGE that isn't serializable would add it twice.
    "write.merge.isolation-level": "serializable",
    "write.merge.mode": "copy-on-write",
    "write.parquet.compression-codec": "zstd",
}


class IcebergLakeFormat(LakeFormat):
    title = "Iceberg"
    extensions = "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"
    catalog_class = "org.apache.iceberg.spark.SparkCatalog"
    packages = {  # noqa: RUF012 - a mapping that is only read
        "3.5": "org.apache.iceberg:iceberg-spark-runtime-3.5_2.12:1.12.0",
        "4.0": "org.apache.iceberg:iceberg-spark-runtime-4.0_2.13:1.11.0",
        "4.1": "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0",
    }
    conflicts = ("ValidationException", "CommitFailedException", "CommitStateUnknownException")

    def clauses(self, properties: Mapping[str, str]) -> str:
        return f"USING iceberg {text_of_properties({**properties, **_PROPERTIES})}"

    def newest_version(self, session: SqlSession, table: str) -> int | None:
        found = session.sql(f"SELECT snapshot_id FROM {table}.refs WHERE name = 'main'").collect()  # noqa: S608 - ours
        return int(found[0][0]) if found else None

    def compact(self, session: SqlSession, address: LakeAddress, name: str, sort: str | None, smallest: int) -> int:
        """Sorted files let a MERGE find the few that it has to read."""
        strategy = "" if sort is None else f", strategy => 'sort', sort_order => '{sort} ASC NULLS LAST'"
        arguments = f"table => '{_place(address, name)}'{strategy}"
        options = f"options => map('min-input-files', '{smallest}')"
        found = _call(session, address, "rewrite_data_files", f"{arguments}, {options}")
        _call(session, address, "rewrite_manifests", f"table => '{_place(address, name)}'")
        return int(found.rewritten_data_files_count)

    def expire(self, session: SqlSession, address: LakeAddress, name: str, before: datetime, retained: int) -> int:
        moment = before.astimezone(timezone.utc).strftime("%Y-%m-%d %H:%M:%S.%f")
        arguments = f"older_than => TIMESTAMP '{moment} UTC', retain_last => {retained}"
        found = _call(session, address, "expire_snapshots", f"table => '{_place(address, name)}', {arguments}")
        return int(found.deleted_data_files_count)


def _call(session: SqlSession, address: LakeAddress, procedure: str, arguments: str) -> Any:
    (row,) = session.sql(f"CALL `{address.catalog}`.system.{procedure}({arguments})").collect()
    return row


def _place(address: LakeAddress, name: str) -> str:
    return ".".join((*address.namespace, name))
