"""Finds all snapshots that still contain a commit: its descendants up to the next full overwrite.

The first steps are one statement each. After that the table's history is read in portions. Descendants on other
branches, which may not be in a portion, are looked up at the end for all snapshots at once.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from headwater.lineage.questions.traversal.snapshot_rows import ICEBERG, SnapshotWrite, load_children, load_writes_after
from headwater.lineage.questions.traversal.snapshot_writers import SnapshotRef, SnapshotWriters, is_pointer

_STEPS: Final = 4
_PORTION: Final = 512
_GREATEST: Final = 8_192
_Head = tuple[bytes, SnapshotWrite]


class Descent:
    """Walks for one question."""

    def __init__(self, makers: SnapshotWriters) -> None:
        self._makers = makers
        self._children: dict[tuple[bytes, int], dict[bytes, SnapshotWrite]] = {}
        self._asked: set[tuple[bytes, int]] = set()
        self._read_to: dict[bytes, int] = {}
        self._portions: dict[bytes, int] = {}

    def walk(self, writes: Collection[SnapshotWrite]) -> dict[bytes, list[SnapshotWrite]]:
        """Return for each write, by id, itself and all descendants that contain it."""
        found = {each.id: {each.id: each} for each in writes}
        heads = [(each.id, each) for each in writes if each.snapshot is not None]
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
        return {origin: list(each.values()) for origin, each in found.items()}

    def _next_heads(self, heads: Collection[_Head], found: dict[bytes, dict[bytes, SnapshotWrite]]) -> list[_Head]:
        following: list[_Head] = []
        for origin, head in heads:
            for child in self._born(head):
                if child.id not in found[origin]:
                    found[origin][child.id] = child
                    following.append((origin, child))
        return following

    def _born(self, head: SnapshotWrite) -> list[SnapshotWrite]:
        """Return the children of this write, and not of another with the same snapshot number. A full overwrite
        contains nothing of it."""
        there = [child for pair in self._pairs(head) for child in self._children.get(pair, {}).values()]
        return [child for child in there if not child.restarts and not is_pointer(child) and self._is_of(child, head)]

    def _is_of(self, child: SnapshotWrite, head: SnapshotWrite) -> bool:
        if child.dataset is None or child.parent is None:
            return False
        ref = SnapshotRef(
            child.dataset, child.parent, child.generation, child.branch, child.at, child.format == ICEBERG
        )
        makers = self._makers.near(ref)
        if makers is None:
            self._makers.load([ref])
            makers = self._makers.of(ref)
        return any(each.id == head.id for each in makers)

    def _has_children(self, head: SnapshotWrite) -> bool:
        return any(pair in self._children for pair in self._pairs(head))

    def _pairs(self, head: SnapshotWrite) -> list[tuple[bytes, int]]:
        if head.dataset is None or head.snapshot is None:
            return []
        return [(dataset, head.snapshot) for dataset in self._makers.identities.group(head.dataset)]

    def _ask(self, heads: Collection[SnapshotWrite]) -> bool:
        """Load children. Return whether anything new was found."""
        pairs = {pair for each in heads for pair in self._pairs(each)} - self._asked
        self._asked |= pairs
        return bool(pairs) and self._keep(self._makers.keep(load_children(self._makers.connection, pairs)))

    def _read_on(self, heads: Collection[SnapshotWrite]) -> None:
        """Read the next portion of the tables' history."""
        for dataset, at in sorted({each.dataset: each.at for each in heads if each.dataset is not None}.items()):
            start = max(at, self._read_to.get(dataset, at))
            size = self._portions.get(dataset, _PORTION)
            self._portions[dataset] = min(size * 2, _GREATEST)
            group = list(self._makers.identities.group(dataset))
            found = self._makers.keep(load_writes_after(self._makers.connection, group, start, size))
            self._keep(found)
            self._read_to[dataset] = max((each.at for each in found), default=start)

    def _keep(self, found: Collection[SnapshotWrite]) -> bool:
        is_news = False
        for each in found:
            if each.dataset is not None and each.parent is not None:
                known = self._children.setdefault((each.dataset, each.parent), {})
                is_news |= each.id not in known
                known[each.id] = each
        return is_news
