"""What commits took and which application or batch made them, and commits that may have read anything."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, NamedTuple

from sqlalchemy import Connection, select

from headwater.lineage.mapping.commits import UNKNOWN
from headwater.lineage.questions.traversal.snapshot_rows import SnapshotWrite, load_writes_of_commits
from headwater.lineage.rows import RowKind
from headwater.lineage.rows import tables as t
from headwater.lineage.sql.key_lookup import PairLookup, select_by_keys
from headwater.lineage.sql.tables import table_of

_MOST_UNCLEAR: Final = 1_000
"""How many commits are looked at whose sources aren't shown."""


@dataclass(frozen=True)
class Amount:
    """Rows and bytes that were counted."""

    rows: int = 0
    bytes: int = 0
    unknown: int = 0
    """How many reads or writes told no rows: there may be more."""

    def __add__(self, other: Amount) -> Amount:
        return Amount(self.rows + other.rows, self.bytes + other.bytes, self.unknown + other.unknown)


def total(amounts: Iterable[Amount]) -> Amount:
    return sum(amounts, Amount())


@dataclass(frozen=True)
class CommitSource:
    """Which application made a commit, and by which batch of which stream."""

    application: str | None
    batch_id: int | None
    incarnation: bytes | None


class UnclearWrite(NamedTuple):
    """A write of a commit that may have read anything."""

    write: SnapshotWrite
    opaque: str | None
    """What Spark shows of what was read; None if it isn't known which of the commit's inputs it was made from."""


def amounts_written(connection: Connection, commits: Collection[tuple[bytes, int]]) -> dict[bytes, Amount]:
    """Return what commits wrote, by the id of the write. Commits are given by id and barrier."""
    return _amounts(connection, t.WRITE, commits)


def amounts_read(connection: Connection, commits: Collection[tuple[bytes, int]]) -> dict[bytes, Amount]:
    """Return what commits read, by the id of the read."""
    return _amounts(connection, t.READ, commits)


def _amounts(connection: Connection, kind: RowKind, commits: Collection[tuple[bytes, int]]) -> dict[bytes, Amount]:
    return {
        bytes(row.id): Amount(row.row_count or 0, row.byte_count or 0, int(row.row_count is None))
        for row in _counts(kind).by_barrier(connection, commits)
    }


@cache
def _counts(kind: RowKind) -> PairLookup:
    row = table_of(kind).c
    return PairLookup(select(row.id, row.row_count, row.byte_count), row.commit_id, row.barrier)


def commit_sources(connection: Connection, commits: Collection[tuple[bytes, int]]) -> dict[bytes, CommitSource]:
    """Return who made commits, by the commit's id."""
    return {
        bytes(row.id): CommitSource(row.application, row.batch_id, row.incarnation and bytes(row.incarnation))
        for row in _sources().by_barrier(connection, commits)
    }


@cache
def _sources() -> PairLookup:
    row = table_of(t.COMMIT).c
    return PairLookup(select(row.id, row.application, row.batch_id, row.incarnation), row.id, row.barrier)


def stream_checkpoints(connection: Connection, runs: Collection[bytes]) -> dict[bytes, str]:
    """Return where the checkpoints of streams are, by the run."""
    row = table_of(t.RUN).c
    chosen = select(row.run, row.stream).where(row.stream.is_not(None))
    found = ((bytes(each.run), json.loads(each.stream)) for each in select_by_keys(connection, chosen, row.run, runs))
    return {run: stream["checkpoint"] for run, stream in found if stream.get("checkpoint")}


def unclear_writes(connection: Connection, since: int, datasets: Collection[bytes]) -> tuple[list[UnclearWrite], bool]:
    """Return the writes since a time that can be made from anything, and whether there are more of them: those of
    commits that read what Spark doesn't show, and of these tables those of which it isn't known what they were made
    from."""
    write, read, place = table_of(t.WRITE).c, table_of(t.READ).c, table_of(t.PLACE).c
    unknown = select(place.id, place.dataset).where(place.made_from == UNKNOWN)
    opaque = select(place.id, place.opaque).where(place.mode.is_not(None), place.dataset.is_(None))
    places = [bytes(row.id) for row in select_by_keys(connection, unknown, place.dataset, datasets)]
    names = {bytes(row.id): row.opaque for row in connection.execute(opaque.where(place.opaque.is_not(None)))}
    unsure = _commits_since(connection, (write.commit_id, write.barrier, write.place_id, write.first), since, places)
    blind = _commits_since(connection, (read.commit_id, read.barrier, read.place_id, read.first), since, names)
    opaques = {(bytes(row.commit_id), row.barrier): names[bytes(row.place_id)] for row in blind}
    commits = {*opaques, *((bytes(row.commit_id), row.barrier) for row in unsure)}
    found = [
        UnclearWrite(one, opaques.get((one.commit_id, one.barrier)))
        for one in load_writes_of_commits(connection, commits)
        if one.commit_id is not None and ((one.commit_id, one.barrier) in opaques or one.made_from == UNKNOWN)
    ]
    return found, max(len(unsure), len(blind)) >= _MOST_UNCLEAR


def _commits_since(connection: Connection, columns: Sequence[Any], since: int, places: Iterable[bytes]) -> list[Any]:
    *_, place, first = columns
    chosen = select(*columns).where(first >= since).order_by(first).limit(_MOST_UNCLEAR)
    return list(select_by_keys(connection, chosen, place, places))
