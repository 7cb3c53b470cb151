"""All commits of the application that made a snapshot: its script makes all of them again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from sqlalchemy import select

from headwater.events.scalars import Format
from headwater.lineage.questions.traversal.context import TraversalContext
from headwater.lineage.questions.traversal.hidden_rows import load_marked_reads, load_marked_writes
from headwater.lineage.questions.traversal.snapshot_rows import SnapshotRead, SnapshotWrite
from headwater.lineage.rows import tables as t
from headwater.lineage.sql.key_lookup import select_by_keys
from headwater.lineage.sql.tables import table_of

MOST_COMMITS: Final = 10_000
_KEEPS_ROWS: Final = frozenset({"COMPACT", "ANALYZE", "VACUUM", "ALTER"})


@dataclass(frozen=True)
class JobCommits:
    """What an application wrote and read, the oldest first, and when."""

    walk: TraversalContext
    writes: Sequence[SnapshotWrite]
    reads: Sequence[SnapshotRead]
    began: int
    ended: int
    is_stream: bool
    is_cut: bool
    """Whether there are more than MOST_COMMITS. Then none is loaded."""

    @classmethod
    def load(cls, walk: TraversalContext, write: SnapshotWrite) -> JobCommits:
        connection = walk.connection
        commit, run = table_of(t.COMMIT).c, table_of(t.RUN).c
        own = select(commit.application, commit.batch_id).where(
            commit.id == write.commit_id, commit.barrier == write.barrier
        )
        facts = connection.execute(own).one()
        runs = set() if write.run is None else {write.run}
        if facts.application is not None:
            of_application = select(run.run).where(run.application == facts.application)
            runs |= {bytes(run) for run in connection.scalars(of_application)}
        chosen = select(commit.id, commit.barrier, commit.committed_at, commit.batch_id)
        found = [(write.commit_id, write.barrier)] if not runs else []
        rows: list[Any] = []
        for row in select_by_keys(connection, chosen.limit(MOST_COMMITS + 1), commit.run, runs):
            rows.append(row)
            found.append((bytes(row.id), row.barrier))
        keys = [(commit_id, barrier) for commit_id, barrier in found if commit_id is not None]
        is_cut = len(keys) > MOST_COMMITS
        writes = [] if is_cut else load_marked_writes(walk, keys)
        times = [row.committed_at for row in rows if row.committed_at is not None] or [write.at]
        started = connection.scalars(select(run.started_at).where(run.run.in_(runs), run.started_at.is_not(None)))
        return cls(
            walk=walk,
            writes=sorted(writes, key=lambda write: (write.barrier, write.at, not changes_rows(write))),
            reads=[] if is_cut else load_marked_reads(walk, keys),
            began=min([*started, *times]),
            ended=max(times),
            is_stream=facts.batch_id is not None,
            is_cut=is_cut,
        )

    @cached_property
    def writes_by_table(self) -> Mapping[bytes, Sequence[SnapshotWrite]]:
        """The writes of each table, whatever names and places it had."""
        found: dict[bytes, list[SnapshotWrite]] = {}
        for write in self.writes:
            found.setdefault(self.table_of(write), []).append(write)
        return found

    def table_of(self, ref: SnapshotWrite | SnapshotRead) -> bytes:
        """Return the key of the table that a write or read is of."""
        return b"" if ref.dataset is None else self.walk.identities.one(ref.dataset, ref.generation)

    def snapshot_before(self, write: SnapshotWrite) -> int | None:
        """Return the snapshot whose rows a commit found. Commits of the job itself that changed no rows are passed
        over, such as its compactions."""
        kept = {
            other.snapshot: other.parent
            for other in self.writes_by_table[self.table_of(write)]
            if not changes_rows(other) and other.snapshot is not None
        }
        before = write.parent
        while before in kept:
            before = kept.pop(before)
        return before

    def creates(self, writes: Sequence[SnapshotWrite]) -> bool:
        """Return whether a table was made while the job ran, so that its script makes it.

        `saveAsTable` with the mode overwrite is recorded as the making of a table, too, where it wrote one that was
        there. So the first write has to begin at what was made. Hudi makes tables in Hive's metastore by a client of
        its own, which nobody sees, but a table that it makes of a query has that for its first commit.
        """
        if writes and (writes[0].format, writes[0].kind, writes[0].parent) == (Format.HUDI.value, "CREATE", None):
            return True
        change = table_of(t.MODIFICATION).c
        found = select(change.produced).where(
            change.dataset.in_([write.dataset for write in writes if write.dataset is not None]),
            change.kind == "CreateTable",
            change.effect == "APPLIED",
            change.time >= self.began,
            change.time <= self.ended,
        )
        made = list(self.walk.connection.scalars(found))
        return bool(made) and (not writes or writes[0].parent is None or writes[0].parent in made)


def changes_rows(write: SnapshotWrite) -> bool:
    """Return whether a commit may have changed rows, and not only how they are stored."""
    return write.kind not in _KEEPS_ROWS
