"""Loads what a walk upstream is going to ask for, several levels at once.

A walk takes two statements a level. Which of several writes a snapshot means is decided between two levels, in
Python. A recursive statement can't decide that, so it follows all of them, and the walk finds what it needs among
them: its answers are the same, and its statements are few.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cache
from typing import Any, Final

from sqlalchemy import (
    BigInteger,
    Connection,
    LargeBinary,
    and_,
    bindparam,
    cast,
    literal_column,
    select,
    union_all,
)

from headwater.lineage.questions.traversal.snapshot_rows import (
    SnapshotRead,
    SnapshotWrite,
    load_reads_of_commits,
    load_writes,
)
from headwater.lineage.rows import tables as t
from headwater.lineage.sql.tables import table_of

DatasetSnapshot = tuple[bytes, int]

_DIALECTS: Final = frozenset({"postgresql"})
"""SQLite answers single statements sooner, and MySQL and MariaDB would find everything before they apply the limit."""
_LEVELS: Final = 4
_MOST_LEVELS: Final = 32
_MOST_STARTS: Final = 32
"""A level of more snapshots is asked for by itself, which is few statements for much."""
_MOST_SNAPSHOTS: Final = 256
"""How many snapshots may be loaded in vain, if the walk ends earlier."""


class ReadAhead:
    """Knows writes and reads of snapshots for one question, and loads the others."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._levels = _LEVELS
        self._writes: dict[DatasetSnapshot, list[SnapshotWrite]] = {}
        self._reads: dict[bytes, list[SnapshotRead]] = {}

    @property
    def reads(self) -> Mapping[bytes, list[SnapshotRead]]:
        """All reads of the commits that are known, by commit."""
        return self._reads

    def prepare(self, starts: Collection[DatasetSnapshot], depth: int | None) -> None:
        """Load what these snapshots were made from, up to a number of levels that grows from call to call. `depth` is
        how many the walk has left."""
        missing = sorted(set(starts).difference(self._writes))
        levels = self._levels if depth is None else min(self._levels, depth)
        if levels <= 1 or not 0 < len(missing) <= _MOST_STARTS or self._connection.dialect.name not in _DIALECTS:
            return
        self._levels = min(2 * self._levels, _MOST_LEVELS)
        found = set(_snapshots_ahead(self._connection, missing, levels)).difference(self._writes)
        self._writes.update((snapshot, []) for snapshot in found)
        commits: set[tuple[bytes, int]] = set()
        for write in load_writes(self._connection, found):
            if write.dataset is not None and write.snapshot is not None and write.commit_id is not None:
                self._writes[write.dataset, write.snapshot].append(write)
                commits.add((write.commit_id, write.barrier))
        self._reads.update((commit, []) for commit, _ in commits)
        for read in load_reads_of_commits(self._connection, commits):
            self._reads[read.commit_id].append(read)

    def load_writes(self, snapshots: Collection[DatasetSnapshot]) -> Iterator[SnapshotWrite]:
        """Yield the writes of snapshots. Only those that aren't known yet are loaded."""
        unknown = {snapshot for snapshot in snapshots if snapshot not in self._writes}
        for snapshot in snapshots:
            yield from self._writes.get(snapshot, ())
        if unknown:
            yield from load_writes(self._connection, unknown)


def _snapshots_ahead(
    connection: Connection, starts: Iterable[DatasetSnapshot], levels: int
) -> Iterator[DatasetSnapshot]:
    given = list(starts)
    size = 1 << (len(given) - 1).bit_length()  # so that there are few statements
    parameters: dict[str, Any] = {"levels": levels}
    for n in range(size):
        parameters[f"dataset{n}"], parameters[f"snapshot{n}"] = given[min(n, len(given) - 1)]
    for row in connection.execute(_select_ahead(size), parameters).all():
        yield bytes(row.dataset), row.snapshot


@cache
def _select_ahead(size: int) -> Any:
    """Select snapshots, those that the commits read that wrote them, and so on. The statement is built once, because
    that takes longer than to execute it."""
    starts: list[Any] = [
        select(
            cast(bindparam(f"dataset{n}"), LargeBinary).label("dataset"),
            cast(bindparam(f"snapshot{n}"), BigInteger).label("snapshot"),
            literal_column("0").label("level"),
        )
        for n in range(size)
    ]
    ahead = select(union_all(*starts).subquery()).cte("ahead", recursive=True)
    made_at, read_at = table_of(t.PLACE).alias("made_at"), table_of(t.PLACE).alias("read_at")
    write, read = table_of(t.WRITE), table_of(t.READ)
    by_commit = and_(read.c.barrier == write.c.barrier, read.c.commit_id == write.c.commit_id)
    step = (
        select(read_at.c.dataset, read.c.snapshot, ahead.c.level + 1)
        .join_from(ahead, made_at, and_(made_at.c.dataset == ahead.c.dataset, made_at.c.made_from.is_not(None)))
        .join(write, and_(write.c.place_id == made_at.c.id, write.c.snapshot == ahead.c.snapshot))
        .join(read, by_commit)
        .join(read_at, read_at.c.id == read.c.place_id)
        .where(ahead.c.level < bindparam("levels"), read_at.c.dataset.is_not(None), read.c.snapshot.is_not(None))
    )
    everything = ahead.union(step)
    return select(everything.c.dataset, everything.c.snapshot).limit(_MOST_SNAPSHOTS)
