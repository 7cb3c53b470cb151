"""Finds which commit wrote a snapshot.

The snapshot's number alone isn't enough: a recreated table counts from the beginning (another generation), Paimon's
branches count for themselves, and after a rollback Paimon reuses numbers. So generation and branch have to match, and
of several writes the newest before the read is meant. A rollback or fast-forward only points to a snapshot; it didn't
write it.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from typing import Final, NamedTuple

from sqlalchemy import Connection, select

from headwater.lineage.questions.traversal.histories import Portion, load_histories
from headwater.lineage.questions.traversal.identities import FOREVER, Identities
from headwater.lineage.questions.traversal.read_ahead import DatasetSnapshot, ReadAhead
from headwater.lineage.questions.traversal.reconciled import MERGES, SetBacks, is_pointer, prefer_observed
from headwater.lineage.questions.traversal.snapshot_rows import (
    ICEBERG,
    PAIMON,
    SnapshotRead,
    SnapshotWrite,
    load_catalog_changes,
)
from headwater.lineage.questions.traversal.tombstone_lookup import TombstoneLookup
from headwater.lineage.rows import tables as t
from headwater.lineage.rows.tombstones import DATA, DeletionSubject
from headwater.lineage.sql.tables import table_of

_BEGINNING: Final = -(2**63)


class SnapshotRef(NamedTuple):
    """A reference to a snapshot."""

    dataset: bytes
    snapshot: int
    generation: str | None = None
    branch: str | None = None
    at: int = FOREVER
    """When it was read: later writes aren't meant."""
    any_branch: bool = False


def ref_of(write: SnapshotWrite) -> SnapshotRef | None:
    """Return the snapshot that a commit wrote; None if it is unknown."""
    if write.dataset is None or write.snapshot is None:
        return None
    return SnapshotRef(write.dataset, write.snapshot, write.generation, write.branch, write.at)


class CommitReporter(NamedTuple):
    """Who reported a commit."""

    job: tuple[str | None, str | None]
    parent_job: tuple[str | None, str | None]
    run: bytes | None


def deletion_subject_of(row: SnapshotWrite | SnapshotRead, by: SnapshotWrite | CommitReporter) -> DeletionSubject:
    """Describe a row of data lineage and its commit for tombstones."""
    return DeletionSubject(
        DATA, row.last, by.job, by.parent_job, by.run, row.dataset, row.name[0], row.generation, row.snapshot
    )


class SnapshotWriters:
    """Finds writers for one question, and caches loaded writes."""

    def __init__(self, connection: Connection, hiding: TombstoneLookup, identities: Identities) -> None:
        self.connection = connection
        self.hiding = hiding
        self.identities = identities
        self.ahead = ReadAhead(connection)
        self.set_backs = SetBacks(connection, identities)
        self._known: dict[DatasetSnapshot, dict[bytes, SnapshotWrite]] = {}
        self._whole: set[DatasetSnapshot] = set()
        self._changes: set[DatasetSnapshot] = set()
        self._branches: dict[bytes, list[tuple[str, str | None, int | None, int]]] = {}
        self._read_to: dict[bytes, int] = {}
        self._determined: dict[int, dict[tuple[object, ...], list[SnapshotWrite]]] = {}
        """The writes of snapshots, by their numbers, until more with that number is loaded: as far as they don't depend
        on when a snapshot was read."""

    def load(self, ref: Iterable[SnapshotRef]) -> None:
        """Load all writes with these numbers. Catalog changes are loaded only where no commit matches."""
        asked = list(ref)
        pairs = {pair for ref in asked for pair in self._pairs(ref)} - self._whole
        if not pairs:
            return
        self._whole |= pairs
        self.keep(self.ahead.load_writes(pairs))
        missing = {pair for ref in asked if not self._by_commit(ref) for pair in self._pairs(ref)} - self._changes
        if missing:
            self._changes |= missing
            self.keep(load_catalog_changes(self.connection, missing))

    def prepare(self, refs: Iterable[SnapshotRef], depth: int | None) -> None:
        """Load what these snapshots were made from too, as far as a walk of that depth asks for it soon."""
        self.ahead.prepare({pair for ref in refs for pair in self._pairs(ref)} - self._whole, depth)

    def _by_commit(self, ref: SnapshotRef) -> bool:
        """Return whether a commit certainly wrote it."""
        there = self._candidates(ref)
        exact = [write for write in there if write.branch == ref.branch and write.generation == ref.generation]
        return bool(exact) and len(exact) == len(there)

    def keep(self, found: Iterable[SnapshotWrite]) -> list[SnapshotWrite]:
        """Cache writes that were loaded otherwise. Those that aren't shown are marked as hidden."""
        kept = prefer_observed(self.connection, found)
        if not self.hiding.hides_nothing:
            hidden = self.hiding.are_hidden([deletion_subject_of(write, write) for write in kept])
            kept = [write._replace(hidden=why) if why else write for write, why in zip(kept, hidden, strict=True)]
        for write in kept:
            if write.dataset is not None and write.snapshot is not None:
                self._known.setdefault((write.dataset, write.snapshot), {})[write.id] = write
                self._determined.pop(write.snapshot, None)
        return kept

    def read_back(self, starts: Mapping[bytes, int], number: int) -> dict[bytes, list[SnapshotWrite]]:
        """Load the next writes of these tables, all at once: those before a time, or those before the last call's."""
        wanted: dict[bytes, Portion] = {}
        for dataset, at in starts.items():
            start = min(at, self._read_to.get(dataset, at))
            if start != _BEGINNING:
                wanted[dataset] = Portion(list(self.identities.group(dataset)), start)
        found = load_histories(self.connection, wanted, number)
        self._read_to.update((key, _BEGINNING if part.since is None else part.since) for key, part in found.items())
        kept: dict[bytes | None, list[SnapshotWrite]] = {}
        for write in self.keep(write for part in found.values() for write in part.writes):
            kept.setdefault(write.dataset, []).append(write)
        return {
            subject: [one for key in part.datasets for one in kept.get(key, ())] for subject, part in wanted.items()
        }

    def is_read_back(self, dataset: bytes) -> bool:
        """Return whether some of a table's history was read."""
        return dataset in self._read_to

    def near(self, ref: SnapshotRef) -> list[SnapshotWrite] | None:
        """Return the writes, if the cache already determines them."""
        determined = self._determined.setdefault(ref.snapshot, {})
        key = (ref.dataset, ref.generation, ref.branch, ref.any_branch)
        known = determined.get(key)
        if known is not None:
            return known
        there = self._candidates(ref)
        if self._pairs(ref) <= self._whole:
            found = self._choose(ref, there)
        else:
            certain = [write for write in there if write.branch == ref.branch and write.generation == ref.generation]
            found = _choose_writes(certain, ref.at)
            if not found:
                return None
        if len(there) < 2 and not self.set_backs.has_any(ref.dataset):
            determined[key] = found
        return found

    def writer(self, ref: SnapshotRef) -> list[SnapshotWrite]:
        """Return the writes of the commit that wrote a snapshot that is loaded or near. Empty if no writer is known."""
        near = self.near(ref)
        return self.of(ref) if near is None else near

    def of(self, ref: SnapshotRef) -> list[SnapshotWrite]:
        """Return the writes of the commit that wrote the snapshot; call `load` first. Empty if no writer is known."""
        return self._choose(ref, self._candidates(ref))

    def _choose(self, ref: SnapshotRef, there: list[SnapshotWrite]) -> list[SnapshotWrite]:
        exact = [write for write in there if write.branch == ref.branch and not is_pointer(write)]
        if exact and not ref.any_branch:
            return _choose_writes(exact, ref.at)
        if ref.any_branch or any(write.format == ICEBERG for write in there):
            return _choose_writes(there, ref.at)
        merged = [write for write in there if (write.branch, ref.branch) in self._merges(ref.dataset)]
        return self._inherited(ref) or _choose_writes(merged, ref.at)

    def generations(self, ref: SnapshotRef) -> set[str]:
        """Return the generations of the table that have this number."""
        return {
            write.generation
            for write in self._candidates(ref._replace(generation=None))
            if write.generation is not None
        }

    def _pairs(self, ref: SnapshotRef) -> set[DatasetSnapshot]:
        return {(dataset, ref.snapshot) for dataset in self.identities.group(ref.dataset)}

    def _candidates(self, ref: SnapshotRef) -> list[SnapshotWrite]:
        generation, there = ref.generation, []
        for dataset, (_, until) in self.identities.group(ref.dataset).items():
            known = self._known.get((dataset, ref.snapshot))
            for write in known.values() if known else ():
                is_same = generation is not None and write.generation == generation
                if is_same or (write.at <= until and (generation is None or write.generation is None)):
                    there.append(write)
        if generation is not None and len(there) > 1:
            there = [write for write in there if write.generation == generation] or there
        if not there or not self._was_ever_set_back(ref, there):
            return there
        return [write for write in there if not self._is_replaced(write, ref)]

    def _was_ever_set_back(self, ref: SnapshotRef, there: Collection[SnapshotWrite]) -> bool:
        """Return whether numbers of a table can have come again. Only Paimon's do."""
        return any(write.format == PAIMON for write in there) and bool(self.set_backs.of(ref.dataset))

    def _is_replaced(self, write: SnapshotWrite, ref: SnapshotRef) -> bool:
        """Return whether a table was set back behind a snapshot between when it was written and when it was read: then
        another one with its number was read, which was there before or came after."""
        where = (write.snapshot or 0, write.generation, write.branch)
        times = (min(write.at, ref.at), max(write.at, ref.at))
        return not is_pointer(write) and self.set_backs.is_between(ref.dataset, *where, times)

    def _inherited(self, ref: SnapshotRef) -> list[SnapshotWrite]:
        """Return who wrote a snapshot that a branch has from another one, as that was when the branch was created: its
        numbers can have come again since."""
        for branch, origin, snapshot, created in self._lines(ref.dataset):
            if branch == ref.branch and snapshot is not None and ref.snapshot <= snapshot and created < ref.at:
                begun = ref._replace(branch=origin, at=created)
                if found := self._choose(begun, self._candidates(begun)):
                    return found
        return []

    def _lines(self, dataset: bytes) -> Collection[tuple[str, str | None, int | None, int]]:
        known = self._branches.get(dataset)
        if known is None:
            row = table_of(t.BRANCH).c
            found = self.connection.execute(
                select(row.branch, row.from_branch, row.from_snapshot, row.first).where(row.dataset == dataset)
            )
            known = self._branches[dataset] = [(row[0], row[1], row[2], row[3]) for row in found]
        return known

    def _merges(self, dataset: bytes) -> set[tuple[str | None, str | None]]:
        row = table_of(t.MODIFICATION).c
        is_pointer_only = row.produced.is_(None)
        is_merge = (row.dataset == dataset, row.kind.in_(MERGES), row.effect == "APPLIED", is_pointer_only)
        merges = [json.loads(text) for text in self.connection.scalars(select(row.detail).where(*is_merge))]
        return {(merge.get("branch"), merge.get("into")) for merge in merges}


def _choose_writes(there: Collection[SnapshotWrite], at: int) -> list[SnapshotWrite]:
    """Choose among several writes: commits before catalog changes before pointers, and of several commits the newest
    before the read."""
    if len(there) < 2:
        return [] if any(map(is_pointer, there)) else list(there)
    ranks = (
        [write for write in there if write.commit_id is not None and not is_pointer(write)],
        [write for write in there if write.commit_id is None],
    )
    for rank in ranks:
        if rank:
            before = [write for write in rank if write.at <= at]
            best = max(before, key=_order) if before else min(rank, key=_order)
            same = best.commit_id
            return [best] if same is None else [write for write in rank if write.commit_id == same]
    return []


def _order(write: SnapshotWrite) -> tuple[int, bytes]:
    return (write.at, write.id)
