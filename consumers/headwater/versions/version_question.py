"""What one question about versions reads from the store, and the names in its answer."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from typing import NamedTuple, TypeVar

from sqlalchemy import Connection

from headwater.errors import ConfigurationError
from headwater.events.clock import moment_of
from headwater.lineage.questions.answers import AnswerLimit, micros_of_argument
from headwater.lineage.questions.datasets import Dataset, load_datasets
from headwater.lineage.questions.lineage_answers import add_known_limits
from headwater.lineage.questions.names import ResolvedName, find_all
from headwater.lineage.questions.start_points import StartPoint, StartSelector, find_starts
from headwater.lineage.questions.traversal.context import Basis, TraversalContext
from headwater.lineage.questions.traversal.limits import LimitCollector
from headwater.lineage.questions.traversal.snapshot_writers import SnapshotRef
from headwater.versions.answers import ContainedVersion, LackedVersion, Lateness, SharedAncestor, TableAt
from headwater.versions.consistency import SharedVersions, VersionComparison
from headwater.versions.contents import ContentsReader
from headwater.versions.differences import LackedCommit, farthest, lacked_commits, reaches_of
from headwater.versions.fixed_versions import FixedVersion, load_generations
from headwater.versions.histories import TooNear
from headwater.versions.model import Doubt, SourceState, TableContents, Version
from headwater.versions.table_parts import PartKind, part_of, split_branch

T = TypeVar("T")


class NamedVersion(NamedTuple):
    """A version of a table as a question names it: the newest one unless it has a number, of main or of a branch."""

    table: str | Dataset
    snapshot: int | None = None
    branch: str | None = None


def named_version(connection: Connection, table: str | NamedVersion) -> NamedVersion:
    """Return what a question names, where a name may be that of a branch: `lake.db.t.branch_fix@7`."""
    if not isinstance(table, str):
        return table
    name, at, number = table.rpartition("@")
    stored, branch = split_branch(connection, name if at else number)
    return NamedVersion(f"{stored}{at}{number}" if at else stored, None, branch)


class VersionQuestion:
    """What one question reads, and the names in its answer."""

    def __init__(self, connection: Connection, as_of: datetime | None) -> None:
        self.connection = connection
        self._walk = TraversalContext(connection, None if as_of is None else micros_of_argument(as_of, "as_of"))
        self.reader = ContentsReader(self._walk)
        self._names: dict[bytes, Dataset] = {}
        self._unseen: set[tuple[bytes, int | None]] = set()
        """Versions that were named, and that nobody is known to have written or read."""

    def starts(self, tables: Sequence[NamedVersion]) -> list[SnapshotRef]:
        """Resolve tables and their versions."""
        named = iter(find_all(self.connection, [table.table for table in tables if isinstance(table.table, str)]))
        resolved = [next(named) if isinstance(table.table, str) else ResolvedName(table.table) for table in tables]
        for one, table in zip(resolved, tables, strict=True):
            if one.column is not None:
                raise ConfigurationError(_no_table(str(table.table), one.dataset, one.column))
        wanted = [
            StartSelector(one.snapshot if table.snapshot is None else table.snapshot, None, table.branch)
            for one, table in zip(resolved, tables, strict=True)
        ]
        datasets = [name.dataset for name in resolved]
        found = find_starts(self._walk, [*zip(datasets, wanted, strict=True)], Basis.STATE)
        return [self._ref_of(start, one.snapshot, one.branch) for start, one in zip(found, wanted, strict=True)]

    def _ref_of(self, found: StartPoint, number: int | None, branch: str | None) -> SnapshotRef:
        if not found.writes:
            wanted = number if found.snapshot is None else found.snapshot.snapshot
            read = self.reader.histories.versions_read(found.dataset.key, branch, wanted)
            if read:
                return read[0]
            if found.snapshot is not None and number is not None:
                one = self._walk.identities.one(found.snapshot.dataset, found.snapshot.generation)
                self._unseen.add((one, found.snapshot.snapshot))
        if found.snapshot is None:
            label = self._label_of(found.dataset.key)
            if branch is not None:
                raise ConfigurationError(
                    f"the store knows no branch {branch!r} of {label}: nobody is known to have written it"
                )
            raise ConfigurationError(f"{label} has no versions that are known: {_advice(found)}")
        return found.snapshot

    def refuse_unseen(self, *refs: SnapshotRef, branch: str | None = None) -> None:
        """Raise an error if a snapshot was named that nobody is known to have written or read."""
        for ref in refs:
            if (self._walk.identities.one(ref.dataset, ref.generation), ref.snapshot) in self._unseen:
                raise self._unseen_error(ref, branch)

    def _unseen_error(self, ref: SnapshotRef, branch: str | None) -> ConfigurationError:
        dataset = load_datasets(self.connection, [ref.dataset])[ref.dataset]
        newest = find_starts(self._walk, [(dataset, StartSelector(None, None, branch))], Basis.STATE)[0].snapshot
        known = "no snapshot of it" if newest is None else f"its newest one as {newest.snapshot}"
        return ConfigurationError(
            f"the store knows no snapshot {ref.snapshot} of {dataset.label}: nobody is known to have written or read "
            f"it. The store knows {known}"
        )

    def refuse_twins(self, refs: Sequence[SnapshotRef]) -> None:
        """Raise an error unless these are two tables or more."""
        if len(refs) < 2:
            raise ConfigurationError("versions of one table alone always belong together: name two tables or more")
        seen: set[bytes] = set()
        for ref in refs:
            one = self._walk.identities.one(ref.dataset, ref.generation)
            if one in seen:
                raise ConfigurationError(f"{self._label_of(one)} is named twice: name each table once")
            seen.add(one)

    def _label_of(self, dataset: bytes) -> str:
        return load_datasets(self.connection, [dataset])[dataset].label

    def refuse_other_generations(self, refs: Sequence[SnapshotRef], fixed: Sequence[FixedVersion]) -> None:
        """Raise an error if a version is of a table that was dropped, and the name has another one now."""
        for ref, version in zip(refs, fixed, strict=True):
            if None not in (ref.generation, version.generation) and ref.generation != version.generation:
                raise ConfigurationError(
                    f"{version.table}@{version.snapshot} is of a table that was dropped and made again since: name a "
                    "version of the table that is there now"
                )

    def refuse_dropped(self, refs: Sequence[SnapshotRef]) -> None:
        """Raise an error if a number is only known of a table that was dropped: the one that is there now can have
        it, too."""
        several = load_generations(self.connection, {ref.dataset for ref in refs})
        for ref in refs:
            if ref.generation is None or len(several.get(ref.dataset, ())) < 2:
                continue
            dataset = load_datasets(self.connection, [ref.dataset])[ref.dataset]
            newest = find_starts(self._walk, [(dataset, StartSelector(None, None, ref.branch))], Basis.STATE)[
                0
            ].snapshot
            if newest is not None and newest.generation not in {None, ref.generation}:
                raise ConfigurationError(
                    f"{dataset.label}@{ref.snapshot} is of a table that was dropped and made again since, and of the "
                    "one that is there now the store knows no such snapshot: name a version of that"
                )

    def anew(self, answer: Callable[[], T]) -> T:
        """Answer, and once more for each time that something turns out to be needed that was left out."""
        while True:
            with suppress(TooNear):
                return self._unless_too_near(answer)

    def _unless_too_near(self, answer: Callable[[], T]) -> T:
        try:
            return answer()
        except TooNear as needed:
            self.reader.include(needed.tables)
            raise

    def loaded(self, refs: Sequence[SnapshotRef]) -> list[TableContents]:
        self.reader.histories.load(refs)
        return [self.reader.state(ref) for ref in refs]

    def name(self, states: Sequence[TableContents]) -> None:
        """Load the names of all tables that an answer can mention."""
        keys = {state.dataset for state in states}
        for state in states:
            keys |= {key for pair in state.contents.all.states for key in pair}
            keys |= {doubt.dataset for doubt in state.contents.all.doubts}
        self._names.update(load_datasets(self.connection, keys - self._names.keys()))

    def table_at(self, version: Version) -> TableAt:
        made_at = None if version.made_at is None else moment_of(version.made_at)
        dataset = self._names[version.dataset]
        where = (version.snapshot, version.position, version.generation, version.branch)
        return TableAt(dataset, *where, made_at, version.format)

    def contained(self, reader: bytes, state: SourceState) -> ContainedVersion:
        return ContainedVersion(
            self.table_at(state.version),
            self._names[reader],
            state.since is None and not state.has_hole,
            state.since,
            moment_of(state.read_at),
            state.job,
        )

    def shared(self, states: Sequence[TableContents], comparison: VersionComparison) -> tuple[SharedAncestor, ...]:
        return tuple(self.shared_one(states, row) for row in comparison.shared)

    def shared_one(self, states: Sequence[TableContents], row: SharedVersions) -> SharedAncestor:
        rows = []
        for state in states:
            if state.dataset == row.dataset or state.dataset in row.contained:
                found = [self.contained(*one) for one in row.contained.get(state.dataset, ())]
                order = sorted(found, key=lambda one: (one.reader.label, one.table.label))
                rows.append((self.table_at(state.version), tuple(order)))
        return SharedAncestor(self._names[row.dataset], tuple(rows), row.is_same)

    def shared_with_lacked(
        self, states: Sequence[TableContents], comparison: VersionComparison
    ) -> tuple[SharedAncestor, ...]:
        """Return the shared tables with the commits that some of the tables lack."""
        return tuple(
            replace(self.shared_one(states, row), lacked=self._lacked(states, row)) for row in comparison.shared
        )

    def _lacked(self, states: Sequence[TableContents], row: SharedVersions) -> tuple[LackedVersion, ...] | None:
        if row.is_same or len(row.versions) < 2:
            return None
        reaches = reaches_of(row, states, self.reader.folder)
        found = lacked_commits(reaches, self.reader.histories, self.reader.folder)
        return None if found is None else tuple(map(self._lacked_version, found))

    def _lacked_version(self, commit: LackedCommit) -> LackedVersion:
        lacking = tuple((self.table_at(lack.table.version), self._names[lack.reader]) for lack in commit.lacking)
        return LackedVersion(self.table_at(commit.version), commit.kind, commit.job, lacking)

    def lateness(self, states: Sequence[TableContents], row: SharedVersions) -> Lateness:
        """Return which readers of a shared table haven't got to its newest version that is in any of the tables."""
        reaches = reaches_of(row, states, self.reader.folder)
        newest = farthest(reaches, self.reader.folder).version
        late = [reach for reach in reaches if reach.reader != row.dataset and reach.state.version.key != newest.key]
        return Lateness(self.table_at(newest), [(self._names[reach.reader], reach.state.job) for reach in late])

    def cut(self, comparison: VersionComparison) -> tuple[TableAt, ...]:
        """Return the versions of the shared tables, where all contain the same one."""
        found = [next(iter(row.versions.values())) for row in comparison.shared if len(row.versions) == 1]
        return tuple(sorted((self.table_at(version) for version in found), key=lambda table: table.label))

    def limits(self, doubts: Collection[Doubt]) -> tuple[AnswerLimit, ...]:
        found = LimitCollector()
        for doubt in doubts:
            found.add_snapshot(doubt.reason, doubt.dataset, doubt.snapshot, doubt.detail)
        self._names.update(load_datasets(self.connection, set(found.datasets) - self._names.keys()))
        add_known_limits(self.connection, self._names, self.reader.histories.runs, found)
        return found.as_limits(self._names)


def _no_table(text: str, dataset: Dataset, column: Sequence[str]) -> str:
    """Say what a name means whose end is no table."""
    part = part_of(f"{dataset.label}.{column[0]}") if len(column) == 1 else None
    if part is None:
        return f"{text!r} names a column: versions are of tables"
    table = part.table
    if part.kind is PartKind.TAG or part.kind is PartKind.SNAPSHOT:
        return f"{text!r} is {part.text}: write it as {table}@{part.name}"
    return f"{text!r} is {part.text}: versions are of tables, so name a snapshot, {table}@NUMBER"


def _advice(found: StartPoint) -> str:
    return "name a version that is" if not found.note else found.note
