"""Where the time of a table's last commit went, and what its trigger costs in files. What isn't known is None."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from typing import Any, Final

from sqlalchemy import Connection, select

from headwater.lineage.questions.traversal.reconciled import is_pointer
from headwater.lineage.questions.traversal.snapshot_rows import (
    SnapshotRead,
    SnapshotWrite,
    load_reads_of_commits,
    load_writes,
)
from headwater.lineage.questions.traversal.snapshot_writers import CommitReporter, deletion_subject_of
from headwater.lineage.questions.traversal.tombstone_lookup import TombstoneLookup
from headwater.lineage.rows import tables as t
from headwater.lineage.sql.key_lookup import PairLookup
from headwater.lineage.sql.tables import table_of

SMALL_FILE: Final = 16 * 1024 * 1024
"""Bytes below which a file costs readers more to open than to read."""
_DAY: Final = timedelta(days=1)


@dataclass(frozen=True)
class HopTimes:
    """The last commit of a table, from the commit before it to its end."""

    source: timedelta | None = None
    """From the table's commit before to the newest commit that was read: nothing, if that was there already."""
    trigger: timedelta | None = None
    """From the newest commit that was read to the start of the statement that read it."""
    run: timedelta | None = None
    """From the start of the statement to its snapshot."""
    commit: timedelta | None = None
    """From the snapshot, as the format recorded its time, to the end of the statement."""
    statement: timedelta | None = None
    """The run and the commit together, which is known for more formats."""


NO_TIMES: Final = HopTimes()


@dataclass(frozen=True)
class TriggerCost:
    """What it costs to write a table as often as it is."""

    commits_per_day: float
    files_per_day: float | None = None
    file_bytes: int | None = None
    """The mean size of a file."""
    recommended: timedelta | None = None
    """The shortest interval at which files aren't small, and a statement ends before the next one is due."""


@dataclass(frozen=True)
class HopCommits:
    """The last commits of a table, the newest first: rows of its writes, with what their commits say."""

    writes: Sequence[Any]
    before: int | None
    """When the statement of the commit before the newest one had ended, if that isn't among them."""


def load_hop_times(connection: Connection, commits: Mapping[bytes, HopCommits]) -> dict[bytes, HopTimes]:
    """Return where the time went, by the table."""
    newest = {one: found.writes[0] for one, found in commits.items() if found.writes}
    hiding = TombstoneLookup(connection)
    reads = _load_reads(connection, list(newest.values()), hiding)
    arrivals = _load_arrivals(connection, [read for several in reads.values() for read in several], hiding)
    return {
        one: _times(write, _previous(commits[one]), _arrived(reads.get(bytes(write.commit_id), ()), arrivals, write))
        for one, write in newest.items()
    }


def trigger_cost(commits: HopCommits, usual: timedelta | None, times: HopTimes) -> TriggerCost | None:
    """Return what an interval costs; None if it isn't known how often the table is written."""
    if not usual:
        return None
    number = len({write.barrier for write in commits.writes})
    files = _total(write.file_count for write in commits.writes)
    size = _total(write.byte_count for write in commits.writes)
    mean = size / files if files and size else None
    recommended = None
    if mean is not None and times.statement is not None:
        recommended = max(times.statement, usual * (SMALL_FILE / mean))
    return TriggerCost(
        commits_per_day=_DAY / usual,
        files_per_day=None if files is None else files / number * (_DAY / usual),
        file_bytes=None if mean is None else round(mean),
        recommended=recommended,
    )


def _total(counts: Any) -> int | None:
    """Return the sum of counts; None if one isn't known, or there is none."""
    known = list(counts)
    return sum(known) if known and None not in known else None


def _previous(commits: HopCommits) -> int | None:
    newest = commits.writes[0].barrier
    earlier = next((write for write in commits.writes if write.barrier != newest), None)
    return commits.before if earlier is None else earlier.ended_at


def _times(write: Any, previous: int | None, arrived: int | None) -> HopTimes:
    started, ended, snapshot = write.started_at, write.ended_at, write.snapshot_time
    is_inside = None not in {started, ended, snapshot} and started <= snapshot <= ended
    return HopTimes(
        source=_span(previous, arrived),
        trigger=_span(arrived, started),
        run=_span(started, snapshot) if is_inside else None,
        commit=_span(snapshot, ended) if is_inside else None,
        statement=_span(started, ended),
    )


def _span(start: int | None, end: int | None) -> timedelta | None:
    """Return the time between; none has passed if the end was first."""
    return None if start is None or end is None else timedelta(microseconds=max(end - start, 0))


def _load_reads(
    connection: Connection, writes: Collection[Any], hiding: TombstoneLookup
) -> dict[bytes, list[SnapshotRead]]:
    """Return what commits read, by the commit. A read that isn't shown is one of nothing that is known."""
    by_commit = {bytes(write.commit_id): write for write in writes}
    reads = list(load_reads_of_commits(connection, {(key, write.barrier) for key, write in by_commit.items()}))
    hidden = hiding.are_hidden([deletion_subject_of(read, _reporter(by_commit[read.commit_id])) for read in reads])
    reads = [read._replace(dataset=None) if why else read for read, why in zip(reads, hidden, strict=True)]
    found: dict[bytes, list[SnapshotRead]] = {}
    for read in reads:
        found.setdefault(read.commit_id, []).append(read)
    return found


def _reporter(write: Any) -> CommitReporter:
    run = None if write.run is None else bytes(write.run)
    return CommitReporter((write.job_namespace, write.job), (write.parent_namespace, write.parent_job), run)


_Arrivals = Mapping[tuple[bytes, int], Sequence[tuple[SnapshotWrite, int | None]]]


def _load_arrivals(connection: Connection, reads: Collection[SnapshotRead], hiding: TombstoneLookup) -> _Arrivals:
    """Return the writes of the snapshots that were read, by dataset and number, each with when its statement ended."""
    pairs = {(read.dataset, read.snapshot) for read in reads if read.dataset and read.snapshot is not None}
    writes = [write for write in load_writes(connection, pairs) if not is_pointer(write)] if pairs else []
    hidden = hiding.are_hidden([deletion_subject_of(write, write) for write in writes])
    writes = [write for write, why in zip(writes, hidden, strict=True) if not why]
    commits = {(write.commit_id, write.barrier) for write in writes if write.commit_id is not None}
    ends = {bytes(row.id): row.ended_at for row in _ends().by_barrier(connection, commits)} if commits else {}
    found: dict[tuple[bytes, int], list[tuple[SnapshotWrite, int | None]]] = {}
    for write in writes:
        if write.dataset is not None and write.snapshot is not None:
            found.setdefault((write.dataset, write.snapshot), []).append((write, ends.get(write.commit_id or b"")))
    return found


@cache
def _ends() -> PairLookup:
    row = table_of(t.COMMIT).c
    return PairLookup(select(row.id, row.ended_at), row.id, row.barrier)


def _arrived(reads: Sequence[SnapshotRead], arrivals: _Arrivals, write: Any) -> int | None:
    """Return when the newest commit that was read had ended; None if that isn't known of each."""
    times = [_arrival_of(read, arrivals, write.committed_at) for read in reads]
    return max((time for time in times if time is not None), default=None) if None not in times else None


def _arrival_of(read: SnapshotRead, arrivals: _Arrivals, before: int | None) -> int | None:
    """Return when a snapshot was there. Numbers come again, after a roll-back of Paimon say: the newest one is meant
    that was written before the read."""
    if read.dataset is None or read.snapshot is None:
        return None
    fitting = [
        (write.at, ended)
        for write, ended in arrivals.get((read.dataset, read.snapshot), ())
        if write.branch == read.branch
        and (None in {write.generation, read.generation} or write.generation == read.generation)
        and (before is None or write.at <= before)
        and ended is not None
    ]
    return max(fitting)[1] if fitting else None
