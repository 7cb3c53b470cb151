"""Finds the snapshot at which a question starts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from headwater.lineage.questions.answers import LimitReason
from headwater.lineage.questions.datasets import Dataset
from headwater.lineage.questions.traversal.context import Basis, TraversalContext
from headwater.lineage.questions.traversal.identities import FOREVER
from headwater.lineage.questions.traversal.snapshot_rows import PAIMON, SnapshotWrite, load_unversioned_before
from headwater.lineage.questions.traversal.snapshot_writers import SnapshotRef

_NEWEST: Final = (32, 128, 512)
"""How many writes are looked at, until one fits: others are of other branches, or deleted."""
_NO_DATA: Final = frozenset({"COMPACT", "ANALYZE", "VACUUM", "ALTER"})


@dataclass
class StartPoint:
    """The snapshot that a question is about, with its writes as far as they are known."""

    dataset: Dataset
    snapshot: SnapshotRef | None
    """None if the dataset has no snapshots, or none is known."""
    writes: list[SnapshotWrite]
    note: str = ""

    def label(self, names: Mapping[bytes, Dataset]) -> str:
        name = names.get(self.dataset.key, self.dataset).label
        if self.snapshot is None:
            return name
        branch = f"[{self.snapshot.branch}]" if self.snapshot.branch else ""
        return f"{name}{branch}@{self.snapshot.snapshot}"


class StartSelector(NamedTuple):
    """Selects a snapshot. The default is the newest, of the newest generation that has it."""

    snapshot: int | None = None
    generation: str | None = None
    branch: str | None = None


def find_start(walk: TraversalContext, dataset: Dataset, which: StartSelector, basis: Basis) -> StartPoint:
    return find_starts(walk, [(dataset, which)], basis)[0]


def find_starts(
    walk: TraversalContext, wanted: Sequence[tuple[Dataset, StartSelector]], basis: Basis
) -> list[StartPoint]:
    """Find the snapshots of several tables at once."""
    at = FOREVER if walk.as_of is None else walk.as_of
    newest = _newest_writes(walk, wanted, at)
    refs = [_ref(*one, write, at) for one, write in zip(wanted, newest, strict=True)]
    walk.makers.load(
        ref
        for ref, write in zip(refs, newest, strict=True)
        if ref is not None and (write is None or walk.makers.near(ref) is None)
    )
    found = []
    for (dataset, which), ref, write in zip(wanted, refs, newest, strict=True):
        if ref is None:
            found.append(_without_versions(walk, dataset, at, basis))
        elif write is None:
            found.append(_start_at_number(walk, dataset, which, ref, basis))
        else:
            writes = walk.makers.writer(ref)
            merged = _merged_since(walk, dataset, which, write)
            if merged is not None:
                found.append(
                    _start_at_number(
                        walk, dataset, which._replace(snapshot=merged), ref._replace(snapshot=merged), basis
                    )
                )
                continue
            found.append(StartPoint(dataset, ref, writes, _note(writes[0] if writes else write, basis)))
    return found


def _newest_writes(
    walk: TraversalContext, wanted: Sequence[tuple[Dataset, StartSelector]], at: int
) -> list[SnapshotWrite | None]:
    """Return the newest visible write of a snapshot, for each table of which that is wanted."""
    found: list[SnapshotWrite | None] = [None] * len(wanted)
    waiting = {place.key: at for place, which in wanted if which.snapshot is None}
    for number in _NEWEST:
        histories = walk.makers.read_back(waiting, number)
        for place, (dataset, which) in enumerate(wanted):
            if which.snapshot is None and found[place] is None:
                found[place] = _newest(histories.get(dataset.key, ()), which)
        known = {dataset.key for (dataset, _), write in zip(wanted, found, strict=True) if write is not None}
        waiting = {place: at for place in waiting if place not in known and len(histories.get(place, ())) >= number}
        if not waiting:
            break
    return found


def _newest(history: Sequence[SnapshotWrite], which: StartSelector) -> SnapshotWrite | None:
    """Return the newest visible write of a snapshot."""
    fitting = [
        state
        for state in history
        if state.snapshot is not None
        and not state.hidden
        and state.branch == which.branch
        and (state.main or which.branch is not None)
        and (which.generation is None or state.generation == which.generation)
    ]
    return max(fitting, key=lambda state: (state.at, state.snapshot), default=None)


def _merged_since(walk: TraversalContext, dataset: Dataset, which: StartSelector, newest: SnapshotWrite) -> int | None:
    """Return the snapshot of another branch that has become the newest one since a write: Paimon reports no commit of
    that."""
    if newest.format != PAIMON:
        return None
    at = FOREVER if walk.as_of is None else walk.as_of
    later = [set_back for set_back in walk.makers.set_backs.of(dataset.key) if newest.at < set_back.at <= at]
    last = max(
        (set_back for set_back in later if set_back.branch == which.branch), key=lambda state: state.at, default=None
    )
    if last is None or last.newest is None:
        return None
    walk.makers.load([SnapshotRef(dataset.key, last.newest, newest.generation, which.branch, at)])
    return last.newest


def _ref(dataset: Dataset, which: StartSelector, newest: SnapshotWrite | None, at: int) -> SnapshotRef | None:
    if which.snapshot is not None:
        return SnapshotRef(dataset.key, which.snapshot, which.generation, which.branch, at)
    if newest is None or newest.snapshot is None:
        return None
    return SnapshotRef(dataset.key, newest.snapshot, newest.generation, newest.branch, at)


def _start_at_number(
    walk: TraversalContext, dataset: Dataset, which: StartSelector, ref: SnapshotRef, basis: Basis
) -> StartPoint:
    """Return a snapshot that was named by its number, after its writes were loaded."""
    snapshot, generation, branch = which
    found_writes = walk.makers.of(ref) or ([] if branch else walk.makers.of(ref._replace(any_branch=True)))
    generations = walk.makers.generations(ref)
    if generation is None and found_writes and len(generations) > 1:
        detail = (
            f"the table was dropped and made again, and {len(generations)} of its generations have this number: "
            f"this is generation {found_writes[0].generation}"
        )
        walk.limits.add_snapshot(LimitReason.UNKNOWN_SNAPSHOT, dataset.key, snapshot, detail)
    if not found_writes:
        walk.limits.add_snapshot(LimitReason.UNKNOWN_WRITER, dataset.key, snapshot, "its writer is unknown")
        return StartPoint(dataset, ref, [])
    ref = ref._replace(
        generation=found_writes[0].generation if generation is None else generation, branch=found_writes[0].branch
    )
    return StartPoint(dataset, ref, found_writes, _note(found_writes[0], basis))


def _without_versions(walk: TraversalContext, dataset: Dataset, at: int, basis: Basis) -> StartPoint:
    """Select by time: the newest commit, or all since the last one that replaced everything."""
    found: list[SnapshotWrite] = []
    for write in load_unversioned_before(walk.connection, list(walk.identities.group(dataset.key)), at):
        found.append(write)
        if basis is Basis.COMMIT or write.restarts:
            break
    return StartPoint(dataset, None, walk.makers.keep(found), "the table has no versions: its newest commits are given")


def _note(write: SnapshotWrite, basis: Basis) -> str:
    if basis is Basis.COMMIT and write.kind in _NO_DATA:
        return (
            f"its commit was a {write.kind}, which changes no rows: ask for the state to see what they were made from"
        )
    return ""
