"""Iceberg tables: snapshots have parents, and carry properties of their writers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, Final

from headwater.versions.aligned.formats.protocol import (
    AlignableTable,
    CommitEffect,
    SourceCommit,
    UnalignableTableError,
    WriteSearch,
    is_earlier,
)
from headwater.versions.cuts import TableSnapshot
from headwater.versions.table_parts import MAIN, part_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from headwater.versions.spark_tables import CatalogTable

_EFFECTS: Final = {"append": CommitEffect.ADDS, "replace": CommitEffect.KEEPS}
_PROPERTY: Final = "headwater.barrier"
_EXPIRED: Final = (
    "{table} has no snapshot {snapshot} any more: it has expired. Let snapshots live as long as the slowest job of the "
    "group may lag behind, or start the job anew, with another checkpoint"
)


class IcebergTable(AlignableTable):
    format: ClassVar[str] = "iceberg"

    def __init__(self, spark: SparkSession, name: str) -> None:
        super().__init__(spark, name)
        self._table: Any = None
        self._branch: str | None = None
        """The branch that the name of the table names; none for main."""
        self._generation = ""
        self._line: list[SourceCommit] = []
        """The newest commits, as far as they were asked for, the oldest first."""

    def look(self, loaded: CatalogTable) -> None:
        """Catalogs cache tables, and others commit to them. One that was made again can't be refreshed."""
        table, branch = loaded.table.table(), loaded.table.branch()
        part = None if branch is None else part_of(self.name)
        self.read_name = self.name if part is None else part.table  # Iceberg takes either a branch or a version
        self._branch = None if branch in (None, MAIN) else str(branch)
        try:
            table.refresh()
        except Exception:  # noqa: BLE001 - each catalog has its own; loading it again says what is wrong
            table = loaded.reload().table.table()
        generation = str(table.uuid())
        if generation != self._generation:
            self._line = []
        self._table, self._generation = table, generation

    @property
    def generation(self) -> str:
        return self._generation

    def newest(self) -> int | None:
        found = self._head()
        return None if found is None else int(found.snapshotId())

    def _head(self) -> Any:
        """Return the newest snapshot of the branch that the table's name means."""
        return self._table.currentSnapshot() if self._branch is None else self._table.snapshot(self._branch)

    def _commits_after(self, at: TableSnapshot) -> list[SourceCommit] | None:
        """Walk back to what is known; the rest follows it as before, because a snapshot's parent never changes."""
        if self._table.snapshot(at.snapshot) is None:
            return None
        known = {commit.snapshot: place for place, commit in enumerate(self._line)}
        begins, new = known.get(at.snapshot), list[SourceCommit]()
        for snapshot in self._ancestors():
            number = int(snapshot.snapshotId())
            if begins is not None and (place := known.get(number, -1)) >= begins:
                self._line = [*self._line[begins : place + 1], *reversed(new)]
                return self._line[1:]
            operation = str(snapshot.operation())
            new.append(SourceCommit(number, _EFFECTS.get(operation, CommitEffect.CHANGES), operation))
            if number == at.snapshot:
                self._line = new[::-1]
                return self._line[1:]
        return None

    def state(self, at: TableSnapshot) -> DataFrame:
        if self._table.snapshot(at.snapshot) is None:
            raise UnalignableTableError(_EXPIRED.format(table=self.name, snapshot=at.snapshot))
        return super().state(at)

    def additions(
        self,
        after: TableSnapshot,
        until: TableSnapshot,
        commits: Sequence[SourceCommit],  # noqa: ARG002
    ) -> DataFrame:
        self.check_generation(until)
        reader = self.spark.read.format("iceberg").option("start-snapshot-id", after.snapshot)
        return reader.option("end-snapshot-id", until.snapshot).load(self.read_name)

    def stream_options(self, after: int) -> dict[str, str]:
        """Iceberg's streams begin at a time, so a snapshot that has the time of the one before it can't be told. They
        look for what is new on main, whatever branch is asked for."""
        if self._branch is not None:
            raise UnalignableTableError(
                f"{self.name} is a branch, and a stream of Iceberg looks for what is new on main: use an aligned query"
            )
        at = self._table.snapshot(after)
        if at is None:
            raise UnalignableTableError(_EXPIRED.format(table=self.name, snapshot=after))
        later = []
        for snapshot in self._ancestors():
            if snapshot.snapshotId() == after:
                break
            later.append(int(snapshot.timestampMillis()))
        else:
            raise UnalignableTableError(
                f"{self.name}@{after} isn't in the history of the table any more: it was rolled back"
            )
        time = later[-1] if later else int(at.timestampMillis()) + 1
        if time <= int(at.timestampMillis()):
            raise UnalignableTableError(
                f"{self.name}@{after} and the snapshot after it have the same time, by which alone a stream of Iceberg "
                "can begin: use an aligned query, or begin at another snapshot"
            )
        return {"stream-from-timestamp": str(time)}

    def write_marked(self, mark: str, write: Callable[[], object]) -> None:
        """Iceberg takes properties of snapshots from the JVM's thread. A setting of the session would do only from
        Spark 4 on."""
        inside: Any = self.spark
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

    def newest_written(self) -> int | None:
        found = next(self._written(), None)
        return None if found is None else int(found.snapshotId())

    def find_mark(self, mark: str, after: int | None) -> WriteSearch:
        last: Any = None
        for snapshot in self._written():
            if snapshot.snapshotId() == after:
                return WriteSearch(None, is_certain=True)
            found = snapshot.summary().get(_PROPERTY)
            if found == mark:
                return WriteSearch(int(snapshot.snapshotId()), is_certain=True)
            if found is not None and is_earlier(found, mark):
                return WriteSearch(None, is_certain=True)
            last = snapshot
        is_whole = last is None or last.parentId() is None
        return WriteSearch(None, is_certain=after is None and is_whole)

    def fault_of_write(self, mark: str, after: int | None) -> str | None:
        """A compaction in the same write changes no row."""
        application, marked, unmarked = self.spark.sparkContext.applicationId, list[int](), list[int]()
        for snapshot in self._written():
            if snapshot.snapshotId() == after:
                break
            summary, number = snapshot.summary(), int(snapshot.snapshotId())
            found = summary.get(_PROPERTY)
            if found == mark and _EFFECTS.get(str(snapshot.operation())) is not CommitEffect.KEEPS:
                marked.append(number)
            elif found is None and summary.get("spark.app.id") == application:
                unmarked.append(number)
        if len(marked) > 1:
            return (
                f"the snapshots {', '.join(map(str, reversed(marked)))} are more than one commit of the barrier {mark}"
            )
        return None if marked or not unmarked else f"the snapshot {unmarked[0]} doesn't carry the barrier {mark}"

    def _written(self) -> Iterator[Any]:
        """Yield the snapshots that this session's writes are among, the newest first. Those that it stages, by
        `spark.wap.id`, have no branch."""
        conf = self.spark.conf
        branch, staged = (conf.get(f"spark.wap.{kind}", None) for kind in ("branch", "id"))
        if (branch or staged) and self._table.properties().get("write.wap.enabled") != "true":
            branch = staged = None
        branch = self._branch or branch
        if staged is not None and branch is None:
            yield from (
                snapshot
                for snapshot in list(self._table.snapshots())[::-1]
                if snapshot.summary().get("wap.id") == staged
            )
        at = None if branch is None else self._table.snapshot(branch)
        yield from self._ancestors(at)  # a branch that isn't there yet begins at main

    def _ancestors(self, of: Any = None) -> Iterator[Any]:
        """Yield a snapshot, the newest one unless another is given, and those that it was made from, as far as they
        haven't expired."""
        at = self._head() if of is None else of
        while at is not None:
            yield at
            parent = at.parentId()
            at = None if parent is None else self._table.snapshot(parent)


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
