"""Iceberg tables: snapshots have parents, and carry properties of their writers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, Final

from headwater.versions.aligned.formats.protocol import (
    CommitEffect,
    SourceCommit,
    UnalignableTableError,
    WriteSearch,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_EFFECTS: Final = {"append": CommitEffect.ADDS, "replace": CommitEffect.KEEPS}
_PROPERTY: Final = "headwater.barrier"


class IcebergTables:
    name: ClassVar[str] = "iceberg"
    can_mark: ClassVar[bool] = True

    def generation(self, spark: SparkSession, table: str) -> str:
        return str(_load(spark, table).uuid())

    def current(self, spark: SparkSession, table: str) -> int | None:
        found = _load(spark, table).currentSnapshot()
        return None if found is None else int(found.snapshotId())

    def commits_after(self, spark: SparkSession, table: str, snapshot: int) -> Sequence[SourceCommit] | None:
        found: list[SourceCommit] = []
        for each in _line(_load(spark, table)):
            if each.snapshotId() == snapshot:
                return found[::-1]
            operation = str(each.operation())
            found.append(SourceCommit(int(each.snapshotId()), _EFFECTS.get(operation, CommitEffect.CHANGES), operation))
        return None

    def state(self, spark: SparkSession, table: str, snapshot: int) -> DataFrame:
        if _load(spark, table).snapshot(snapshot) is None:
            raise UnalignableTableError(_EXPIRED.format(table=table, snapshot=snapshot))
        return spark.sql(f"SELECT * FROM {table} VERSION AS OF {snapshot}")  # noqa: S608 - the user's own table

    def additions(
        self,
        spark: SparkSession,
        table: str,
        after: int,
        until: int,
        commits: Sequence[SourceCommit],  # noqa: ARG002
    ) -> DataFrame:
        reader = spark.read.format("iceberg").option("start-snapshot-id", after).option("end-snapshot-id", until)
        return reader.load(table)

    def stream_options(self, spark: SparkSession, table: str, after: int) -> dict[str, str]:
        """Iceberg's streams begin at a time, so a snapshot that has the time of the one before it can't be told."""
        loaded = _load(spark, table)
        at = loaded.snapshot(after)
        if at is None:
            raise UnalignableTableError(_EXPIRED.format(table=table, snapshot=after))
        later = []
        for each in _line(loaded):
            if each.snapshotId() == after:
                break
            later.append(int(each.timestampMillis()))
        else:
            raise UnalignableTableError(
                f"{table}@{after} isn't in the history of the table any more: it was rolled back"
            )
        time = later[-1] if later else int(at.timestampMillis()) + 1
        if time <= int(at.timestampMillis()):
            raise UnalignableTableError(
                f"{table}@{after} and the snapshot after it have the same time, by which alone a stream of Iceberg can "
                "begin: use an aligned query, or begin at another snapshot"
            )
        return {"stream-from-timestamp": str(time)}

    def write_marked(self, spark: SparkSession, mark: str, write: Callable[[], object]) -> None:
        """Iceberg takes properties of snapshots from the JVM's thread. A setting of the session would do only from
        Spark 4 on."""
        inside: Any = spark
        jvm = inside._jvm  # noqa: SLF001
        import_module("pyspark.java_gateway").ensure_callback_server_started(inside.sparkContext._gateway)  # noqa: SLF001
        call = _JavaCallable(write)
        error_class = jvm.java.lang.Class.forName("java.lang.RuntimeException")
        try:
            jvm.org.apache.iceberg.spark.CommitMetadata.withCommitProperties({_PROPERTY: mark}, call, error_class)
        except Exception:
            if call.error is not None:
                raise call.error from None
            raise

    def find_mark(self, spark: SparkSession, table: str, mark: str, after: int | None) -> WriteSearch:
        application = spark.sparkContext.applicationId
        unmarked: list[int] = []
        last: Any = None
        for each in _line(_load(spark, table)):
            if each.snapshotId() == after:
                return WriteSearch(None, is_certain=True, unmarked=tuple(unmarked))
            summary = each.summary()
            found = summary.get(_PROPERTY)
            if found == mark:
                return WriteSearch(int(each.snapshotId()), is_certain=True)
            if found is None and summary.get("spark.app.id") == application:
                unmarked.append(int(each.snapshotId()))
            last = each
        is_whole = last is None or last.parentId() is None
        return WriteSearch(None, is_certain=after is None and is_whole, unmarked=tuple(unmarked))


class _JavaCallable:
    """A function that Java can call. An error of it stays here, as Java would only tell its text."""

    def __init__(self, function: Callable[[], object]) -> None:
        self._function = function
        self.error: BaseException | None = None

    def call(self) -> None:
        try:
            self._function()
        except BaseException as e:
            self.error = e
            raise

    class Java:
        """Named as py4j looks for it."""

        implements: ClassVar = ["java.util.concurrent.Callable"]


_EXPIRED: Final = (
    "{table} has no snapshot {snapshot} any more: it has expired. Let snapshots live as long as the slowest job of the "
    "group may lag behind, or start the job anew, with another checkpoint"
)


def _load(spark: SparkSession, table: str) -> Any:
    """Return the table as it is now: the catalog caches tables, and others commit to them."""
    inside: Any = spark
    loaded = inside._jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergTable(inside._jsparkSession, table)  # noqa: SLF001
    loaded.refresh()
    return loaded


def _line(table: Any) -> Iterator[Any]:
    """Yield the current snapshot and those that it was made from, as far as they haven't expired."""
    at = table.currentSnapshot()
    while at is not None:
        yield at
        parent = at.parentId()
        at = None if parent is None else table.snapshot(parent)
