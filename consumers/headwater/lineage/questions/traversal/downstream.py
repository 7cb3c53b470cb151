"""Finds what was made from snapshots, level by level."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain

from headwater.lineage.mapping.commits import SOME
from headwater.lineage.questions.answers import LimitReason
from headwater.lineage.questions.traversal.context import (
    Basis,
    LineageStep,
    TraversalContext,
    is_range,
    snapshot_ref_of,
)
from headwater.lineage.questions.traversal.descent import Descent
from headwater.lineage.questions.traversal.portions import growing_portions
from headwater.lineage.questions.traversal.snapshot_rows import (
    SnapshotRead,
    SnapshotWrite,
    is_unordered,
    load_edges,
    load_ranges_containing,
    load_reads_at,
    load_writes_of_commits,
)
from headwater.lineage.questions.traversal.snapshot_writers import DatasetSnapshot, SnapshotRef, deletion_subject_of
from headwater.lineage.questions.traversal.upstream import label


class ReaderSearch:
    """A snapshot whose readers are searched, with the later states that contain it."""

    def __init__(self, ref: SnapshotRef, write: Sequence[SnapshotWrite], states: Iterable[SnapshotWrite] = ()) -> None:
        self.wanted = ref
        self.ids = {each.id for each in write}
        self.states = {each.id for each in states}
        self.numbers = {ref.snapshot}
        self.state_numbers = {each.snapshot for each in states if each.snapshot is not None}


class DownstreamWalk:
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
        self._done.update(each.id for _, write in asked for each in write)
        while asked:
            new: dict[bytes, SnapshotWrite] = {}
            for readers in self._readers(self._aims(asked)):
                steps = list(self._made_from(readers, level))
                yield steps
                new |= {step.write.id: step.write for step in steps if step.write.id not in self._done}
            if depth is not None and level >= depth:
                return
            self._done.update(new)
            asked = [(ref, [write]) for write in new.values() if (ref := _as_ref(write)) is not None]
            level += 1

    def _aims(self, asked: Sequence[tuple[SnapshotRef, Sequence[SnapshotWrite]]]) -> list[ReaderSearch]:
        if self._basis is Basis.COMMIT:
            return [ReaderSearch(ref, write) for ref, write in asked]
        parts = self._descent.walk([each for _, write in asked for each in write])
        return [ReaderSearch(ref, write, [s for each in write for s in parts[each.id]]) for ref, write in asked]

    def _made_from(self, readers: Sequence[SnapshotRead], level: int) -> Iterator[LineageStep]:
        written: dict[bytes, list[SnapshotWrite]] = {}
        for write in load_writes_of_commits(
            self._walk.connection, {(each.commit_id, each.barrier) for each in readers}
        ):
            if write.commit_id is not None:
                written.setdefault(write.commit_id, []).append(write)
        edges = load_edges(self._walk.connection, [m for each in written.values() for m in each if m.made_from == SOME])
        pairs = [(write, read) for read in readers for write in written.get(read.commit_id, ())]
        for write, read in self._visible([(m, read) for m, read in pairs if self._is_from(m, read, edges)]):
            if self._walk.as_of is None or write.at <= self._walk.as_of:
                yield LineageStep(level, write, read)

    def _readers(self, aims: Sequence[ReaderSearch]) -> Iterator[list[SnapshotRead]]:
        """Yield the reads of these snapshots in portions, and not those of others with the same number."""
        groups: dict[DatasetSnapshot, list[ReaderSearch]] = {}
        for aim in aims:
            for dataset in self._walk.identities.group(aim.wanted.dataset):
                for number in aim.numbers | aim.state_numbers:
                    groups.setdefault((dataset, number), []).append(aim)
        over = {(dataset, number) for (dataset, number), of in groups.items() if any(number in a.numbers for a in of)}
        by_dataset: dict[bytes, list[ReaderSearch]] = {}
        for (dataset, _), of in groups.items():
            known = by_dataset.setdefault(dataset, [])
            known += [aim for aim in of if aim not in known]
        connection, seen = self._walk.connection, set[bytes]()
        for portion in growing_portions(
            chain(load_reads_at(connection, groups), load_ranges_containing(connection, over))
        ):
            found = [each for each in portion if each.id not in seen]
            seen.update(each.id for each in found)
            self._walk.makers.load(ref for each in found if (ref := snapshot_ref_of(each, _at(each))) is not None)
            yield [each for each in found if self._is_meant(each, groups, by_dataset)]

    def _is_meant(
        self,
        read: SnapshotRead,
        groups: Mapping[DatasetSnapshot, list[ReaderSearch]],
        by_dataset: Mapping[bytes, list[ReaderSearch]],
    ) -> bool:
        if read.dataset is None or read.snapshot is None:
            return False
        exact = groups.get((read.dataset, read.snapshot), ())
        if any(self._is_one(read, aim) for aim in exact):
            return True
        return is_range(read) and any(self._is_over(read, aim) for aim in by_dataset.get(read.dataset, ()))

    def _is_one(self, read: SnapshotRead, aim: ReaderSearch) -> bool:
        """Return whether a read is of this snapshot, generation and branch. Changes have to end with it."""
        ref = snapshot_ref_of(read, _at(read))
        if ref is None:
            return False
        makers = {each.id for each in self._walk.makers.of(ref)}
        if not aim.ids or not makers:
            same = (
                read.generation in {None, aim.wanted.generation} or aim.wanted.generation is None
            ) and read.branch == aim.wanted.branch
            return same and read.snapshot == aim.wanted.snapshot
        if makers & aim.ids:
            return True
        return bool(makers & aim.states) and not is_range(read)

    def _is_over(self, read: SnapshotRead, aim: ReaderSearch) -> bool:
        """Return whether a read of changes includes this snapshot."""
        number, since, until = aim.wanted.snapshot, read.since, read.snapshot
        if since is None or until is None or read.branch != aim.wanted.branch:
            return False
        if (
            read.generation is not None
            and aim.wanted.generation is not None
            and read.generation != aim.wanted.generation
        ):
            return False
        if is_unordered(read.format):
            return self._is_between(read, aim)
        return since < number <= until or (number == since and read.since_version is not None)

    def _is_between(self, read: SnapshotRead, aim: ReaderSearch) -> bool:
        """Decide by parents, where snapshot ids have no order."""
        ids = aim.ids
        makers = [each for each in self._makers_known(aim) if each.id in ids]
        after = {each.snapshot for states in self._descent.walk(makers).values() for each in states}
        if read.since == aim.wanted.snapshot:
            return read.since_version is not None
        return read.snapshot in after and read.since not in after

    def _makers_known(self, aim: ReaderSearch) -> list[SnapshotWrite]:
        return self._walk.makers.of(aim.wanted)

    def _is_from(self, write: SnapshotWrite, read: SnapshotRead, edges: Mapping[bytes, set[bytes]]) -> bool:
        if write.made_from == SOME:
            return read.id in edges.get(write.id, ())
        if write.made_from == "UNKNOWN":
            if write.dataset is not None:
                detail = f"its commit read {label(read)}, and whether it is in it isn't known"
                self._walk.limits.add_snapshot(LimitReason.UNKNOWN_SOURCES, write.dataset, write.snapshot, detail)
            return False
        return True

    def _visible(
        self, pairs: Sequence[tuple[SnapshotWrite, SnapshotRead]]
    ) -> Iterator[tuple[SnapshotWrite, SnapshotRead]]:
        of_reads = self._walk.hiding.are_hidden([deletion_subject_of(read, write) for write, read in pairs])
        of_writes = self._walk.hiding.are_hidden([deletion_subject_of(write, write) for write, _ in pairs])
        for pair, *hidden in zip(pairs, of_reads, of_writes, strict=True):
            if not any(hidden):
                yield pair
            elif pair[0].dataset is not None:
                detail = "lineage of what was made from it was deleted"
                about = pair[1].dataset or pair[0].dataset
                self._walk.limits.add_snapshot(LimitReason.DELETED, about, pair[1].snapshot, detail)


def _as_ref(write: SnapshotWrite) -> SnapshotRef | None:
    if write.dataset is None or write.snapshot is None:
        return None
    return SnapshotRef(write.dataset, write.snapshot, write.generation, write.branch, write.at)


def _at(read: SnapshotRead) -> int:
    """Return the time of a read. All facts of a commit have the same time."""
    return read.last
