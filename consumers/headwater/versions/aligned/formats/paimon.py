"""Paimon tables: snapshots are numbers without holes, from 1. A roll-back lets the same numbers come again."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import reduce
from typing import TYPE_CHECKING, Any, ClassVar, Final

from headwater.versions.aligned.formats.protocol import (
    AlignableTable,
    CommitEffect,
    SourceCommit,
    UnalignableTableError,
    WriteSearch,
    is_earlier,
    session_settings,
)
from headwater.versions.cuts import TableSnapshot

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from headwater.versions.spark_tables import CatalogTable

_USER_PREFIX: Final = "spark.paimon.commit.user-prefix"
_KINDS: Final = {"APPEND": CommitEffect.ADDS, "COMPACT": CommitEffect.KEEPS, "ANALYZE": CommitEffect.KEEPS}
_REPLACES: Final = "OVERWRITE"
_DELETIONS: Final = "deletion-vectors.enabled"


class PaimonTable(AlignableTable):
    """A write carries its mark as the user of its commit, whose name Paimon begins with a text of the session's and
    ends with one of its own. Commit identifiers are chosen by Spark's writers themselves."""

    format: ClassVar[str] = "paimon"

    def __init__(self, spark: SparkSession, name: str) -> None:
        super().__init__(spark, name)
        self._table: Any = None
        self._snapshots: Any = None
        self._generation = ""

    def look(self, loaded: CatalogTable) -> None:
        """The catalog caches snapshots by their numbers, so they are looked at past it."""
        self._table = loaded.reload().table.getTable()
        self._snapshots = self._table.snapshotManager()
        self._generation = str(self._table.schemaManager().schema(0).timeMillis())

    @property
    def generation(self) -> str:
        return self._generation

    @property
    def can_mark(self) -> bool:
        """A row-level change of a table that keeps deletions beside its files is two commits, and half of it would pass
        for the whole."""
        return bool(self._table.options().get(_DELETIONS) != "true")

    def newest(self) -> int | None:
        found = self._snapshots.latestSnapshotId()
        return None if found is None else int(found)

    def at(self, snapshot: int) -> TableSnapshot:
        identity = self._identity(snapshot) if self._snapshots.snapshotExists(snapshot) else None
        return TableSnapshot(snapshot, self._generation, identity)

    def check_generation(self, at: TableSnapshot) -> None:
        super().check_generation(at)
        if at.identity is None or not self._snapshots.snapshotExists(at.snapshot):
            return
        if self._identity(at.snapshot) != at.identity:
            raise UnalignableTableError(
                f"{self.name} was rolled back, and its snapshot {at.snapshot} is another one than that of the data "
                "version: align it in a group of another name"
            )

    def _identity(self, snapshot: int) -> str:
        found = self._snapshots.snapshot(snapshot)
        return f"{found.commitUser()} {found.timeMillis()}"

    def _commits_after(self, at: TableSnapshot) -> list[SourceCommit] | None:
        newest = self.newest()
        if newest is None or newest < at.snapshot:
            return None
        if not self._snapshots.snapshotExists(at.snapshot):
            return None
        found = [self._commit(number) for number in range(at.snapshot + 1, newest + 1)]
        return self._with_restored(at.snapshot, found)

    def _with_restored(self, first: int, commits: Sequence[SourceCommit]) -> list[SourceCommit]:
        """Return the commits, those that have the very files of an earlier snapshot with its number."""
        if not any(commit.operation == _REPLACES for commit in commits):
            return list(commits)
        seen, found = {self._files_of(first): first}, list[SourceCommit]()
        for commit in commits:
            files = self._files_of(commit.snapshot)
            restored = seen.get(files) if commit.operation == _REPLACES else None
            found.append(commit if restored is None else replace(commit, restores=restored))
            seen.setdefault(files, commit.snapshot)
        return found

    def _files_of(self, snapshot: int) -> tuple[str, ...]:
        return files_of(self._table, self._snapshots.snapshot(snapshot))

    def _commit(self, number: int) -> SourceCommit:
        """The kind doesn't say what became of rows: UPDATE and DELETE append files in place of others, or compact the
        table with other deletions, and a row of a table with a primary key may replace another one."""
        found = self._snapshots.snapshot(number)
        kind, effect = str(found.commitKind().toString()), CommitEffect.CHANGES
        if kind in _KINDS and self._has_same_index(found, number):
            effect = _KINDS[kind]
        if effect is CommitEffect.ADDS and (self._table.primaryKeys() or self._removes_files(number)):
            effect = CommitEffect.CHANGES
        return SourceCommit(number, effect, kind)

    def _has_same_index(self, found: Any, number: int) -> bool:
        """Return whether the same rows are marked as deleted as before."""
        return number == 1 or found.indexManifest() == self._snapshots.snapshot(number - 1).indexManifest()

    def _removes_files(self, number: int) -> bool:
        inside: Any = self.spark
        paimon = inside._jvm.org.apache.paimon  # noqa: SLF001
        scan = self._table.store().newScan().withSnapshot(number).withKind(paimon.table.source.ScanMode.DELTA)
        return not scan.plan().files(paimon.manifest.FileKind.DELETE).isEmpty()

    def additions(
        self,
        after: TableSnapshot,
        until: TableSnapshot,
        commits: Sequence[SourceCommit],
    ) -> DataFrame:
        self.check_generation(after)
        self.check_generation(until)
        parts = [
            self.spark.read.option("incremental-between", f"{first - 1},{last}").table(self.name)
            for first, last in runs_without_changes(commits)
        ]
        return reduce(lambda one, other: one.unionByName(other), parts)

    def stream_options(self, after: int) -> dict[str, str]:
        return {"scan.mode": "from-snapshot", "scan.snapshot-id": str(after + 1)}

    def write_marked(self, mark: str, write: Callable[[], object]) -> None:
        with session_settings(self.spark, {_USER_PREFIX: mark}):
            write()

    def fault_of_write(self, mark: str, after: int | None) -> str | None:
        """A write that also compacts has two snapshots of one user."""
        numbers = range((after or 0) + 1, (self.newest() or 0) + 1)
        users = {str(self._snapshots.snapshot(number).commitUser()) for number in numbers}
        several = len([user for user in users if user.startswith(f"{mark}_")]) > 1
        return f"it has more than one commit of the barrier {mark}" if several else None

    def find_mark(self, mark: str, after: int | None) -> WriteSearch:
        first, newest = (after or 0) + 1, self.newest() or 0
        for number in range(newest, first - 1, -1):
            if not self._snapshots.snapshotExists(number):
                return WriteSearch(None, is_certain=False)
            user = str(self._snapshots.snapshot(number).commitUser())
            if user.startswith(f"{mark}_"):
                return WriteSearch(number, is_certain=True)
            if is_earlier(user.rpartition("_")[0], mark):
                return WriteSearch(None, is_certain=True)
        return WriteSearch(None, is_certain=newest >= (after or 0))


def files_of(table: Any, snapshot: Any) -> tuple[str, ...]:
    """Return what tells a snapshot's rows from those of others: its number comes again, and its lists are its own."""
    manifests = table.store().manifestListFactory().create().readDataManifests(snapshot)
    return str(snapshot.indexManifest()), *sorted(str(manifest.fileName()) for manifest in manifests)


def runs_without_changes(commits: Sequence[SourceCommit]) -> Iterator[tuple[int, int]]:
    """Yield the first and the last of neighbouring commits that only add rows or keep them. One that gave the files of
    an earlier snapshot back has those that were added then, and what was taken back is between."""
    run: list[int] = []
    for commit in commits:
        is_left_out = commit.effect is CommitEffect.CHANGES or commit.restores is not None
        if run and (is_left_out or commit.snapshot != run[-1] + 1):
            yield run[0], run[-1]
            run = []
        if not is_left_out:
            run.append(commit.snapshot)
    if run:
        yield run[0], run[-1]
