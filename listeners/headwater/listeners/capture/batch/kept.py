"""Rows that one statement kept and another one reads: checkpoints. An RDD shows nothing of where it comes from, but a
checkpoint's columns have the ids of the plan that it was made of; so what that plan read can be put in its place.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from headwater.events import ColumnLineage, Derivation
from headwater.listeners.capture.batch.commits import versions
from headwater.listeners.capture.batch.later import with_later
from headwater.listeners.capture.batch.shapes import Reached, ShapeOfWrite, shape_of_reading, without_leaf
from headwater.listeners.capture.plan.columns import Lineage, Origin, lineage_of
from headwater.listeners.capture.plan.tree import Plan
from headwater.listeners.capture.scene import Scene
from headwater.listeners.capture.statements import Statement

_MOST_COLUMNS: Final = 100_000
_STRENGTH: Final = (Derivation.IDENTITY, Derivation.TRANSFORMATION, Derivation.AGGREGATION)


@dataclass(frozen=True)
class _Kept:
    """What a checkpoint was made of."""

    shape: ShapeOfWrite
    lineage: Lineage
    output: tuple[int, ...]
    """The plan's attributes, in the order of Spark's ids."""


class Keeping:
    """What this driver saw of checkpoints, by Spark's ids of their columns."""

    def __init__(self) -> None:
        self._by_id: OrderedDict[int, tuple[_Kept, int]] = OrderedDict()

    def keep(self, ids: Sequence[int], statement: Statement, scene: Scene, query: int | None = None) -> None:
        """A checkpoint was made, or rows were handed to a function: these are the ids of its columns. `query` is the
        node that gave them, the plan's top if none."""
        plan = statement.plan
        root = plan.root if query is None else query
        shape = with_later(shape_of_reading(plan, scene, root), statement)
        leaves = tuple(replace(leaf, versions=versions(leaf, statement)) for leaf in shape.leaves)
        kept = _Kept(replace(shape, leaves=leaves), lineage_of(plan, root), plan.nodes[root].output)
        for place, each in enumerate(ids):
            self._by_id[each] = (kept, place)
        while len(self._by_id) > _MOST_COLUMNS:
            self._by_id.popitem(last=False)

    def seen_through(self, shape: ShapeOfWrite, rdds: Iterable[Mapping[str, Any]], plan: Plan) -> ShapeOfWrite:
        """The shape with what was kept in place of the RDDs that are known; the others stay opaque."""
        for rdd in rdds:
            known = [found for each in rdd["ids"] if (found := self._by_id.get(each)) is not None]
            if not known or len(known) < len(rdd["ids"]) or any(kept is not known[0][0] for kept, _ in known):
                continue
            numbers = plan.nodes[rdd["node"]].output
            columns = {plan.attribute(n).name: place for n, (_, place) in zip(numbers, known, strict=True)}
            shape = _replaced(shape, rdd["node"], known[0][0], columns)
        return shape


def _replaced(shape: ShapeOfWrite, node: int, kept: _Kept, columns: Mapping[str, int]) -> ShapeOfWrite:
    place = next((n for n, leaf in enumerate(shape.leaves) if leaf.described.node == node), None)
    if place is None:
        return shape
    gone = shape.leaves[place].source
    sources = list(shape.sources)
    moved = [_place_of(source, sources) for source in kept.shape.sources]
    new = tuple(replace(leaf, source=moved[leaf.source]) for leaf in kept.shape.leaves)
    leaves = (*shape.leaves, *new)
    added = tuple(range(len(shape.leaves), len(leaves)))
    parts = tuple(_reaching(part, place, added) for part in shape.parts)
    sources_of: dict[int, dict[int, None]] = {}
    for leaf in kept.shape.leaves:
        sources_of.setdefault(leaf.described.node, {})[moved[leaf.source]] = None
    edges = [after for edge in shape.columns for after in _through(edge, gone, kept, columns, sources_of)]
    for number in range(len(parts)):
        edges += [_whole(number, o, source) for o in kept.lineage.indirect for source in sources_of[o.leaf]]
    dropped = ShapeOfWrite(
        tuple(sources), leaves, parts, tuple(dict.fromkeys(edges)), (*shape.unknown, *kept.lineage.unknown)
    )
    return without_leaf(dropped, place)


def _place_of(source: Any, sources: list[Any]) -> int:
    if source not in sources:
        sources.append(source)
    return sources.index(source)


def _reaching(reached: Reached, place: int, added: tuple[int, ...]) -> Reached:
    return replace(reached, leaves=(*reached.leaves, *added)) if place in reached.leaves else reached


def _through(
    edge: ColumnLineage, gone: int, kept: _Kept, columns: Mapping[str, int], sources_of: Mapping[int, Iterable[int]]
) -> Iterator[ColumnLineage]:
    """An edge from the RDD becomes one from each of the columns that its own column was made of."""
    if edge.input != gone:
        yield edge
        return
    place = columns.get(edge.source[0])
    for origin in () if place is None else kept.lineage.columns.get(kept.output[place], ()):
        further = edge.source[1:] if origin.derivation is Derivation.IDENTITY else ()
        update = {
            "source": (*origin.path, *further),
            "derivation": _composed(origin.derivation, edge.derivation),
            "expression": edge.expression or origin.expression,
        }
        yield from (edge.model_copy(update={**update, "input": source}) for source in sources_of[origin.leaf])


def _composed(first: Derivation, then: Derivation) -> Derivation:
    """What decides about rows or choices stays so, whatever it is made of; of two direct ones the stronger holds."""
    if not then.is_direct:
        return then
    return first if not first.is_direct else max(first, then, key=_STRENGTH.index)


def _whole(output: int, origin: Origin, source: int) -> ColumnLineage:
    return ColumnLineage(
        output=output,
        input=source,
        source=origin.path,
        derivation=origin.derivation,
        expression=origin.expression,
    )
