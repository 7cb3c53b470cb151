"""Decides which reads are of the snapshots whose readers are searched: of those themselves, of later states that
contain them, or of changes that include them.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

from headwater.lineage.questions.traversal.context import is_range
from headwater.lineage.questions.traversal.descent import Descendants
from headwater.lineage.questions.traversal.reconciled import is_pointer
from headwater.lineage.questions.traversal.snapshot_rows import SnapshotRead, SnapshotWrite, is_unordered
from headwater.lineage.questions.traversal.snapshot_writers import SnapshotRef

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
