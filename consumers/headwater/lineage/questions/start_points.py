"""Finds the snapshot at which a question starts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from headwater.lineage.questions.answers import LimitReason
from headwater.lineage.questions.datasets import Dataset
from headwater.lineage.questions.traversal.context import Basis, TraversalContext
from headwater.lineage.questions.traversal.identities import FOREVER
from headwater.lineage.questions.traversal.snapshot_rows import (
    SnapshotWrite,
    load_unversioned_before,
    load_writes_before,
)
from headwater.lineage.questions.traversal.snapshot_writers import SnapshotRef

_NEWEST: Final = 64
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
    snapshot, generation, branch = which
    at = FOREVER if walk.as_of is None else walk.as_of
    if snapshot is None:
        return _newest(walk, dataset, which, at, basis)
    ref = SnapshotRef(dataset.key, snapshot, generation, branch, at)
    walk.makers.load([ref])
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


def _newest(walk: TraversalContext, dataset: Dataset, which: StartSelector, at: int, basis: Basis) -> StartPoint:
    group = list(walk.identities.group(dataset.key))
    there = walk.makers.keep(load_writes_before(walk.connection, group, at, _NEWEST))
    fitting = [
        each
        for each in there
        if each.snapshot is not None
        and not each.hidden
        and each.branch == which.branch
        and (which.generation is None or each.generation == which.generation)
    ]
    if fitting:
        newest = max(fitting, key=lambda each: (each.at, each.snapshot))
        assert newest.snapshot is not None  # noqa: S101 - it was chosen for it
        ref = SnapshotRef(dataset.key, newest.snapshot, newest.generation, newest.branch, at)
        walk.makers.load([ref])
        found_writes = walk.makers.of(ref)
        return StartPoint(dataset, ref, found_writes, _note(found_writes[0] if found_writes else newest, basis))
    return _without_versions(walk, dataset, group, at, basis)


def _without_versions(
    walk: TraversalContext, dataset: Dataset, group: list[bytes], at: int, basis: Basis
) -> StartPoint:
    """Select by time: the newest commit, or all since the last one that replaced everything."""
    found: list[SnapshotWrite] = []
    for each in load_unversioned_before(walk.connection, group, at):
        found.append(each)
        if basis is Basis.COMMIT or each.restarts:
            break
    return StartPoint(dataset, None, walk.makers.keep(found), "the table has no versions: its newest commits are given")


def _note(write: SnapshotWrite, basis: Basis) -> str:
    if basis is Basis.COMMIT and write.kind in _NO_DATA:
        return (
            f"its commit was a {write.kind}, which changes no rows: ask for the state to see what they were made from"
        )
    return ""
