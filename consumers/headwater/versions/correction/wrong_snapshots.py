"""Finds what was made from a wrong snapshot: commits that brought its rows anywhere, and all later snapshots that still
contain them.

A commit *brings* wrong rows if it read a state that contains them, or changes that do. A commit that only adds rows to
a table that holds wrong ones brings none: whoever reads its changes alone gets right rows. One that rewrites rows
(MERGE, UPDATE, an overwrite of a part) may pass wrong ones on, so it counts among those that bring them.

Where lineage doesn't say on which snapshot a later commit was made, that commit is taken for wrong, and the plan says
so: to make something again that was right costs time, and to leave something wrong behind costs trust.

A stream that replaces its whole table by each batch makes it from its state, and so from all that it has read: its
later batches are wrong, too, although they read right changes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Final

from headwater.events.scalars import Format
from headwater.lineage.questions.answers import LimitReason
from headwater.lineage.questions.commit_facts import commit_sources
from headwater.lineage.questions.traversal.context import Basis, LineageStep, TraversalContext
from headwater.lineage.questions.traversal.descent import Descent
from headwater.lineage.questions.traversal.downstream import DownstreamWalk
from headwater.lineage.questions.traversal.histories import load_writes_after
from headwater.lineage.questions.traversal.reconciled import is_pointer
from headwater.lineage.questions.traversal.snapshot_rows import SnapshotWrite, is_unordered
from headwater.lineage.questions.traversal.snapshot_writers import SnapshotRef
from headwater.lineage.questions.traversal.tombstone_lookup import hidden_text
from headwater.versions.commit_lines import keeps_rows, parent_of

MOST_COMMITS: Final = 10_000
"""How many later commits of a table are looked at for ones whose parent is unknown."""
_ADDS: Final = "APPEND"
_REPLACES_BY_KEY: Final = frozenset({Format.PAIMON.value, Format.HUDI.value})
"""Formats where a row that is added may replace another one, which its changes then tell of."""


class WrongSnapshots:
    """What is wrong in a store, found from one snapshot on."""

    def __init__(self, walk: TraversalContext) -> None:
        self._walk = walk
        self._descent: Final = Descent(walk.makers)
        self.origins: dict[bytes, SnapshotWrite] = {}
        """The commits that brought wrong rows into a table, by id."""
        self.writes: dict[bytes, SnapshotWrite] = {}
        """These, and the later snapshots that contain them."""
        self.steps: dict[tuple[bytes, bytes], LineageStep] = {}
        """What each commit read that was wrong, by write and read."""
        self.made_from_wrong: set[bytes] = set()
        """The commits that read something wrong, by id."""
        self.unversioned: dict[bytes, SnapshotWrite] = {}
        """Commits that wrote wrong rows to where there are no snapshots, by id."""

    def table_of(self, write: SnapshotWrite) -> bytes:
        """Return the current identity of the table that a commit wrote; empty for what is no dataset."""
        return b"" if write.dataset is None else self._walk.identities.one(write.dataset, write.generation)

    def search(self, start: Collection[SnapshotWrite]) -> None:
        """Find everything that was made from the rows of these commits."""
        downstream = DownstreamWalk(self._walk, Basis.STATE)
        waiting = list(start)
        while waiting:
            self._add(waiting)
            asked = [(ref, [write]) for write in waiting if (ref := _ref_of(write)) is not None]
            for steps in downstream.levels(asked, None):
                self.steps.update(((step.write.id, step.read.id), step) for step in steps)
                self.made_from_wrong.update(step.write.id for step in steps)
                self._add(step.write for step in steps)
            waiting = self._carriers()

    def _add(self, writes: Iterable[SnapshotWrite]) -> None:
        for write in writes:
            if write.snapshot is None:
                self.unversioned[write.id] = write
            else:
                self.origins[write.id] = self.writes[write.id] = write

    def _carriers(self) -> list[SnapshotWrite]:
        """Add the later snapshots that contain wrong rows. Return those whose own changes may have some, too."""
        by_table: dict[bytes, list[SnapshotWrite]] = {}
        for write in self.origins.values():
            by_table.setdefault(self.table_of(write), []).append(write)
        for descendants in self._descent.walk(by_table).values():
            for write in descendants.writes.values():
                if write.hidden is None:
                    self.writes.setdefault(write.id, write)
                elif write.dataset is not None:
                    text = hidden_text(write.hidden, "lineage of a later commit of it")
                    self._walk.limits.add_snapshot(write.hidden, write.dataset, write.snapshot, text)
        found = [write for write in self.writes.values() if write.id not in self.origins and passes_rows_on(write)]
        for table, origins in by_table.items():
            later = self._later_writes(table, origins)
            found += [*self._made_of_state(origins, later), *self._unlinked(table, origins, later)]
        return found

    def _later_writes(self, table: bytes, origins: Collection[SnapshotWrite]) -> list[SnapshotWrite]:
        makers = self._walk.makers
        since = min(write.at for write in origins)
        group = list(self._walk.identities.group(table))
        later = list(makers.keep(load_writes_after(makers.connection, group, since, MOST_COMMITS)))
        if len(later) >= MOST_COMMITS:
            detail = f"only {MOST_COMMITS:,} of its commits since then were looked at for unknown writers"
            self._walk.limits.add_snapshot(LimitReason.CUT, table, None, detail)
        return later

    def _made_of_state(
        self, origins: Collection[SnapshotWrite], later: Collection[SnapshotWrite]
    ) -> Iterator[SnapshotWrite]:
        """Yield later batches of the same streams that replaced all rows by what the stream's state has."""
        candidates = [write for write in later if write.restarts and write.id not in self.writes and not write.hidden]
        if not candidates:
            return
        commits = {(each.commit_id, each.barrier) for each in [*origins, *candidates] if each.commit_id is not None}
        sources = commit_sources(self._walk.connection, commits)
        first: dict[bytes, int] = {}
        for write in origins:
            source = sources.get(write.commit_id or b"")
            if source is not None and source.incarnation is not None and source.batch_id is not None:
                first[source.incarnation] = min(source.batch_id, first.get(source.incarnation, source.batch_id))
        for write in candidates:
            source = sources.get(write.commit_id or b"")
            if source is None or source.incarnation is None or source.batch_id is None:
                continue
            if source.batch_id > first.get(source.incarnation, source.batch_id):
                yield write

    def _unlinked(
        self, table: bytes, origins: Collection[SnapshotWrite], later: Collection[SnapshotWrite]
    ) -> Iterator[SnapshotWrite]:
        """Yield later commits of a table of which it isn't known whether they were made on a wrong snapshot."""
        makers = self._walk.makers
        lines = {(write.generation, write.branch) for write in origins}
        waiting = [
            write
            for write in later
            if write.id not in self.writes and (write.generation, write.branch) in lines and _has_parent(write)
        ]
        makers.load(ref for write in waiting if (ref := parent_of([write])) is not None)
        first = min((write.snapshot for write in origins if write.snapshot is not None), default=0)
        for write in waiting:
            if write.hidden is None and self._is_unlinked(write, first):
                before = "is unknown" if write.parent is None else f"{write.parent} has no known writer"
                detail = f"the snapshot that it was made on {before}, so it is taken for wrong, and what it went into"
                self._walk.limits.add_snapshot(LimitReason.UNKNOWN_WRITER, table, write.snapshot, detail)
                yield write

    def _is_unlinked(self, write: SnapshotWrite, first_wrong: int) -> bool:
        ref = parent_of([write])
        if ref is None:
            return not is_unordered(write.format) and (write.snapshot or 0) > max(first_wrong, 1)
        if not is_unordered(write.format) and ref.snapshot < first_wrong:
            return False
        return not self._walk.makers.of(ref)


def passes_rows_on(write: SnapshotWrite) -> bool:
    """Return whether a commit on a table with wrong rows may have some of them among its own changes."""
    if write.commit_id is None or keeps_rows([write]):
        return False
    return write.kind != _ADDS or write.format in _REPLACES_BY_KEY


def _has_parent(write: SnapshotWrite) -> bool:
    return write.snapshot is not None and not write.restarts and not is_pointer(write)


def _ref_of(write: SnapshotWrite) -> SnapshotRef | None:
    if write.dataset is None or write.snapshot is None:
        return None
    return SnapshotRef(write.dataset, write.snapshot, write.generation, write.branch, write.at)
