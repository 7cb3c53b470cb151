"""Which barriers an aligned job plays on mirrors: the data versions of its group from the first one that is made again,
each with the mirrors' snapshots in place of the tables'.

A *milestone* of a mirror is a snapshot of it which stands for one of its table. A data version whose snapshot of a
mirrored table has no milestone isn't played alone: what it has new comes with the next one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from headwater.versions.aligned.checkpoints import Barrier
from headwater.versions.correction.execution.tables import CorrectionError, Mirror
from headwater.versions.correction.journal import Correction
from headwater.versions.cuts import Cut, DataVersion, TableSnapshot
from headwater.versions.step_journal import StepKind, StepState

Milestone = tuple[int, int]
"""A snapshot of a table, and the mirror's that stands for it."""


@dataclass(frozen=True)
class MirroredSource:
    """A source of an aligned job that has a mirror."""

    table: str
    """As the group calls it."""
    mirror: Mirror
    milestones: tuple[Milestone, ...]
    """In their order, the oldest first."""
    wrong: frozenset[int]
    """The table's snapshots that contain what is wrong, as far as the plan knew them."""


@dataclass(frozen=True)
class MirroredSink:
    """A table that an aligned job writes, by the name that the job uses, and which has a mirror."""

    table: str
    mirror: Mirror
    begins_empty: bool
    """Then the job begins anew."""


class MirrorLines(Protocol):
    """What the tables themselves say of their snapshots."""

    def is_at_or_before(self, table: str, snapshot: TableSnapshot, later: int) -> bool:
        """Return whether a table's snapshot is this one, or was made from it."""
        ...

    def at(self, name: str, snapshot: int) -> TableSnapshot:
        """Return a snapshot of a table or a mirror as a cut has it."""
        ...


def milestones_of_source(found: Correction, mirror: Mirror, head: int) -> tuple[Milestone, ...]:
    """Return those of the table that the user corrects. Each commit of others that was taken over is one; before the
    user's last correction there is one alone, since what he corrects is wrong in all earlier ones."""
    milestones = [(mirror.begins_at_in_table, head)]
    done = [step for step in found.of(StepKind.TAKE_OVER) if step.state is StepState.DONE]
    for place, step in enumerate(done):
        follows = done[place + 1].detail["before"] if place + 1 < len(done) else head
        own, until = int(step.detail["after"]), int(step.detail["until"])
        before = int(step.detail["before"])
        milestones[-1] = (milestones[-1][0], before)
        milestones = [*milestones, (until, own)] if own == follows else [(until, head)]
    return tuple(milestones)


class BarrierPlanner:
    """Finds the barriers of one job."""

    def __init__(
        self,
        lines: MirrorLines,
        sources: Collection[str],
        mirrored: Sequence[MirroredSource],
        sinks: Sequence[MirroredSink],
    ) -> None:
        """`sources` are all tables that the job reads, by the names that its group has for them."""
        self._lines = lines
        self._sources = tuple(sources)
        self._mirrored = {each.table: each for each in mirrored}
        self._sinks = {each.table: each for each in sinks}

    def first(self, barriers: Sequence[Barrier]) -> Barrier:
        """Return the first barrier that is made again, of those that the job has played in production. A
        CorrectionError if there is none."""
        if barriers and any(each.begins_empty for each in self._sinks.values()):
            return barriers[0]
        for barrier in barriers:
            if not all(self._is_right(each, barrier.cut[each.table]) for each in self._mirrored.values()):
                return barrier
            if any(self._is_behind_begin(key.rpartition(" ")[0], at) for key, at in barrier.sinks.items()):
                return barrier
        raise CorrectionError(
            "no barrier of its checkpoint has read what is wrong: it was started with a new checkpoint since, or its "
            "checkpoint is an older copy. Leave its tables out by --only, and make them anew"
        )

    def planned(
        self, versions: Sequence[DataVersion], last: Barrier | None, heads: Mapping[str, int] | None
    ) -> Iterator[tuple[int, Cut]]:
        """Yield the number and the cut of each barrier behind the last one. With `heads`, the mirrors' newest
        snapshots, there is one at the end that has all of these."""
        at, number = (None, 0) if last is None else (last.cut, last.number)
        for version in versions:
            cut = self._mirrored_cut(version.cut)
            if cut is not None and cut != at and (at is None or self._is_later(cut, at, versions)):
                at, number = cut, max(version.number, number + 1)
                yield number, cut
        if heads is not None and versions:
            newest = {name: self._lines.at(name, head) for name, head in heads.items()}
            cut = Cut({**self._unmirrored(versions[-1].cut), **newest})
            if cut != at:
                yield max(versions[-1].number, number) + 1, cut

    def _is_right(self, source: MirroredSource, at: TableSnapshot) -> bool:
        if at.snapshot in source.wrong:
            return False
        return self._lines.is_at_or_before(source.table, at, source.mirror.begins_at_in_table)

    def _is_behind_begin(self, table: str, before: int | None) -> bool:
        """Return whether a barrier that found a sink at a snapshot wrote it after its mirror's begin."""
        sink = self._sinks.get(table)
        if sink is None or sink.begins_empty:
            return False
        if before is None:
            return False
        begins = self._lines.at(table, sink.mirror.begins_at_in_table)
        return self._lines.is_at_or_before(table, begins, before)

    def _mirrored_cut(self, cut: Cut) -> Cut | None:
        found = self._unmirrored(cut)
        for table, source in self._mirrored.items():
            at = dict(source.milestones).get(cut[table].snapshot)
            if at is not None:
                found[source.mirror.name] = self._lines.at(source.mirror.name, at)
            elif self._is_right(source, cut[table]):
                found[table] = cut[table]
            else:
                return None
        return Cut(found)

    def _unmirrored(self, cut: Cut) -> dict[str, TableSnapshot]:
        return {table: cut[table] for table in self._sources if table not in self._mirrored}

    def _is_later(self, cut: Cut, than: Cut, versions: Sequence[DataVersion]) -> bool:
        return all(self._place(table, cut, versions) >= self._place(table, than, versions) for table in self._sources)

    def _place(self, table: str, cut: Cut, versions: Sequence[DataVersion]) -> int:
        """Return how far a cut is in a table: by the milestones of its mirror, -1 before all that are known, or by the
        data versions of one that has none."""
        source = self._mirrored.get(table)
        if source is None:
            places = [place for place, version in enumerate(versions) if version.cut[table] == cut[table]]
            return max(places, default=len(versions))
        if source.mirror.name not in cut.snapshots:
            return -1
        at = cut[source.mirror.name].snapshot
        places = [place for place, milestone in enumerate(source.milestones) if milestone[1] == at]
        return max(places, default=-1)
