"""The tables of a correction: what is wrong in each, whether it still is, and where its mirror begins."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

from sqlalchemy import select

from headwater.events.scalars import Format
from headwater.lineage.questions.answers import LimitReason
from headwater.lineage.questions.commit_facts import Amount, total
from headwater.lineage.questions.cycles import number_components
from headwater.lineage.questions.datasets import Dataset, load_datasets
from headwater.lineage.questions.start_points import StartPoint, StartSelector, find_starts
from headwater.lineage.questions.traversal.context import Basis, TraversalContext
from headwater.lineage.questions.traversal.snapshot_rows import SnapshotWrite
from headwater.lineage.rows import tables as t
from headwater.lineage.sql.key_lookup import select_by_keys
from headwater.lineage.sql.tables import table_of
from headwater.versions.commit_lines import keeps_rows
from headwater.versions.correction.model import (
    CorrectionMode,
    JobKind,
    MirrorKind,
    PlannedJob,
    PlannedTable,
    TableVerdict,
)
from headwater.versions.correction.planned_jobs import ChainJobKey, JobPlanner, has_unknown_job, is_made_again
from headwater.versions.correction.wrong_snapshots import WrongSnapshots
from headwater.versions.model import Doubt
from headwater.versions.version_question import NamedVersion, VersionQuestion

MIRRORS: Final = {
    Format.ICEBERG.value: MirrorKind.BRANCH,
    Format.PAIMON.value: MirrorKind.BRANCH,
    Format.DELTA.value: MirrorKind.CLONE,
}
_NAMED: Final = 5
"""How many snapshots a sentence names."""


@dataclass
class ChainTable:
    """A table with what is wrong in it, while the plan is made."""

    key: bytes
    dataset: Dataset
    writes: list[SnapshotWrite] = field(default_factory=list)
    """Wrong snapshots of main, the oldest first."""
    branches: set[str] = field(default_factory=set)
    unversioned: list[SnapshotWrite] = field(default_factory=list)
    sources: set[bytes] = field(default_factory=set)
    """The wrong tables that it was made from, itself among them."""
    head: StartPoint | None = None
    verdict: TableVerdict = TableVerdict.WRONG
    problems: list[str] = field(default_factory=list)
    in_cycle: bool = False

    @property
    def format(self) -> str | None:
        return next((write.format for write in [*reversed(self.writes), *self.unversioned] if write.format), None)

    @cached_property
    def ids(self) -> frozenset[bytes]:
        return frozenset(write.id for write in self.writes)

    @property
    def snapshots(self) -> tuple[int, ...]:
        return tuple(dict.fromkeys(write.snapshot for write in self.writes if write.snapshot is not None))

    @property
    def newest(self) -> SnapshotWrite | None:
        return self.head.writes[0] if self.head is not None and self.head.writes else None

    @property
    def last_right(self) -> int | None:
        """The snapshot that the wrong ones stand on which the newest one is made of."""
        by_snapshot = {write.snapshot: write for write in self.writes}
        at = self.newest
        if at is None or at.id not in self.ids:
            return None
        seen = {at.snapshot}
        while at.parent in by_snapshot and at.parent not in seen:
            at = by_snapshot[at.parent]
            seen.add(at.snapshot)
        return None if at.parent in seen else at.parent


class TablePlanner:
    """Finds what is known of all tables of a correction."""

    def __init__(self, walk: TraversalContext, wrong: WrongSnapshots, source: StartPoint) -> None:
        self._walk = walk
        self._wrong = wrong
        self.source: Final = wrong.table_of(source.writes[0])
        self._start: Final = {write.id for write in source.writes}
        self.tables: Final = self._collect()
        self._find_heads()
        self._find_dropped()
        self._find_right()
        self.order: Final = self._sort()

    def _collect(self) -> dict[bytes, ChainTable]:
        writes = [*self._wrong.writes.values(), *self._wrong.unversioned.values()]
        names = load_datasets(self._walk.connection, {self._wrong.table_of(write) for write in writes} - {b""})
        found = {key: ChainTable(key, dataset) for key, dataset in names.items()}
        for write in sorted(writes, key=lambda write: (write.at, write.snapshot or 0, write.id)):
            table = found.get(self._wrong.table_of(write))
            if table is None:
                what = write.opaque or "something"
                detail = f"{what} was written, and Spark doesn't show what it is: who reads it may be wrong, too"
                self._walk.limits.add(LimitReason.OPAQUE, f"job {write.job[1]}", detail)
            elif write.snapshot is None:
                table.unversioned.append(write)
            elif write.branch is None and write.main:
                table.writes.append(write)
            else:
                table.branches.add(write.branch or "?")
        for step in self._wrong.steps.values():
            target = found.get(self._wrong.table_of(step.write))
            if target is not None and step.read.dataset is not None:
                target.sources.add(self._walk.identities.one(step.read.dataset, step.read.generation) or b"")
        for table in found.values():
            table.sources &= found.keys()
        return found

    def _find_heads(self) -> None:
        versioned = [table for table in self.tables.values() if table.writes]
        wanted = [(table.dataset, StartSelector()) for table in versioned]
        for table, head in zip(versioned, find_starts(self._walk, wanted, Basis.STATE), strict=True):
            table.head = head

    def _find_dropped(self) -> None:
        """Find the tables whose wrong generation was dropped, and that weren't made again."""
        row = table_of(t.GENERATION).c
        chosen = select(row.dataset, row.generation, row.last, row.deleted)
        ended = {
            (bytes(generation.dataset), generation.generation)
            for generation in select_by_keys(self._walk.connection, chosen, row.dataset, self.tables)
            if generation.deleted >= generation.last
        }
        for table in self.tables.values():
            newest = table.newest
            if newest is not None and newest.id in table.ids and (table.key, newest.generation) in ended:
                table.verdict = TableVerdict.DROPPED

    def _find_right(self) -> None:
        """Tell tables whose newest snapshot is right from those where that isn't known."""
        others = [table for table in self.tables.values() if table.head and not self._is_wrong(table)]
        doubts = self._doubts([table for table in others if table.newest is not None])
        for table in others:
            why = [f"of {text}" for text in self._texts(doubts.get(table.key, ()))]
            if table.newest is None or table.unversioned:
                why.append("the commits that wrote it didn't all tell their snapshots")
            table.verdict = TableVerdict.UNKNOWN if why else TableVerdict.RIGHT
            if why:
                at = "" if table.newest is None else f" {table.newest.snapshot}"
                table.problems.append(f"whether its newest snapshot{at} is right isn't known: {'; '.join(why)}")

    def _is_wrong(self, table: ChainTable) -> bool:
        return table.newest is not None and table.newest.id in table.ids

    def _doubts(self, tables: Sequence[ChainTable]) -> dict[bytes, tuple[Doubt, ...]]:
        """Return what isn't known of what tables contain now."""
        if not tables:
            return {}
        question = VersionQuestion(self._walk.connection, None)
        refs = question.starts([NamedVersion(table.dataset) for table in tables])
        states = question.anew(lambda: question.loaded(refs))
        return {
            table.key: tuple(sorted(state.contents.all.doubts, key=lambda doubt: (doubt.reason.value, doubt.detail)))
            for table, state in zip(tables, states, strict=True)
        }

    def _texts(self, doubts: Sequence[Doubt]) -> Iterator[str]:
        names = load_datasets(self._walk.connection, {doubt.dataset for doubt in doubts})
        for doubt in doubts:
            at = "" if doubt.snapshot is None else f"@{doubt.snapshot}"
            yield f"{names[doubt.dataset].label}{at} {doubt.detail}"

    def _sort(self) -> list[ChainTable]:
        """Return the tables from the source on: each after all that it is made from, those of a cycle together."""
        labels = {key: table.dataset.label for key, table in self.tables.items()}
        edges = sorted(
            ((source, key) for key, table in self.tables.items() for source in table.sources),
            key=lambda edge: (labels[edge[0]], labels[edge[1]]),
        )
        component = {**dict.fromkeys(self.tables, 0), **number_components(edges)}
        for source, key in edges:
            if component[source] == component[key]:
                self.tables[key].in_cycle = self.tables[source].in_cycle = True
        depth: dict[int, int] = {}
        for key in sorted(self.tables, key=lambda key: -component[key]):
            mine = component[key]
            before = [component[source] for source, target in edges if component[target] == mine]
            depth[mine] = max((depth.get(one, 0) + 1 for one in before if one != mine), default=0)
        rank = {key: (key != self.source, depth[component[key]], component[key], labels[key]) for key in self.tables}
        return [self.tables[key] for key in sorted(self.tables, key=rank.__getitem__)]

    def above(self, keys: Collection[bytes]) -> set[bytes]:
        """Return these tables and all of the correction that they were made from."""
        found, waiting = set(keys), list(keys)
        while waiting:
            new = self.tables[waiting.pop()].sources - found
            found |= new
            waiting += new
        return found | {self.source}

    def add_problems(self, jobs: JobPlanner, planned: Mapping[ChainJobKey, PlannedJob]) -> None:
        """Find why tables can't be corrected, from the source on: what is made from such a table can't be, either."""
        makers = jobs.jobs_of_tables
        for table in self.order:
            if table.verdict is not TableVerdict.WRONG:
                continue
            table.problems += self._own_problems(table)
            for job in sorted(makers.get(table.key, ()), key=jobs.labels.__getitem__):
                table.problems += [f"{planned[job].job} can't be run again: {each}" for each in planned[job].problems]
        for _ in self.order:  # within a cycle a table can stand before what it is made from
            for table in self.order:
                for source in sorted(table.sources - {table.key}, key=lambda key: self.tables[key].dataset.label):
                    before = self.tables[source]
                    text = f"it is made from {before.dataset.label}, which can't be corrected"
                    stuck = before.verdict in {TableVerdict.WRONG, TableVerdict.UNKNOWN} and before.problems
                    if table.verdict is TableVerdict.WRONG and stuck and not table.problems:
                        table.problems.append(text)

    def _own_problems(self, table: ChainTable) -> Iterator[str]:
        if table.unversioned and not table.writes:
            yield _without_snapshots(table.format)
            return
        if not table.writes:
            yield f"it is wrong on branches alone ({', '.join(sorted(table.branches))}), which aren't corrected"
            return
        if table.format not in MIRRORS:
            yield f"tables of {table.format or 'an unknown format'} have no branches or clones to be corrected in"
        unknown = [
            str(write.snapshot)
            for write in table.writes
            if is_made_again(write, self._wrong, self.source, self._start) and has_unknown_job(write)
        ]
        if unknown:
            shown = ", ".join(unknown[:_NAMED]) + (f" and {len(unknown) - _NAMED} more" if unknown[_NAMED:] else "")
            yield f"nobody reported who made {shown}, so how that is made again isn't known"

    def planned(
        self, table: ChainTable, mode: CorrectionMode, jobs: JobPlanner, planned: Mapping[ChainJobKey, PlannedJob]
    ) -> PlannedTable:
        """Return what is known of a table, and where its mirror begins."""
        makers = [planned[job] for job in jobs.jobs_of_tables.get(table.key, ())]
        newest = table.newest
        is_source = table.key == self.source
        mirror = MIRRORS.get(table.format or "")
        is_mirrored = table.verdict is TableVerdict.WRONG and not table.problems
        first = min((write.snapshot for write in table.writes if write.id in self._start and write.snapshot), default=0)
        starts_at = first if is_source else self._starts_at(table, mode, makers)
        ended = [f"its branch {branch} is wrong, too, and stays so" for branch in sorted(table.branches)]
        return PlannedTable(
            table=table.dataset.label,
            format=table.format,
            verdict=table.verdict,
            is_source=is_source,
            snapshots=table.snapshots,
            newest=None if newest is None else newest.snapshot,
            last_right=table.last_right,
            mirror=mirror if is_mirrored else None,
            starts_at=starts_at if is_mirrored else None,
            made_from=tuple(sorted(self.tables[key].dataset.label for key in table.sources)),
            jobs=tuple(sorted(job.job for job in makers)),
            written=_written(table, jobs.written),
            problems=tuple(dict.fromkeys(table.problems)),
            notes=tuple(ended) if table.writes else (),
            in_cycle=table.in_cycle,
        )

    def _starts_at(self, table: ChainTable, mode: CorrectionMode, jobs: Sequence[PlannedJob]) -> int | None:
        """Return the snapshot at which a mirror begins. In full a table begins empty if all of it is made again: by the
        first of the jobs' commits, or since streams read all from their begin. Batch jobs that add rows, or replace
        some, run for their wrong runs alone, so that what was there before has to stay. Aligned jobs play their wrong
        barriers alone, on what these found."""
        kinds = {job.kind for job in jobs}
        if mode is CorrectionMode.INCREMENTAL or kinds == {JobKind.ALIGNED}:
            return table.last_right
        first = next((write for write in table.writes if not keeps_rows([write])), None)
        is_made_anew = first is not None and first.restarts
        return None if is_made_anew or JobKind.STREAM in kinds else table.last_right


def _without_snapshots(table_format: str | None) -> str:
    if table_format in MIRRORS:
        return "which of its snapshots are wrong isn't known: the commits that wrote them didn't tell their numbers"
    what = table_format or "its format"
    return f"{what} has no snapshots: what is wrong in it can't be told from the rest, and readers would see it change"


def _written(table: ChainTable, amounts: Mapping[bytes, Amount]) -> Amount:
    writes = [*table.writes, *table.unversioned]
    return total(amounts[write.id] for write in writes if write.id in amounts)
