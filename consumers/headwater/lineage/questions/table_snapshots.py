"""The snapshots of a table, newest first: who made each, when, how large it is, and what its commit read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from heapq import merge
from itertools import islice
from operator import attrgetter
from typing import Any, Final
from uuid import UUID

from sqlalchemy import Connection, select

from headwater.events.clock import moment_of
from headwater.lineage.questions.answers import Answer, AnswerLimit, LimitReason, micros_of_argument
from headwater.lineage.questions.completeness import complete_until
from headwater.lineage.questions.datasets import Dataset, load_datasets
from headwater.lineage.questions.gaps.model import format_job, uuid_of
from headwater.lineage.questions.name_checks import TableSubject, resolve_table, subject_limits
from headwater.lineage.questions.traversal.reconciled import is_pointer, prefer_observed
from headwater.lineage.questions.traversal.snapshot_rows import (
    CHANGES,
    SnapshotRead,
    SnapshotWrite,
    load_created_snapshots,
    load_sources,
    load_writes,
    load_written_before,
)
from headwater.lineage.questions.traversal.snapshot_writers import deletion_subject_of
from headwater.lineage.questions.traversal.tombstone_lookup import TombstoneLookup
from headwater.lineage.rows import tables as t
from headwater.lineage.sql.key_lookup import PairLookup, select_by_keys
from headwater.lineage.sql.tables import table_of

AT_MOST: Final = 100


@dataclass(frozen=True)
class SnapshotSource:
    """What the commit of a snapshot read."""

    table: str
    snapshot: int | None
    version: str | None
    since: int | None
    """For changes, the snapshot behind which they began."""
    is_changes: bool

    @property
    def label(self) -> str:
        number = self.version if self.snapshot is None else str(self.snapshot)
        if number is None:
            return self.table
        return f"{self.table}@({self.since}..{number}]" if self.since is not None else f"{self.table}@{number}"


@dataclass(frozen=True)
class TableSnapshot:
    """A snapshot of a table, and the commit that made it."""

    snapshot: int | None
    """None where the format has none, or where it isn't known which one the commit made."""
    version: str | None
    parent: int | None
    branch: str | None
    generation: str | None
    is_main: bool
    """Whether the table's name means this branch."""
    is_pointer: bool
    """Whether the commit made no rows: a roll-back, or a move of main to an earlier snapshot."""
    kind: str
    """The commit's kind: APPEND, MERGE …."""
    at: datetime
    job: str | None
    parent_job: str | None
    run: UUID | None
    rows: int | None
    bytes: int | None
    files: int | None
    tags: tuple[str, ...]
    restarts: bool
    """Whether it replaced all rows of the table."""
    sources: tuple[SnapshotSource, ...]


def table_snapshots(
    connection: Connection,
    table: str | Dataset,
    *,
    branch: str | None = None,
    until: datetime | None = None,
    at_most: int = AT_MOST,
    now: datetime | None = None,
) -> Answer[TableSnapshot]:
    """Return a table's snapshots that were committed until a time, newest first: of all branches, or of one."""
    about = resolve_table(connection, table)
    before = None if until is None else micros_of_argument(until, "until")
    hiding = TombstoneLookup(connection)
    found = list(islice(_visible(connection, about, before, branch, hiding), at_most + 1))
    shown = found[:at_most]
    sources = _visible_sources(connection, shown, hiding)
    datasets = load_datasets(connection, {read.dataset for reads in sources.values() for read in reads if read.dataset})
    sizes, tags = _sizes(connection, shown), _tags(connection, about)
    rows = tuple(_snapshot(write, sources[write.id], datasets, sizes, tags) for write in shown)
    limits = subject_limits(connection, table=about, now=now)
    if len(found) > at_most:
        limits = (*limits, AnswerLimit(LimitReason.CUT, about.label, f"the newest {at_most} snapshots"))
    return Answer(rows, complete_until(connection, now), limits)


def _visible(
    connection: Connection, about: TableSubject, before: int | None, branch: str | None, hiding: TombstoneLookup
) -> Iterator[SnapshotWrite]:
    """Yield the commits on a table, newest first, without those that aren't shown."""
    written = load_written_before(connection, about.keys, before)
    for write in merge(written, _created(connection, about, before), key=attrgetter("at"), reverse=True):
        if not about.holds_at(write.dataset or b"", write.last) or (branch is not None and write.branch != branch):
            continue
        [known] = prefer_observed(connection, [write])[:1]
        if not any(hiding.are_hidden([deletion_subject_of(known, known)])):
            yield known


def _created(connection: Connection, about: TableSubject, before: int | None) -> list[SnapshotWrite]:
    """Return the snapshots that catalog changes alone made: of CREATE TABLE AS there is a commit, too."""
    found = [one for one in load_created_snapshots(connection, about.keys) if before is None or one.at <= before]
    pairs = {(one.dataset, one.snapshot) for one in found if one.dataset is not None and one.snapshot is not None}
    committed = {(write.dataset, write.snapshot, write.generation) for write in load_writes(connection, pairs)}
    return [one for one in found if (one.dataset, one.snapshot, one.generation) not in committed]


def _visible_sources(
    connection: Connection, writes: Sequence[SnapshotWrite], hiding: TombstoneLookup
) -> dict[bytes, list[SnapshotRead]]:
    by_id = {write.id: write for write in writes}
    found = load_sources(connection, writes)
    return {
        write: [read for read in reads if not any(hiding.are_hidden([deletion_subject_of(read, by_id[write])]))]
        for write, reads in found.items()
    }


def _snapshot(
    write: SnapshotWrite,
    reads: Sequence[SnapshotRead],
    datasets: Mapping[bytes, Dataset],
    sizes: Mapping[bytes, Any],
    tags: Mapping[tuple[str | None, int], tuple[str, ...]],
) -> TableSnapshot:
    size = sizes.get(write.id)
    return TableSnapshot(
        snapshot=write.snapshot,
        version=write.version,
        parent=write.parent,
        branch=write.branch,
        generation=write.generation,
        is_main=write.main,
        is_pointer=is_pointer(write),
        kind=write.kind,
        at=moment_of(write.at),
        job=format_job(*write.job),
        parent_job=format_job(*write.parent_job),
        run=uuid_of(write.run),
        rows=None if size is None else size.row_count,
        bytes=None if size is None else size.byte_count,
        files=None if size is None else size.file_count,
        tags=() if write.snapshot is None else tags.get((write.generation, write.snapshot), ()),
        restarts=write.restarts,
        sources=tuple(_source(read, datasets) for read in reads),
    )


def _source(read: SnapshotRead, datasets: Mapping[bytes, Dataset]) -> SnapshotSource:
    name = ".".join(filter(None, read.name)) or read.opaque or "?"
    label = datasets[read.dataset].label if read.dataset in datasets else name
    return SnapshotSource(label, read.snapshot, read.version, read.since, read.mode == CHANGES)


def _sizes(connection: Connection, writes: Sequence[SnapshotWrite]) -> dict[bytes, Any]:
    keys = [(write.id, write.barrier) for write in writes if write.commit_id is not None]
    return {bytes(row.id): row for row in _size_of().by_barrier(connection, keys)}


@cache
def _size_of() -> PairLookup:
    row = table_of(t.WRITE).c
    return PairLookup(select(row.id, row.row_count, row.byte_count, row.file_count), row.id, row.barrier)


def _tags(connection: Connection, about: TableSubject) -> dict[tuple[str | None, int], tuple[str, ...]]:
    """Return the tags that exist, by generation and snapshot."""
    row, found = table_of(t.TAG).c, dict[tuple[str | None, int], tuple[str, ...]]()
    for tag in select_by_keys(connection, select(table_of(t.TAG)), row.dataset, about.keys):
        if tag.last > tag.deleted and tag.snapshot is not None:
            key = (tag.generation, tag.snapshot)
            found[key] = tuple(sorted((*found.get(key, ()), tag.tag)))
    return found
