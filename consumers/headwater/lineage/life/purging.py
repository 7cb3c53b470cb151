"""What is hidden goes from the disk, without changing what is visible.

A barrier goes whole or not at all: when all that it read and made is hidden, or it is itself. What may be told once
more stays, because a row that is told again must be the same row as in a store that was never purged: barriers that
were stored by calls, and the last barrier of each stream, which is run again after a crash. Table lineage
stays too: it is little, and each commit tells it again. So purging is a function of the rows that are there, and two
stores of the same events, one purged on the way and one not, are the same again when both are purged.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, Final, NamedTuple

from sqlalchemy import ColumnElement, Connection, Engine, and_, bindparam, delete, exists, func, or_, select

from headwater.lineage.bulk.epochs import bump_epoch
from headwater.lineage.bulk.transactions import Transactions
from headwater.lineage.law.visible import DATA
from headwater.lineage.meta.told import BY_CALL
from headwater.lineage.rows import tables as t
from headwater.lineage.sql.tables import table_of
from headwater.lineage.sql.visible import not_deleted, not_deleted_whole

AT_ONCE: Final = 5_000
"""So many barriers go in one transaction."""


@dataclass(frozen=True)
class Purged:
    """How many rows went."""

    commits: int = 0
    reads: int = 0
    writes: int = 0
    edges: int = 0

    @property
    def rows(self) -> int:
        return self.commits + self.reads + self.writes + self.edges

    def __add__(self, other: Purged) -> Purged:
        pairs = zip(self.counts, other.counts, strict=True)
        return Purged(*(one + two for one, two in pairs))

    @property
    def counts(self) -> tuple[int, int, int, int]:
        return self.commits, self.reads, self.writes, self.edges


def purge(engine: Engine, *, at_once: int = AT_ONCE) -> Purged:
    """Each portion is a transaction of its own, begun again where a writer is in its way; what is broken off is gone on
    with by the next purge."""
    transactions, total, after = Transactions(engine), Purged(), b""
    with engine.connect() as connection:
        newest = last_batches(connection)
    while True:
        (gone, last), _ = transactions.run(partial(_portion_gone, newest=newest, after=after, at_once=at_once))
        total += gone
        if last is None:
            return total
        after = last


def _portion_gone(
    connection: Connection, newest: dict[bytes, int], after: bytes, at_once: int
) -> tuple[Purged, bytes | None]:
    """What a writer knows to be there may be gone now: it looks at the epoch."""
    found = covered(connection, newest, after, at_once)
    if found.can_go:
        bump_epoch(connection)  # waits for whoever completes what was written in parts: then more may be visible
        found = covered(connection, newest, after, at_once)
    return remove(connection, found.can_go), found.last


class Covered(NamedTuple):
    """Barriers that can go, and where the next portion begins."""

    can_go: list[bytes]
    last: bytes | None


def last_batches(connection: Connection) -> dict[bytes, int]:
    """The last barrier of each stream. Always the same one stays, until there is a later."""
    commit = table_of(t.COMMIT).c
    chosen = select(commit.incarnation, func.max(commit.barrier).label("barrier"))
    found = connection.execute(chosen.where(commit.batch_id.is_not(None)).group_by(commit.incarnation))
    return {bytes(each.incarnation): each.barrier for each in found}


def covered(connection: Connection, newest: dict[bytes, int], after: bytes = b"", at_most: int = AT_ONCE) -> Covered:
    """In the order of their ids."""
    deleted = connection.scalar(_last_deletion())
    if deleted is None:
        return Covered([], None)
    parameters = {"after": after, "deleted": deleted, "at_most": at_most}
    found = connection.execute(_hidden(), parameters).all()
    can_go = [bytes(each.id) for each in found if newest.get(bytes(each.incarnation)) != each.barrier]
    return Covered(can_go, bytes(found[-1].id) if len(found) == at_most else None)


@cache
def _hidden() -> Any:
    commit = table_of(t.COMMIT).c
    hidden = or_(~not_deleted_whole(commit), _has(commit, t.READ), _has(commit, t.WRITE))
    return (
        select(commit.id, commit.incarnation, commit.barrier)
        .where(commit.id > bindparam("after", type_=commit.id.type), commit.last <= bindparam("deleted"))
        .where(commit.incarnation != BY_CALL.bytes, hidden)
        .where(~_is_visible(commit, t.READ), ~_is_visible(commit, t.WRITE))
        .order_by(commit.id)
        .limit(bindparam("at_most"))
    )


def remove(connection: Connection, commits: Sequence[bytes]) -> Purged:
    """These barriers, and all that they told."""
    total = Purged()
    for portion in _portions(commits):
        edge, write, read, commit = (table_of(kind) for kind in (t.EDGE, t.WRITE, t.READ, t.COMMIT))
        made = select(write.c.id).where(write.c.commit_id.in_(portion))
        total += Purged(
            edges=_gone(connection, edge, edge.c.write_id.in_(made)),
            reads=_gone(connection, read, read.c.commit_id.in_(portion)),
            writes=_gone(connection, write, write.c.commit_id.in_(portion)),
            commits=_gone(connection, commit, commit.c.id.in_(portion)),
        )
    return total


def _gone(connection: Connection, table: Any, which: ColumnElement[bool]) -> int:
    return connection.execute(delete(table).where(which)).rowcount


def _portions(ids: Sequence[bytes], size: int = 500) -> Iterator[Sequence[bytes]]:
    for at in range(0, len(ids), size):
        yield ids[at : at + size]


def _last_deletion() -> Any:
    stone = table_of(t.TOMBSTONE).c
    return select(func.max(stone.deleted)).where(stone.scope.in_(DATA))


def _has(commit: Any, kind: Any) -> ColumnElement[bool]:
    row = table_of(kind).alias()
    return exists().where(row.c.commit_id == commit.id, row.c.barrier == commit.barrier)


def _is_visible(commit: Any, kind: Any) -> ColumnElement[bool]:
    row = table_of(kind).alias()
    its = and_(row.c.commit_id == commit.id, row.c.barrier == commit.barrier)
    return exists().where(its, not_deleted(row.c, commit, DATA))
