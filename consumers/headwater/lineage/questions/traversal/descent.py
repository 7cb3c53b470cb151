"""Finds all snapshots that still contain a commit: its descendants up to the next full overwrite.

The first steps are one statement each. After that the table's history is read in portions. Descendants on other
branches, which may not be in a portion, are looked up at the end for all snapshots at once.

Decides which reads are of the snapshots whose readers are searched: of those themselves, of later states that
contain them, or of changes that include them.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final

from headwater.lineage.questions.traversal.context import is_range
from headwater.lineage.questions.traversal.histories import load_writes_after
from headwater.lineage.questions.traversal.reconciled import is_pointer
from headwater.lineage.questions.traversal.snapshot_rows import (
    ICEBERG,
    SnapshotRead,
    SnapshotWrite,
    is_unordered,
    load_children,
)
from headwater.lineage.questions.traversal.snapshot_writers import SnapshotRef, SnapshotWriters, ref_of

_STEPS: Final = 4
_PORTION: Final = 512
_GREATEST: Final = 8_192
_Head = tuple[bytes, SnapshotWrite]


class Descendants:
    """Writes, and all later ones whose states contain them."""

    def __init__(self, writes: Iterable[SnapshotWrite]) -> None:
        self.writes: dict[bytes, SnapshotWrite] = {}
        self.parents: dict[bytes, set[bytes]] = {}
        """The ids of the writes from which each descendant was reached."""
        self.by_number: dict[int, set[bytes]] = {}
        for write in writes:
            self._keep(write)

    def add(self, child: SnapshotWrite, head: SnapshotWrite) -> bool:
        """Add a child. Return whether it is new."""
        self.parents.setdefault(child.id, set()).add(head.id)
        is_new = child.id not in self.writes
        self._keep(child)
        return is_new

    def _keep(self, write: SnapshotWrite) -> None:
        self.writes[write.id] = write
        if write.snapshot is not None:
            self.by_number.setdefault(write.snapshot, set()).add(write.id)

    def between(self, since: int, until: int) -> set[bytes]:
        """Return the ancestors of the snapshot `until`, with itself, without those of the snapshot `since`."""
        ends, excluded = self.by_number.get(until, set()), self.by_number.get(since, set())
        found = self._ancestors(ends, excluded)
        is_line = len(ends) == 1 and all(len(self.parents.get(child, ())) == 1 for child in found)
        if not found or not excluded or (is_line and any(self.parents[child] == excluded for child in found)):
            return found
        return found - self._ancestors(excluded, ())

    def _ancestors(self, of: Collection[bytes], without: Collection[bytes]) -> set[bytes]:
        """Return these writes with their ancestors, as far as they are reached without passing some."""
        found = {ref for ref in of if ref not in without}
        waiting = list(found)
        while waiting:
            for parent in self.parents.get(waiting.pop(), ()):
                if parent not in found and parent not in without:
                    found.add(parent)
                    waiting.append(parent)
        return found


class Descent:
    """Walks for one question."""

    def __init__(self, makers: SnapshotWriters) -> None:
        self._makers = makers
        self._children: dict[tuple[bytes, int], dict[bytes, SnapshotWrite]] = {}
        self._asked: set[tuple[bytes, int]] = set()
        self._read_to: dict[bytes, int] = {}
        self._portions: dict[bytes, int] = {}

    def walk(self, origins: Mapping[bytes, Collection[SnapshotWrite]]) -> dict[bytes, Descendants]:
        """Return the writes of each origin with all descendants that contain any of them."""
        found = {origin: Descendants(writes) for origin, writes in origins.items()}
        heads = [
            (origin, write) for origin, writes in origins.items() for write in writes if write.snapshot is not None
        ]
        self._makers.load(ref for _, head in heads if (ref := ref_of(head)) is not None)
        visited = list(heads)
        steps = 0
        while heads:
            if steps < _STEPS:
                self._ask([head for _, head in heads])
            else:
                self._read_on([head for _, head in heads if not self._has_children(head)])
            heads = self._next_heads(heads, found)
            if not heads and self._ask([head for _, head in visited]):
                heads = self._next_heads(visited, found)
            visited += heads
            steps += 1
        return found

    def _next_heads(self, heads: Collection[_Head], found: Mapping[bytes, Descendants]) -> list[_Head]:
        born = [(origin, head, child) for origin, head in heads for child in self._born(head)]
        refs = {ref for _, _, child in born if (ref := _parent_ref(child)) is not None}
        self._makers.load([ref for ref in refs if self._makers.near(ref) is None])
        return [
            (origin, child)
            for origin, head, child in born
            if self._is_of(child, head) and found[origin].add(child, head)
        ]

    def _born(self, head: SnapshotWrite) -> list[SnapshotWrite]:
        """Return what may be a child of this write. A full overwrite contains nothing of it."""
        there = [child for pair in self._pairs(head) for child in self._children.get(pair, {}).values()]
        return [child for child in there if not child.restarts and not is_pointer(child)]

    def _is_of(self, child: SnapshotWrite, head: SnapshotWrite) -> bool:
        """Return whether this is a child of the write, and not of another with the same snapshot number."""
        ref = _parent_ref(child)
        makers = () if ref is None else self._makers.writer(ref)
        return any(maker.id == head.id for maker in makers)

    def _has_children(self, head: SnapshotWrite) -> bool:
        return any(pair in self._children for pair in self._pairs(head))

    def _pairs(self, head: SnapshotWrite) -> list[tuple[bytes, int]]:
        if head.dataset is None or head.snapshot is None:
            return []
        return [(dataset, head.snapshot) for dataset in self._makers.identities.group(head.dataset)]

    def _ask(self, heads: Collection[SnapshotWrite]) -> bool:
        """Load children. Return whether anything new was found."""
        pairs = {pair for ref in heads for pair in self._pairs(ref)} - self._asked
        self._asked |= pairs
        return bool(pairs) and self._keep(self._makers.keep(load_children(self._makers.connection, pairs)))

    def _read_on(self, heads: Collection[SnapshotWrite]) -> None:
        """Read the next portion of the tables' history."""
        for dataset, at in sorted({ref.dataset: ref.at for ref in heads if ref.dataset is not None}.items()):
            start = max(at, self._read_to.get(dataset, at))
            size = self._portions.get(dataset, _PORTION)
            self._portions[dataset] = min(size * 2, _GREATEST)
            group = list(self._makers.identities.group(dataset))
            found = self._makers.keep(load_writes_after(self._makers.connection, group, start, size))
            self._keep(found)
            self._read_to[dataset] = max((write.at for write in found), default=start)

    def _keep(self, found: Collection[SnapshotWrite]) -> bool:
        is_news = False
        for write in found:
            if write.dataset is not None and write.parent is not None:
                known = self._children.setdefault((write.dataset, write.parent), {})
                is_news |= write.id not in known
                known[write.id] = write
        return is_news


def _parent_ref(child: SnapshotWrite) -> SnapshotRef | None:
    if child.dataset is None or child.parent is None:
        return None
    return SnapshotRef(child.dataset, child.parent, child.generation, child.branch, child.at, child.format == ICEBERG)


Wanted = tuple[SnapshotRef, Sequence[SnapshotWrite]]
"""A snapshot with its known writes."""


class ReaderSearch:
    """The snapshots of one dataset whose readers are searched, however many: a read is compared with all at once."""

    def __init__(self, wanted: Sequence[Wanted], states: Descendants | None) -> None:
        self.dataset = wanted[0][0].dataset
        self.writes = [write for _, writes in wanted for write in writes]
        self.descendants = states
        """Later writes, as far as they were needed so far."""
        self._ids = {write.id for write in self.writes}
        self._states = frozenset[bytes]() if states is None else states.writes.keys()
        self._by_number: dict[int, list[Wanted]] = {}
        self._refs = {write.id: ref for ref, writes in wanted for write in writes if not is_pointer(write)}
        self._lines: dict[str | None, dict[str | None, list[int]]] = {}
        for pair in wanted:
            self._by_number.setdefault(pair[0].snapshot, []).append(pair)
        for number in sorted(self._by_number):
            for ref, _ in self._by_number[number]:
                self._lines.setdefault(ref.branch, {}).setdefault(ref.generation, []).append(number)

    @property
    def numbers(self) -> set[int]:
        """The numbers of the searched snapshots."""
        return set(self._by_number)

    @property
    def all_numbers(self) -> set[int]:
        """The numbers of the searched snapshots and of the states that contain them."""
        return self.numbers if self.descendants is None else self.numbers | self.descendants.by_number.keys()

    def is_of(self, read: SnapshotRead, makers: Sequence[SnapshotWrite]) -> bool:
        """Return whether a read is of one of these snapshots, generation and branch, or of a state that contains it.
        Changes have to end with it. `makers` wrote what was read."""
        made = {maker.id for maker in makers}
        if made & self._ids or (not is_range(read) and made & self._states):
            return True
        return any(
            (not made or not writes) and _may_be(read.generation, ref.generation) and read.branch == ref.branch
            for ref, writes in self._by_number.get(read.snapshot or 0, ())
            if read.snapshot is not None
        )

    def is_within(self, read: SnapshotRead) -> bool:
        """Return whether a read of changes includes one of these snapshots: by number, or by parents where snapshot ids
        have no order."""
        since, until = read.since, read.snapshot
        if since is None or until is None:
            return False
        begins_within = () if read.since_version is None else self._by_number.get(since, ())
        if any(self._is_on_line(read, ref) for ref, _ in begins_within):
            return True
        if is_unordered(read.format):
            return self._is_between(read, since, until)
        for generation, numbers in self._lines.get(read.branch, {}).items():
            place = bisect_right(numbers, since)
            if place < len(numbers) and numbers[place] <= until and _may_be(read.generation, generation):
                return True
        return False

    def _is_on_line(self, read: SnapshotRead, ref: SnapshotRef) -> bool:
        return read.branch == ref.branch and _may_be(read.generation, ref.generation)

    def _is_between(self, read: SnapshotRead, since: int, until: int) -> bool:
        known = self.descendants
        if known is None or until not in known.by_number:
            return False
        if len(self._lines) == len(self._refs) == 1 and since not in known.by_number:
            return self._is_on_line(read, next(iter(self._refs.values())))
        return any(
            (ref := self._refs.get(maker)) is not None and ref.snapshot != since and self._is_on_line(read, ref)
            for maker in known.between(since, until)
        )


def _may_be(one: str | None, other: str | None) -> bool:
    return one is None or other is None or one == other
