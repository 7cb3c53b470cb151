"""Finds the commits of a shared table that some tables contain and others lack."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Final

from headwater.lineage.questions.snapshots import format_job_key
from headwater.lineage.questions.traversal.snapshot_rows import ICEBERG
from headwater.lineage.questions.traversal.snapshot_writers import SnapshotRef
from headwater.versions.consistency import SharedVersions
from headwater.versions.histories import VersionHistories
from headwater.versions.model import SourceState, TableContents, Version
from headwater.versions.source_states import StateFolder, own_state

_MOST: Final = 1_000
"""How many commits of a shared table are looked through."""


@dataclass(frozen=True)
class Reach:
    """How far one reader of a shared table has got."""

    table: TableContents
    """The table that contains it, or is the shared table itself."""
    reader: bytes
    """The table that read it: that one, or one upstream of it."""
    state: SourceState


@dataclass(frozen=True)
class LackedCommit:
    """A commit of a shared table that isn't in all tables."""

    version: Version
    kind: str | None
    job: str | None
    lacking: tuple[Reach, ...]
    """Those who haven't got so far."""


def reaches_of(row: SharedVersions, states: Sequence[TableContents], folder: StateFolder) -> list[Reach]:
    """Return how far each reader of a shared table has got; one that is the shared table is at its own version."""
    found: list[Reach] = []
    for each in states:
        if each.dataset == row.dataset:
            found.append(Reach(each, each.dataset, own_state(each.version)))
            continue
        readers: dict[bytes, list[SourceState]] = {}
        for reader, state in row.contained.get(each.dataset, ()):
            readers.setdefault(reader, []).append(state)
        found += (Reach(each, reader, _farthest(some, folder)) for reader, some in readers.items())
    return found


def farthest(reaches: Sequence[Reach], folder: StateFolder) -> SourceState:
    """Return the one that reaches farthest."""
    return _farthest([reach.state for reach in reaches], folder)


def _farthest(states: Sequence[SourceState], folder: StateFolder) -> SourceState:
    return reduce(lambda one, other: other if folder.is_older(one, other) else one, states)


def lacked_commits(
    reaches: Sequence[Reach], histories: VersionHistories, folder: StateFolder
) -> list[LackedCommit] | None:
    """Return the commits after the version up to which all have got, newest first. None if that can't be told: the
    versions aren't on one line of commits, as after a rollback, or too many are in between."""
    newest = farthest(reaches, folder)
    waiting = {reach.state.version.key for reach in reaches}
    behind: list[Reach] = []
    found: list[LackedCommit] = []
    for ref in _line(newest, histories):
        there = [reach for reach in reaches if _is_at(reach.state, ref, histories)]
        waiting -= {reach.state.version.key for reach in there}
        behind += there
        if not waiting:
            return found
        lacking = tuple(reach for reach in reaches if reach not in behind)
        found.append(_commit(newest.version, ref, lacking, histories))
    return None


def _line(newest: SourceState, histories: VersionHistories) -> Iterator[SnapshotRef]:
    version = newest.version
    if version.snapshot is None:
        return iter(())
    where = (version.dataset, version.snapshot, version.generation, version.branch)
    return histories.line(SnapshotRef(*where, any_branch=version.format == ICEBERG), _MOST)


def _is_at(state: SourceState, ref: SnapshotRef, histories: VersionHistories) -> bool:
    version = state.version
    if version.snapshot != ref.snapshot:
        return False
    return version.writer is None or any(commit.id == version.writer for commit in histories.writer(ref))


def _commit(newest: Version, ref: SnapshotRef, lacking: tuple[Reach, ...], histories: VersionHistories) -> LackedCommit:
    write = histories.writer(ref)
    where = newest._replace(
        snapshot=ref.snapshot, position=None, generation=ref.generation, branch=ref.branch, writer=None, made_at=None
    )
    if not write:
        return LackedCommit(where, None, None, lacking)
    version = where._replace(writer=write[0].id, made_at=write[0].at)
    return LackedCommit(version, write[0].kind, format_job_key(write[0].job), lacking)
