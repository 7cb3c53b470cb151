"""Finds what was made from snapshots, level by level."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import chain

from headwater.events.names import VALIDATION_JOB_NAMESPACE
from headwater.lineage.mapping.commits import SOME
from headwater.lineage.questions.answers import LimitReason
from headwater.lineage.questions.traversal.ancestry import called
from headwater.lineage.questions.traversal.context import (
    Basis,
    LineageStep,
    TraversalContext,
    is_range,
    snapshot_ref_of,
)
from headwater.lineage.questions.traversal.descent import Descent, ReaderSearch
from headwater.lineage.questions.traversal.limits import growing_portions
from headwater.lineage.questions.traversal.snapshot_rows import (
    SnapshotRead,
    SnapshotWrite,
    is_unordered,
    known_sources,
    load_edges,
    load_ranges_containing,
    load_reads_at,
    load_writes_of_commits,
)
from headwater.lineage.questions.traversal.snapshot_writers import SnapshotRef, deletion_subject_of, ref_of
from headwater.lineage.questions.traversal.tombstone_lookup import hidden_text


class DownstreamWalk:
    """Leaves out what validations made: it is only there to be compared."""

    def __init__(self, walk: TraversalContext, basis: Basis) -> None:
        self._walk = walk
        self._basis = basis
        self._descent = Descent(walk.makers)
        self._done: set[bytes] = set()

    def levels(
        self, start: Collection[tuple[SnapshotRef, Sequence[SnapshotWrite]]], depth: int | None
    ) -> Iterator[list[LineageStep]]:
        """Yield the steps of each level, in portions: who needs only the first has few loaded. Each start is a snapshot
        with its known writes."""
        level, asked = 1, list(start)
        self._done.update(write.id for _, writes in asked for write in writes)
        while asked:
            new: dict[bytes, SnapshotWrite] = {}
            for readers in self._readers(self._searches(asked)):
                steps = list(self._made_from(readers, level))
                yield steps
                new |= {step.write.id: step.write for step in steps if step.write.id not in self._done}
            if depth is not None and level >= depth:
                return
            self._done.update(new)
            asked = [(ref, [write]) for write in new.values() if (ref := ref_of(write)) is not None]
            level += 1

    def _searches(self, asked: Sequence[tuple[SnapshotRef, Sequence[SnapshotWrite]]]) -> list[ReaderSearch]:
        by_dataset: dict[bytes, list[tuple[SnapshotRef, Sequence[SnapshotWrite]]]] = {}
        members = {ref.dataset: self._walk.identities.group(ref.dataset).keys() for ref, _ in asked}
        read = known_sources(self._walk.connection, {member for group in members.values() for member in group})
        for ref, writes in asked:
            if not read.isdisjoint(members[ref.dataset]):
                by_dataset.setdefault(ref.dataset, []).append((ref, writes))
        origins = {dataset: [write for _, writes in of for write in writes] for dataset, of in by_dataset.items()}
        found = {} if self._basis is Basis.COMMIT else self._descent.walk(origins)
        return [ReaderSearch(of, found.get(dataset)) for dataset, of in by_dataset.items()]

    def _made_from(self, readers: Sequence[SnapshotRead], level: int) -> Iterator[LineageStep]:
        written: dict[bytes, list[SnapshotWrite]] = {}
        for write in load_writes_of_commits(
            self._walk.connection, {(reader.commit_id, reader.barrier) for reader in readers}
        ):
            if write.commit_id is not None:
                written.setdefault(write.commit_id, []).append(write)
        edges = load_edges(
            self._walk.connection, [m for writes in written.values() for m in writes if m.made_from == SOME]
        )
        pairs = [(write, read) for read in readers for write in written.get(read.commit_id, ())]
        for write, read in self._visible([(m, read) for m, read in pairs if self._is_from(m, read, edges)]):
            if (self._walk.as_of is None or write.at <= self._walk.as_of) and write.job[0] != VALIDATION_JOB_NAMESPACE:
                yield LineageStep(level, write, read)

    def _readers(self, searches: Sequence[ReaderSearch]) -> Iterator[list[SnapshotRead]]:
        """Yield the reads of these snapshots in portions, and not those of others with the same number."""
        by_dataset: dict[bytes, list[ReaderSearch]] = {}
        for search in searches:
            for dataset in self._walk.identities.group(search.dataset):
                by_dataset.setdefault(dataset, []).append(search)
        exact = {(dataset, one) for dataset, of in by_dataset.items() for start in of for one in start.all_numbers}
        over = {(dataset, one) for dataset, of in by_dataset.items() for start in of for one in start.numbers}
        connection, seen = self._walk.connection, set[bytes]()
        for portion in growing_portions(
            chain(load_reads_at(connection, exact), load_ranges_containing(connection, over))
        ):
            found = {read.id: read for read in portion if read.id not in seen}
            seen.update(found)
            refs = [ref for read in found.values() if (ref := snapshot_ref_of(read, read.last)) is not None]
            self._walk.makers.load(refs)
            self._load_histories(found.values(), by_dataset)
            yield [read for read in found.values() if self._is_meant(read, by_dataset)]

    def _load_histories(
        self, reads: Collection[SnapshotRead], by_dataset: Mapping[bytes, Sequence[ReaderSearch]]
    ) -> None:
        """Find the descendants of what is searched, where only they tell which changes contain it."""
        unordered = {read.dataset for read in reads if is_range(read) and is_unordered(read.format)}
        missing = {
            start.dataset: start
            for dataset in unordered & by_dataset.keys()
            for start in by_dataset[dataset or b""]
            if start.descendants is None
        }
        found = self._descent.walk({dataset: search.writes for dataset, search in missing.items()})
        for dataset, descendants in found.items():
            missing[dataset].descendants = descendants

    def _is_meant(self, read: SnapshotRead, by_dataset: Mapping[bytes, Sequence[ReaderSearch]]) -> bool:
        """Return whether a read is of a searched snapshot, or of changes that contain it. A read's time is that of its
        commit, like that of all facts of one."""
        ref = snapshot_ref_of(read, read.last)
        if ref is None:
            return False
        makers = self._walk.makers.of(ref)
        return any(
            start.is_of(read, makers) or (is_range(read) and start.is_within(read))
            for start in by_dataset.get(ref.dataset, ())
        )

    def _is_from(self, write: SnapshotWrite, read: SnapshotRead, edges: Mapping[bytes, set[bytes]]) -> bool:
        if write.made_from == SOME:
            return read.id in edges.get(write.id, ())
        if write.made_from == "UNKNOWN":
            if write.dataset is not None:
                detail = f"its commit read {called(read)}, and whether it is in it isn't known"
                self._walk.limits.add_snapshot(LimitReason.UNKNOWN_SOURCES, write.dataset, write.snapshot, detail)
            return False
        return True

    def _visible(
        self, pairs: Sequence[tuple[SnapshotWrite, SnapshotRead]]
    ) -> Iterator[tuple[SnapshotWrite, SnapshotRead]]:
        if self._walk.hiding.hides_nothing:
            yield from pairs
            return
        of_reads = self._walk.hiding.are_hidden([deletion_subject_of(read, write) for write, read in pairs])
        of_writes = self._walk.hiding.are_hidden([deletion_subject_of(write, write) for write, _ in pairs])
        for pair, *hidden in zip(pairs, of_reads, of_writes, strict=True):
            why = next(filter(None, hidden), None)
            if why is None:
                yield pair
            elif pair[0].dataset is not None:
                detail = hidden_text(why, "lineage of what was made from it")
                about = pair[1].dataset or pair[0].dataset
                self._walk.limits.add_snapshot(why, about, pair[1].snapshot, detail)
