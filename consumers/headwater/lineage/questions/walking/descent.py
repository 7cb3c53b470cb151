"""All snapshots that a commit is still a part of: those made on it, and on those, up to the next full overwrite.

The first steps are one statement each. Then the table's history is read on in portions; what was made on a snapshot on
another branch, and isn't in the portion, is asked for at the end, for all of them at once.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from headwater.lineage.questions.walking.facts import ICEBERG, Made, made_after, made_on
from headwater.lineage.questions.walking.makers import Makers, Wanted, points

_STEPS: Final = 4
_PORTION: Final = 512
_GREATEST: Final = 8_192
_Head = tuple[bytes, Made]


class Descent:
    """For one question."""

    def __init__(self, makers: Makers) -> None:
        self._makers = makers
        self._children: dict[tuple[bytes, int], dict[bytes, Made]] = {}
        self._asked: set[tuple[bytes, int]] = set()
        self._read_to: dict[bytes, int] = {}
        self._portions: dict[bytes, int] = {}

    def walk(self, made: Collection[Made]) -> dict[bytes, list[Made]]:
        """For each, by its id: itself and all that it is a part of."""
        found = {each.id: {each.id: each} for each in made}
        heads = [(each.id, each) for each in made if each.snapshot is not None]
        visited = list(heads)
        steps = 0
        while heads:
            if steps < _STEPS:
                self._ask([head for _, head in heads])
            else:
                self._read_on([head for _, head in heads if not self._has_children(head)])
            heads = self._following(heads, found)
            if not heads and self._ask([head for _, head in visited]):
                heads = self._following(visited, found)
            visited += heads
            steps += 1
        return {origin: list(each.values()) for origin, each in found.items()}

    def _following(self, heads: Collection[_Head], found: dict[bytes, dict[bytes, Made]]) -> list[_Head]:
        following: list[_Head] = []
        for origin, head in heads:
            for child in self._born(head):
                if child.id not in found[origin]:
                    found[origin][child.id] = child
                    following.append((origin, child))
        return following

    def _born(self, head: Made) -> list[Made]:
        """Those made on this one, and not on another that had its number; where all was replaced, nothing is left."""
        there = [child for pair in self._pairs(head) for child in self._children.get(pair, {}).values()]
        return [child for child in there if not child.restarts and not points(child) and self._is_of(child, head)]

    def _is_of(self, child: Made, head: Made) -> bool:
        if child.dataset is None or child.parent is None:
            return False
        wanted = Wanted(child.dataset, child.parent, child.life, child.branch, child.at, child.format == ICEBERG)
        makers = self._makers.near(wanted)
        if makers is None:
            self._makers.load([wanted])
            makers = self._makers.of(wanted)
        return any(each.id == head.id for each in makers)

    def _has_children(self, head: Made) -> bool:
        return any(pair in self._children for pair in self._pairs(head))

    def _pairs(self, head: Made) -> list[tuple[bytes, int]]:
        if head.dataset is None or head.snapshot is None:
            return []
        return [(dataset, head.snapshot) for dataset in self._makers.identities.group(head.dataset)]

    def _ask(self, heads: Collection[Made]) -> bool:
        """Whether anything was found that wasn't known."""
        pairs = {pair for each in heads for pair in self._pairs(each)} - self._asked
        self._asked |= pairs
        return bool(pairs) and self._keep(self._makers.keep(made_on(self._makers.connection, pairs)))

    def _read_on(self, heads: Collection[Made]) -> None:
        """The table's history from here on, a portion."""
        for dataset, at in sorted({each.dataset: each.at for each in heads if each.dataset is not None}.items()):
            start = max(at, self._read_to.get(dataset, at))
            size = self._portions.get(dataset, _PORTION)
            self._portions[dataset] = min(size * 2, _GREATEST)
            group = list(self._makers.identities.group(dataset))
            found = self._makers.keep(made_after(self._makers.connection, group, start, size))
            self._keep(found)
            self._read_to[dataset] = max((each.at for each in found), default=start)

    def _keep(self, found: Collection[Made]) -> bool:
        is_news = False
        for each in found:
            if each.dataset is not None and each.parent is not None:
                known = self._children.setdefault((each.dataset, each.parent), {})
                is_news |= each.id not in known
                known[each.id] = each
        return is_news
