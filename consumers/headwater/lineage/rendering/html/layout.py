"""Where boxes and lines of a graph stand: in layers from left to right, with few crossings and straight lines.

The steps are Sugiyama's: cycles are broken, boxes get their layer by the longest way to them, lines over several
layers get a bend in each, layers are put in order by the barycentres of their neighbours, and each box comes as near to
the middle of its neighbours as those above and below it allow.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final, NamedTuple

Key = Hashable
_SWEEPS: Final = 12
_LINE: Final = 6.0
"""How much height a line takes that passes through a layer."""


class BoxSize(NamedTuple):
    width: float
    height: float


class LayoutLink(NamedTuple):
    """From one box to another; where on its sides it begins and ends, as distances from their middles."""

    source: Key
    target: Key
    leaves: float = 0.0
    enters: float = 0.0


class Point(NamedTuple):
    x: float
    y: float


@dataclass
class GraphLayout:
    width: float
    height: float
    at: dict[Key, Point] = field(default_factory=dict)
    """The upper left corner of each box."""
    ways: dict[LayoutLink, tuple[Point, ...]] = field(default_factory=dict)
    """From the right side of a link's source to the left side of its target, or backwards, where it closes a cycle."""
    layers: list[float] = field(default_factory=list)


class _Bend(NamedTuple):
    """Where a line passes through a layer."""

    link: LayoutLink
    layer: int


def compute_layout(
    sizes: Mapping[Key, BoxSize], links: Iterable[LayoutLink], *, across: float = 64, between: float = 22
) -> GraphLayout:
    """`across` is left between layers, `between` at least between boxes of one layer. Links from a box to itself are
    no concern of this."""
    wanted = [link for link in dict.fromkeys(links) if link.source != link.target]
    return _Graph(sizes, wanted, across, between).layout() if sizes else GraphLayout(0, 0)


class _Graph:
    def __init__(
        self, sizes: Mapping[Key, BoxSize], links: Sequence[LayoutLink], across: float, between: float
    ) -> None:
        self._sizes = sizes
        self._across = across
        self._between = between
        self._back = _closing_cycles(list(sizes), links)
        self._forward = {link: _reverse(link) if link in self._back else link for link in links}
        self._layer_of = _layers(list(sizes), self._forward.values())
        self._layers: list[list[Key]] = [[] for _ in range(max(self._layer_of.values()) + 1)]
        self._up: dict[Key, list[tuple[Key, float]]] = defaultdict(list)
        """By box or bend its neighbours on the left, and by how much it would stand lower than each of them, were the
        line between them straight."""
        self._down: dict[Key, list[tuple[Key, float]]] = defaultdict(list)
        for key in sizes:
            self._layers[self._layer_of[key]].append(key)
        self._bends = {link: self._bent(link) for link in dict.fromkeys(self._forward.values())}

    def layout(self) -> GraphLayout:
        self._order()
        middles = self._middles()
        heights = [middles[key] - self._height(key) / 2 for key in middles]
        top = min(heights)
        bottom = max(middles[key] + self._height(key) / 2 for key in middles)
        columns, width = self._columns()
        found = GraphLayout(width, bottom - top, layers=columns)
        for key, size in self._sizes.items():
            found.at[key] = Point(columns[self._layer_of[key]], middles[key] - size.height / 2 - top)
        for link, forward in self._forward.items():
            way = tuple(self._way(forward, middles, columns, top))
            found.ways[link] = way[::-1] if link in self._back else way
        return found

    def _bent(self, link: LayoutLink) -> list[_Bend]:
        first, last = self._layer_of[link.source], self._layer_of[link.target]
        bends = [_Bend(link, layer) for layer in range(first + 1, last)]
        for bend in bends:
            self._layers[bend.layer].append(bend)
        for left, right in pairwise([link.source, *bends, link.target]):
            lower = (link.leaves if left == link.source else 0) - (link.enters if right == link.target else 0)
            self._up[right].append((left, lower))
            self._down[left].append((right, -lower))
        return bends

    def _height(self, key: Key) -> float:
        return _LINE if isinstance(key, _Bend) else self._sizes[key].height

    # The order within layers.

    def _order(self) -> None:
        best, least = [list(layer) for layer in self._layers], self._crossings()
        for sweep in range(_SWEEPS):
            neighbours = self._up if sweep % 2 == 0 else self._down
            for layer in self._layers if sweep % 2 == 0 else reversed(self._layers):
                self._sort(layer, neighbours)
            crossings = self._crossings()
            if crossings < least:
                best, least = [list(layer) for layer in self._layers], crossings
        self._layers = best

    def _sort(self, layer: list[Key], neighbours: Mapping[Key, Sequence[tuple[Key, float]]]) -> None:
        """One without neighbours on that side stays where it is."""
        places = {key: place for layer in self._layers for place, key in enumerate(layer)}
        weight = {
            key: _mean([places[other] - lower / 1000 for other, lower in neighbours.get(key, ())], place)
            for place, key in enumerate(layer)
        }
        layer.sort(key=weight.__getitem__)

    def _crossings(self) -> int:
        return sum(self._between_two(left, right) for left, right in pairwise(self._layers))

    def _between_two(self, left: Sequence[Key], right: Sequence[Key]) -> int:
        places = {key: place for place, key in enumerate(right)}
        crossings, met = 0, list[int]()
        for key in left:
            ends = sorted(places[other] for other, _ in self._down.get(key, ()))
            crossings += sum(len(met) - bisect_right(met, end) for end in ends)
            for end in ends:
                insort(met, end)
        return crossings

    # The place of each.

    def _middles(self) -> dict[Key, float]:
        middles: dict[Key, float] = {}
        for layer in self._layers:
            middles |= self._spread_apart(layer, [0.0] * len(layer))
        for sweep in range(3 * _SWEEPS):
            sides = ((self._up, self._layers), (self._down, self._layers[::-1]))
            neighbours, layers = sides[sweep % 2] if sweep < 2 * _SWEEPS else (self._both(), self._layers)
            for layer in layers:
                wanted = [
                    _mean([middles[other] + lower for other, lower in neighbours.get(key, ())], middles[key])
                    for key in layer
                ]
                middles |= self._spread_apart(layer, wanted)
        level: dict[Key, float] = {}
        for bends in self._bends.values():
            level |= dict.fromkeys(bends, _mean([middles[bend] for bend in bends], 0))
        for layer in self._layers:
            middles |= self._spread_apart(layer, [level.get(key, middles[key]) for key in layer])
        return middles

    def _both(self) -> dict[Key, list[tuple[Key, float]]]:
        return {key: self._up.get(key, []) + self._down.get(key, []) for layer in self._layers for key in layer}

    def _spread_apart(self, layer: Sequence[Key], wanted: Sequence[float]) -> dict[Key, float]:
        """As near to what is wanted as may be, in squares, each far enough from the one above: where two come too near
        they become a block, which stands where its members want it on the average."""
        down, lower = [0.0], 0.0
        for above, below in pairwise(layer):
            lower += (self._height(above) + self._height(below)) / 2 + self._between
            down.append(lower)
        blocks: list[tuple[float, int]] = []
        for want, offset in zip(wanted, down, strict=True):
            at, count = want - offset, 1
            while blocks and blocks[-1][0] > at:
                before, several = blocks.pop()
                at, count = (before * several + at * count) / (several + count), several + count
            blocks.append((at, count))
        places = [at for at, count in blocks for _ in range(count)]
        return {key: place + offset for key, place, offset in zip(layer, places, down, strict=True)}

    def _columns(self) -> tuple[list[float], float]:
        x, columns = 0.0, []
        for layer in self._layers:
            columns.append(x)
            x += max((self._sizes[key].width for key in layer if key in self._sizes), default=0.0) + self._across
        return columns, x - self._across

    def _way(
        self, link: LayoutLink, middles: Mapping[Key, float], columns: Sequence[float], top: float
    ) -> Iterator[Point]:
        start, end = self._layer_of[link.source], self._layer_of[link.target]
        y = middles[link.source] + link.leaves - top
        yield Point(columns[start] + self._sizes[link.source].width, y)
        yield Point(columns[start + 1] - self._across, y)
        for bend in self._bends[link]:
            after = columns[bend.layer + 1] - self._across
            yield Point(columns[bend.layer], middles[bend] - top)
            yield Point(after, middles[bend] - top)
        yield Point(columns[end], middles[link.target] + link.enters - top)


def _closing_cycles(keys: Sequence[Key], links: Sequence[LayoutLink]) -> set[LayoutLink]:
    """Links that lead back to where somebody who follows links has come by. Without recursion: chains can be long."""
    following: dict[Key, list[LayoutLink]] = defaultdict(list)
    for forward in links:
        following[forward.source].append(forward)
    back: set[LayoutLink] = set()
    done: set[Key] = set()
    for start in keys:
        stack, open_ = [(start, iter(following[start]))], {start}
        while stack and start not in done:
            key, rest = stack[-1]
            link = next(rest, None)
            if link is None:
                stack.pop()
                open_.discard(key)
                done.add(key)
            elif link.target in open_:
                back.add(link)
            elif link.target not in done:
                open_.add(link.target)
                stack.append((link.target, iter(following[link.target])))
    return back


def _layers(keys: Sequence[Key], links: Iterable[LayoutLink]) -> dict[Key, int]:
    """The longest way to each; what nothing leads to stands in the first layer."""
    following: dict[Key, list[Key]] = defaultdict(list)
    missing = dict.fromkeys(keys, 0)
    for link in links:
        following[link.source].append(link.target)
        missing[link.target] += 1
    layer = dict.fromkeys(keys, 0)
    ready = [key for key in keys if not missing[key]]
    while ready:
        key = ready.pop()
        for other in following[key]:
            layer[other] = max(layer[other], layer[key] + 1)
            missing[other] -= 1
            if not missing[other]:
                ready.append(other)
    return layer


def _reverse(link: LayoutLink) -> LayoutLink:
    return LayoutLink(link.target, link.source, link.enters, link.leaves)


def _mean(values: Sequence[float], default: float) -> float:
    return sum(values) / len(values) if values else default
