"""The shape of a write: computed once for each plan the driver tells, and used by every statement that has it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice
from typing import Final, TypeVar

from headwater.events import ColumnLineage, ShapedSink, ShapedSource
from headwater.events.base import Texts
from headwater.events.fingerprints import fingerprint_of
from headwater.events.redaction import Redactor
from headwater.listeners.capture.commands import Part, Write
from headwater.listeners.capture.formats import all_formats
from headwater.listeners.capture.formats.protocol import Described, TableFormat, Target, Version
from headwater.listeners.capture.formats.relations import columns_of, v2_name
from headwater.listeners.capture.plan.columns import Lineage, Origin, lineage_of, merge_lineage
from headwater.listeners.capture.plan.tree import Node, Plan, PlanError
from headwater.listeners.capture.scene import Scene

MOST_EDGES: Final = 200_000
"""A function over all columns of a wide table makes an edge of each pair: that there are more is told, not which."""
Side = TypeVar("Side", ShapedSource, ShapedSink)


@dataclass(frozen=True)
class Leaf:
    """A relation that is read, and which of the sources it is."""

    described: Described
    format: TableFormat | None
    source: int
    versions: tuple[Version, ...] | None = None
    """What was read, where an earlier statement read it and kept it."""


@dataclass(frozen=True)
class Reached:
    """A part, with the leaves that its rows come from and what is known of its columns."""

    part: Part
    format: TableFormat | None
    leaves: tuple[int, ...]
    """Places in `ShapeOfWrite.leaves`."""


@dataclass(frozen=True)
class ShapeOfWrite:
    sources: tuple[ShapedSource, ...]
    leaves: tuple[Leaf, ...]
    parts: tuple[Reached, ...]
    columns: tuple[ColumnLineage, ...]
    unknown: tuple[str, ...]
    """Operators whose columns couldn't be followed."""


def shape_of(write: Write, plan: Plan, scene: Scene) -> ShapeOfWrite:
    """What the plan tells of a write, whatever the versions are this time."""
    lineages = [_lineage(part, plan) for part in write.parts]
    wanted = dict.fromkeys([*(leaf for each in lineages for leaf in each.leaves), *write.reads])
    sources, leaves = _sources([plan.nodes[index] for index in wanted], plan, scene)
    places = _places(leaves)
    parts = tuple(
        Reached(part, _format_of(part.target), tuple(n for node in (*each.leaves, *write.reads) for n in places[node]))
        for part, each in zip(write.parts, lineages, strict=True)
    )
    leaves_of = {node: [leaves[n] for n in numbers] for node, numbers in places.items()}
    edges = (
        edge
        for output, (part, each) in enumerate(zip(write.parts, lineages, strict=True))
        for edge in _edges(output, part, each, plan, leaves_of)
    )
    unknown = tuple(dict.fromkeys(name for each in lineages for name in each.unknown))
    columns = tuple(dict.fromkeys(islice(edges, MOST_EDGES + 1)))
    if len(columns) > MOST_EDGES:
        return ShapeOfWrite(sources, leaves, parts, (), (*unknown, f"more than {MOST_EDGES} pairs of columns"))
    return ShapeOfWrite(sources, leaves, parts, columns, unknown)


def _places(leaves: Sequence[Leaf]) -> dict[int, list[int]]:
    """By the node of the plan: a subscription is a leaf for each of its topics."""
    found: dict[int, list[int]] = {}
    for n, leaf in enumerate(leaves):
        found.setdefault(leaf.described.node, []).append(n)
    return found


def shape_of_reading(plan: Plan, scene: Scene, root: int | None = None) -> ShapeOfWrite:
    """What a plan reads that writes nothing, or a part of it."""
    return shape_of(Write((), lineage_of(plan, plan.root if root is None else root).leaves), plan, scene)


def shape_of_refused(target: int | None, sources: Iterable[int], plan: Plan, scene: Scene) -> ShapeOfWrite:
    """What is known of a write that analysis refused: relations, and no columns."""
    found, leaves = _sources([plan.nodes[index] for index in dict.fromkeys(sources)], plan, scene)
    parts = () if target is None else (Reached(Part(_refused(plan.nodes[target], plan, scene)), None, ()),)
    return ShapeOfWrite(found, leaves, parts, (), ())


def _refused(node: Node, plan: Plan, scene: Scene) -> Target:
    """A relation, or the name that a table was to be made under."""
    if node.name == "ResolvedIdentifier" and node.args.get("catalog"):
        catalog = scene.catalog(node.args["catalog"])
        return Target(ShapedSink(dataset=None, table=v2_name(catalog.name, node.args["identifier"])), catalog)
    source = describe(node, plan, scene)[0].source
    return Target(ShapedSink(dataset=source.dataset, table=source.table, life=source.life, format=source.format))


def fingerprinted(
    sources: Sequence[ShapedSource], sinks: Sequence[ShapedSink], columns: Iterable[ColumnLineage], redactor: Redactor
) -> bytes:
    """A hash of a secret can be guessed at: options lose theirs before they count."""
    return fingerprint_of([_clean(s, redactor) for s in sources], [_clean(s, redactor) for s in sinks], columns)


def without_leaf(shape: ShapeOfWrite, place: int) -> ShapeOfWrite:
    """The shape without a leaf, and without its source, unless another leaf has that too."""
    source = shape.leaves[place].source
    leaves = tuple(leaf for n, leaf in enumerate(shape.leaves) if n != place)
    parts = tuple(
        replace(part, leaves=tuple(n - (n > place) for n in part.leaves if n != place)) for part in shape.parts
    )
    if any(leaf.source == source for leaf in leaves):
        return replace(shape, leaves=leaves, parts=parts)
    return ShapeOfWrite(
        tuple(each for n, each in enumerate(shape.sources) if n != source),
        tuple(replace(leaf, source=leaf.source - (leaf.source > source)) for leaf in leaves),
        parts,
        tuple(
            edge.model_copy(update={"input": edge.input - (edge.input > source)})
            for edge in shape.columns
            if edge.input != source
        ),
        shape.unknown,
    )


def without_part(shape: ShapeOfWrite, number: int) -> ShapeOfWrite:
    """The shape without one of the things it writes. What only that was made of stays read."""
    edges = (
        edge.model_copy(update={"output": edge.output - (edge.output > number)})
        for edge in shape.columns
        if edge.output != number
    )
    parts = tuple(part for n, part in enumerate(shape.parts) if n != number)
    return replace(shape, parts=parts, columns=tuple(edges))


def _clean(shape: Side, redactor: Redactor) -> Side:
    if not shape.options:
        return shape
    return shape.model_copy(update={"options": Texts(redactor.mapping(shape.options))})


def _lineage(part: Part, plan: Plan) -> Lineage:
    if part.row_level:
        return merge_lineage(plan, plan.root)
    if part.query is None:
        return Lineage()
    return lineage_of(plan.only(part.only) if part.only else plan, part.query)


def _sources(nodes: Iterable[Node], plan: Plan, scene: Scene) -> tuple[tuple[ShapedSource, ...], tuple[Leaf, ...]]:
    """Leaves that are one dataset, on one branch and tag, are one source."""
    sources = Sources()
    leaves: list[Leaf] = []
    for node in nodes:
        described, fmt = describe(node, plan, scene)
        leaves.extend(Leaf(each, fmt, sources.place(each.source)) for each in (described, *described.also))
    return sources.all(), tuple(leaves)


class Sources:
    """In the order they are first met."""

    def __init__(self) -> None:
        self._by_place: dict[object, tuple[int, ShapedSource]] = {}

    def place(self, source: ShapedSource) -> int:
        key = (source.dataset, source.table, source.life, source.branch, source.main, source.tag, source.opaque)
        return self._by_place.setdefault(key, (len(self._by_place), source))[0]

    def all(self) -> tuple[ShapedSource, ...]:
        return tuple(source for _, source in self._by_place.values())


def describe(node: Node, plan: Plan, scene: Scene) -> tuple[Described, TableFormat | None]:
    """What a leaf is; opaque where nothing tells where its rows come from."""
    for each in all_formats():
        found = each.source(node, plan, scene)
        if found is not None:
            return found, each
    return _some_relation(node, plan, scene), None


def _some_relation(node: Node, plan: Plan, scene: Scene) -> Described:
    columns = columns_of(plan, node.output)
    if node.name == "DataSourceV2Relation" and node.args.get("catalog"):
        catalog = scene.catalog(node.args["catalog"])
        name = v2_name(catalog.name, node.args["identifier"])
        location = node.args.get("table", {}).get("properties", {}).get("location")
        dataset = scene.dataset(catalog, name, location)
        return Described(node.index, ShapedSource(dataset=dataset, table=name, columns=columns))
    relation = node.args.get("relation")
    word = relation.get("relation", node.name) if isinstance(relation, dict) else node.name
    return Described(node.index, ShapedSource(dataset=None, opaque=word.rpartition(".")[2], columns=columns))


def _format_of(target: Target) -> TableFormat | None:
    fmt = target.sink.format
    return next((each for each in all_formats() if each.format is fmt), all_formats()[-1])


def _edges(
    output: int, part: Part, lineage: Lineage, plan: Plan, leaves_of: Mapping[int, Sequence[Leaf]]
) -> Iterator[ColumnLineage]:
    told = ((target, origin) for target, origins in _targets(part, lineage, plan) for origin in origins)
    for target, origin in chain(told, ((None, origin) for origin in lineage.indirect)):
        for leaf in leaves_of[origin.leaf]:
            if origin.path[0] not in leaf.described.hidden:
                yield _edge(output, target, origin, leaf.source)


def _targets(part: Part, lineage: Lineage, plan: Plan) -> Iterator[tuple[tuple[str, ...], tuple[Origin, ...]]]:
    if part.row_level:
        yield from lineage.fields.items()
        return
    if part.query is None:
        return
    output = plan.nodes[part.query].output
    if part.columns and len(part.columns) != len(output):
        raise PlanError(f"{len(output)} columns are written into {len(part.columns)}")
    for column, number in zip(part.columns, output, strict=False):
        if column is not None:
            yield column, lineage.columns.get(number, ())


def _edge(output: int, target: tuple[str, ...] | None, origin: Origin, source: int) -> ColumnLineage:
    return ColumnLineage(
        output=output,
        input=source,
        source=origin.path,
        target=target,
        derivation=origin.derivation,
        expression=origin.expression,
    )
