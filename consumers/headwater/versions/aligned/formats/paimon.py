"""Paimon tables: snapshots are numbers without holes, from 1."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, ClassVar, Final

from headwater.versions.aligned.formats.protocol import CommitEffect, SourceCommit, WriteSearch

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_EFFECTS: Final = {"APPEND": CommitEffect.ADDS, "COMPACT": CommitEffect.KEEPS, "ANALYZE": CommitEffect.KEEPS}


class PaimonTables:
    """Spark's writers choose Paimon's commit identifiers themselves, so a barrier can't be found in a sink."""

    name: ClassVar[str] = "paimon"
    can_mark: ClassVar[bool] = False

    def generation(self, spark: SparkSession, table: str) -> str:
        schemas = spark.table(_metadata_table(table, "schemas")).where("schema_id = 0").collect()
        return str(schemas[0]["update_time"]) if schemas else ""

    def current(self, spark: SparkSession, table: str) -> int | None:
        found = spark.table(_metadata_table(table, "snapshots")).selectExpr("max(snapshot_id) AS newest").collect()
        return None if found[0]["newest"] is None else int(found[0]["newest"])

    def commits_after(self, spark: SparkSession, table: str, snapshot: int) -> Sequence[SourceCommit] | None:
        rows = spark.table(_metadata_table(table, "snapshots")).where(f"snapshot_id >= {snapshot}")
        found = sorted((int(row["snapshot_id"]), str(row["commit_kind"])) for row in rows.collect())
        if not found or found[0][0] != snapshot:
            return None
        return [SourceCommit(number, _EFFECTS.get(kind, CommitEffect.CHANGES), kind) for number, kind in found[1:]]

    def state(self, spark: SparkSession, table: str, snapshot: int) -> DataFrame:
        return spark.sql(f"SELECT * FROM {table} VERSION AS OF {snapshot}")  # noqa: S608 - the user's own table

    def additions(
        self,
        spark: SparkSession,
        table: str,
        after: int,
        until: int,
        commits: Sequence[SourceCommit],  # noqa: ARG002
    ) -> DataFrame:
        return spark.read.option("incremental-between", f"{after},{until}").table(table)

    def stream_options(self, spark: SparkSession, table: str, after: int) -> dict[str, str]:  # noqa: ARG002
        return {"scan.mode": "from-snapshot", "scan.snapshot-id": str(after + 1)}

    def write_marked(self, spark: SparkSession, mark: str, write: Callable[[], object]) -> None:  # noqa: ARG002
        write()

    def find_mark(self, spark: SparkSession, table: str, mark: str, after: int | None) -> WriteSearch:  # noqa: ARG002
        return WriteSearch(None, is_certain=False)


def _metadata_table(table: str, name: str) -> str:
    database, _, last = table.rpartition(".")
    return f"{database}.`{last.strip('`')}${name}`"
