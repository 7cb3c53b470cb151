"""Erases hidden rows from disk, without changing what is visible.

A commit is erased only when everything it read and wrote is hidden, or when it is hidden itself. Commits that may be
reported again stay, because a repeated row has to be the same as in a store that was never purged: barriers stored by
calls, and the last barrier of each stream, which runs again after a crash. Table lineage stays, too: it is small, and
each commit reports it again.

So a purge depends only on the rows in the store. Two stores of the same events, one purged before and one not, are
equal once both are purged, but for one case: the event of a barrier's second run comes after the first one was purged,
and it isn't the stream's last barrier. Then the commit begins at the second run.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, Final, NamedTuple

from sqlalchemy import ColumnElement, Connection, Engine, and_, bindparam, delete, exists, func, or_, select

from headwater.lineage.bulk.marks import bump_epoch
from headwater.lineage.bulk.transactions import Transactions
from headwater.lineage.meta.event_based import CALL_INCARNATION
from headwater.lineage.rows import tables as t
from headwater.lineage.rows.tombstones import DATA
from headwater.lineage.sql.accesses import access_of
from headwater.lineage.sql.key_lookup import has_owner
from headwater.lineage.sql.tables import table_of
from headwater.lineage.sql.tombstones import commit_not_hidden, not_deleted

AT_ONCE: Final = 5_000
"""How many commits one transaction erases."""


class CommitKey(NamedTuple):
    """The primary key of a commit."""

    barrier: int
    id: bytes


_START: Final = CommitKey(-(2**63), b"")


@dataclass(frozen=True)
class PurgeResult:
    """How many rows were erased."""

    commits: int = 0
    reads: int = 0
    writes: int = 0
    edges: int = 0

    @property
    def rows(self) -> int:
        return self.commits + self.reads + self.writes + self.edges

    def __add__(self, other: PurgeResult) -> PurgeResult:
        pairs = zip(self.counts, other.counts, strict=True)
        return PurgeResult(*(one + two for one, two in pairs))

    @property
    def counts(self) -> tuple[int, int, int, int]:
        return self.commits, self.reads, self.writes, self.edges


def purge(engine: Engine, *, at_once: int = AT_ONCE) -> PurgeResult:
    """Erase hidden rows in several transactions. Each is retried if it conflicts with a writer. After an interruption
    the next purge continues."""
    transactions, total, after = Transactions(engine), PurgeResult(), _START
    with engine.connect() as connection:
        newest = last_batches(connection)
    while True:
        (gone, last), _ = transactions.run(partial(_purge_portion, newest=newest, after=after, at_once=at_once))
        total += gone
        if last is None:
            return total
        after = last


def count_erasable(engine: Engine) -> int:
    """Return how many barriers a purge would remove now."""
    number, after = 0, _START
    with engine.connect() as connection:
        newest = last_batches(connection)
        while True:
            found = find_erasable(connection, newest, after)
            number += len(found.can_go)
            if found.last is None:
                return number
            after = found.last


def _purge_portion(
    connection: Connection, newest: dict[bytes, int], after: CommitKey, at_once: int
) -> tuple[PurgeResult, CommitKey | None]:
    """Erase one portion. The epoch moves, so that writers no longer rely on rows that may be gone."""
    found = find_erasable(connection, newest, after, at_once)
    if found.can_go:
        bump_epoch(connection)  # waits for running writers; afterwards more may be visible
        found = find_erasable(connection, newest, after, at_once)
    return erase_commits(connection, found.can_go), found.last


class ErasableCommits(NamedTuple):
    """Commits that can be erased, and the one after which the next portion begins."""

    can_go: list[CommitKey]
    last: CommitKey | None


def last_batches(connection: Connection) -> dict[bytes, int]:
    """Return the last barrier of each stream. It stays until a later one arrives."""
    commit = table_of(t.COMMIT).c
    chosen = select(commit.incarnation, func.max(commit.barrier).label("barrier"))
    found = connection.execute(chosen.where(commit.batch_id.is_not(None)).group_by(commit.incarnation))
    return {bytes(row.incarnation): row.barrier for row in found}


def find_erasable(
    connection: Connection, newest: dict[bytes, int], after: CommitKey = _START, at_most: int = AT_ONCE
) -> ErasableCommits:
    """Find the next commits that can be erased, in the order of the primary key."""
    deleted = connection.scalar(_last_deletion())
    if deleted is None:
        return ErasableCommits([], None)
    parameters = {"barrier": after.barrier, "id": after.id, "deleted": deleted, "at_most": at_most}
    found = connection.execute(_select_hidden(), parameters).all()
    keys = [CommitKey(row.barrier, bytes(row.id)) for row in found]
    can_go = [key for key, row in zip(keys, found, strict=True) if newest.get(bytes(row.incarnation)) != row.barrier]
    return ErasableCommits(can_go, keys[-1] if len(found) == at_most else None)


@cache
def _select_hidden() -> Any:
    commit = table_of(t.COMMIT).c
    barrier, number = (bindparam(name, type_=commit[name].type) for name in ("barrier", "id"))
    hidden = or_(~commit_not_hidden(commit), _has(commit, t.READ), _has(commit, t.WRITE))
    return (
        select(commit.id, commit.incarnation, commit.barrier)
        .where(commit.barrier >= barrier, or_(commit.barrier > barrier, commit.id > number))
        .where(commit.last <= bindparam("deleted"))
        .where(commit.incarnation != CALL_INCARNATION.bytes, hidden)
        .where(~_is_visible(commit, t.READ), ~_is_visible(commit, t.WRITE))
        .order_by(commit.barrier, commit.id)
        .limit(bindparam("at_most"))
    )


def erase_commits(connection: Connection, commits: Sequence[CommitKey]) -> PurgeResult:
    """Erase these commits with their reads, writes and edges."""
    total = PurgeResult()
    for portion in _portions(commits):
        edge, write, read, commit = (table_of(kind) for kind in (t.COMMIT_EDGE, t.WRITE, t.READ, t.COMMIT))
        write_ids = select(write.c.id).where(_is_of(portion, write.c, write.c.commit_id))
        is_edge = has_owner(edge.c.barrier.in_([key.barrier for key in portion]), edge.c.write_id.in_(write_ids))
        total += PurgeResult(
            edges=_delete_rows(connection, edge, is_edge),
            reads=_delete_rows(connection, read, _is_of(portion, read.c, read.c.commit_id)),
            writes=_delete_rows(connection, write, _is_of(portion, write.c, write.c.commit_id)),
            commits=_delete_rows(connection, commit, _is_of(portion, commit.c, commit.c.id)),
        )
    return total


def _is_of(commits: Sequence[CommitKey], row: Any, commit_id: Any) -> ColumnElement[bool]:
    """Return a condition: a row belongs to one of these commits."""
    barriers, ids = ([commit[side] for commit in commits] for side in (0, 1))
    return has_owner(row.barrier.in_(barriers), commit_id.in_(ids))


def _delete_rows(connection: Connection, table: Any, which: ColumnElement[bool]) -> int:
    return connection.execute(delete(table).where(which)).rowcount


def _portions(commits: Sequence[CommitKey], size: int = 500) -> Iterator[Sequence[CommitKey]]:
    for at in range(0, len(commits), size):
        yield commits[at : at + size]


def _last_deletion() -> Any:
    stone = table_of(t.TOMBSTONE).c
    return select(func.max(stone.deleted)).where(stone.scope.in_(DATA))


def _has(commit: Any, kind: Any) -> ColumnElement[bool]:
    row = table_of(kind).alias()
    return exists().where(row.c.commit_id == commit.id, row.c.barrier == commit.barrier)


def _is_visible(commit: Any, kind: Any) -> ColumnElement[bool]:
    row = access_of(kind).alias()
    its = and_(row.c.commit_id == commit.id, row.c.barrier == commit.barrier)
    return exists().where(its, not_deleted(row.c, commit, DATA))
