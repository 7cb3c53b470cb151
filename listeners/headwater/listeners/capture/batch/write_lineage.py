"""The shape of a write: computed once for each plan the driver tells, and used by every statement that has it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice
from typing import Final, NamedTuple, TypeVar
from weakref import ReferenceType, ref

from headwater.events import ColumnLineage
from headwater.events.base import StringMap
from headwater.events.column_lineage import Derivation
from headwater.events.fingerprints import fingerprint_of, is_sql_option
from headwater.events.jobs import SinkSchema, SourceSchema
from headwater.events.redaction import Redactor
from headwater.listeners.capture.asking import answers
from headwater.listeners.capture.context import CaptureContext
from headwater.listeners.capture.formats import plugins, row_changes_readers
from headwater.listeners.capture.formats.protocol import (
    ReadVersion,
    SinkWrite,
    SourceRelation,
    StatementWrites,
    TableFormat,
    WriteTarget,
)
from headwater.listeners.capture.formats.relations import RDDS, columns_of, v2_name
from headwater.listeners.capture.plan.columns import ColumnOrigin, QueryLineage, lineage_of, merge_lineage
from headwater.listeners.capture.plan.tree import Plan, PlanError, PlanNode

MAX_EDGES: Final = 20_000
"""So many are followed, recorded and encoded within a second. A function over all columns of a wide table makes an edge
of each pair: that there are more is reported, not which."""
_Side = TypeVar("_Side", SourceSchema, SinkSchema)


@dataclass(frozen=True)
class SourceLeaf:
    """A relation that is read, and which of the sources it is."""

    relation: SourceRelation
    format: TableFormat | None
    source: int
    versions: tuple[ReadVersion, ...] | None = None
    """What was read, where an earlier statement read it and kept it."""


@dataclass(frozen=True)
class ResolvedSink:
    """A part, with the leaves that its rows come from and what is known of its columns."""

    part: SinkWrite
    format: TableFormat | None
    leaves: tuple[int, ...]
    """Places in `WriteLineage.leaves`."""


class _Edge(NamedTuple):
    """The fields of a ColumnLineage: of those that are the same one is made."""

    output: int
    input: int
    source: tuple[str, ...]
    target: tuple[str, ...] | None
    derivation: Derivation
    expression: str | None


@dataclass(frozen=True)
class WriteLineage:
    sources: tuple[SourceSchema, ...]
    leaves: tuple[SourceLeaf, ...]
    parts: tuple[ResolvedSink, ...]
    columns: tuple[ColumnLineage, ...]
    unknown: tuple[str, ...]
    """Operators whose columns couldn't be followed."""


def lineage_of_write(write: StatementWrites, plan: Plan, context: CaptureContext) -> WriteLineage:
    """What the plan tells of a write, whatever the versions are this time."""
    lineages = [_lineage(part, plan) for part in write.parts]
    wanted = dict.fromkeys([*(leaf for lineage in lineages for leaf in lineage.leaves), *write.reads])
    sources, leaves = _collect_sources([plan.nodes[index] for index in wanted], plan, context)
    places = _index_by_node(leaves)
    parts = tuple(
        ResolvedSink(
            part, _format_of(part.target), tuple(n for node in (*lineage.leaves, *write.reads) for n in places[node])
        )
        for part, lineage in zip(write.parts, lineages, strict=True)
    )
    leaves_of = {node: [leaves[n] for n in numbers] for node, numbers in places.items()}
    edges = (
        edge
        for output, (part, lineage) in enumerate(zip(write.parts, lineages, strict=True))
        for edge in _edges(output, part, lineage, plan, leaves_of)
    )
    unknown = tuple(
        dict.fromkeys((*(name for lineage in lineages for name in lineage.unknown), *_known_rdds(leaves, plan)))
    )
    distinct = dict.fromkeys(islice(edges, MAX_EDGES + 1))
    if len(distinct) > MAX_EDGES:
        return WriteLineage(sources, leaves, parts, (), (*unknown, f"more than {MAX_EDGES} pairs of columns"))
    columns = tuple([ColumnLineage(**edge._asdict()) for edge in distinct])
    return WriteLineage(sources, leaves, parts, columns, unknown)


def _known_rdds(leaves: Iterable[SourceLeaf], plan: Plan) -> Iterator[str]:
    """RDDs in whose place all that they were made from stands: nothing shows which of its columns theirs are."""
    opaque = {leaf.relation.node for leaf in leaves if leaf.relation.source.opaque is not None}
    for leaf in leaves:
        node = plan.nodes[leaf.relation.node]
        if node.name in RDDS and node.index not in opaque:
            yield node.name


def _index_by_node(leaves: Sequence[SourceLeaf]) -> dict[int, list[int]]:
    """By the node of the plan: a subscription is a leaf for each of its topics."""
    found: dict[int, list[int]] = {}
    for n, leaf in enumerate(leaves):
        found.setdefault(leaf.relation.node, []).append(n)
    return found


def lineage_of_read(plan: Plan, context: CaptureContext, root: int | None = None) -> WriteLineage:
    """What a plan reads that writes nothing, or a part of it."""
    return lineage_of_write(
        StatementWrites((), lineage_of(plan, plan.root if root is None else root).leaves), plan, context
    )


def lineage_of_failed_analysis(
    target: int | None, sources: Iterable[int], plan: Plan, context: CaptureContext
) -> WriteLineage:
    """What is known of a write that analysis refused: relations, and no columns."""
    found, leaves = _collect_sources([plan.nodes[index] for index in dict.fromkeys(sources)], plan, context)
    parts = (
        ()
        if target is None
        else (ResolvedSink(SinkWrite(_unresolved_relation(plan.nodes[target], plan, context)), None, ()),)
    )
    return WriteLineage(found, leaves, parts, (), ())


def _unresolved_relation(node: PlanNode, plan: Plan, context: CaptureContext) -> WriteTarget:
    """A relation, or the name that a table was to be made under."""
    if node.name == "ResolvedIdentifier" and node.args.get("catalog"):
        catalog = context.catalog(node.args["catalog"])
        return WriteTarget(SinkSchema(dataset=None, table=v2_name(catalog.name, node.args["identifier"])), catalog)
    source = describe_relations(node, plan, context)[0].source
    return WriteTarget(
        SinkSchema(dataset=source.dataset, table=source.table, generation=source.generation, format=source.format)
    )


def redacted_fingerprint(
    sources: Sequence[SourceSchema], sinks: Sequence[SinkSchema], columns: Iterable[ColumnLineage], redactor: Redactor
) -> bytes:
    """A hash of a secret can be guessed at: options lose theirs before they count."""
    return fingerprint_of(
        [_without_secrets(s, redactor) for s in sources], [_without_secrets(s, redactor) for s in sinks], columns
    )


def without_leaf(shape: WriteLineage, place: int) -> WriteLineage:
    """The shape without a leaf, and without its source, unless another leaf has that too."""
    source = shape.leaves[place].source
    leaves = tuple(leaf for n, leaf in enumerate(shape.leaves) if n != place)
    parts = tuple(
        replace(part, leaves=tuple(n - (n > place) for n in part.leaves if n != place)) for part in shape.parts
    )
    if any(leaf.source == source for leaf in leaves):
        return replace(shape, leaves=leaves, parts=parts)
    return WriteLineage(
        tuple(kept for n, kept in enumerate(shape.sources) if n != source),
        tuple(replace(leaf, source=leaf.source - (leaf.source > source)) for leaf in leaves),
        parts,
        tuple(
            edge.model_copy(update={"input": edge.input - (edge.input > source)})
            for edge in shape.columns
            if edge.input != source
        ),
        shape.unknown,
    )


def merge_equal_sources(shape: WriteLineage) -> WriteLineage:
    """The shape in which sources that look the same are one."""
    together = SourceList()
    moved = [together.place(source) for source in shape.sources]
    if len(together.all()) == len(shape.sources):
        return shape
    leaves = tuple(replace(leaf, source=moved[leaf.source]) for leaf in shape.leaves)
    edges = (edge.model_copy(update={"input": moved[edge.input]}) for edge in shape.columns)
    return replace(shape, sources=together.all(), leaves=leaves, columns=tuple(dict.fromkeys(edges)))


def without_part(shape: WriteLineage, number: int) -> WriteLineage:
    """The shape without one of the things it writes. What only that was made of stays read."""
    edges = (
        edge.model_copy(update={"output": edge.output - (edge.output > number)})
        for edge in shape.columns
        if edge.output != number
    )
    parts = tuple(part for n, part in enumerate(shape.parts) if n != number)
    return replace(shape, parts=parts, columns=tuple(edges))


def _without_secrets(shape: _Side, redactor: Redactor) -> _Side:
    if not shape.options:
        return shape
    options = {
        key: redactor.text(value) if is_sql_option(key) else redactor.value(key, value)
        for key, value in shape.options.items()
    }
    return shape.model_copy(update={"options": StringMap(options)})


def _lineage(part: SinkWrite, plan: Plan) -> QueryLineage:
    if part.row_level:
        return merge_lineage(plan, plan.root, row_changes_readers())
    if part.query is None:
        return QueryLineage()
    return lineage_of(plan.only(part.only) if part.only else plan, part.query)


def _collect_sources(
    nodes: Iterable[PlanNode], plan: Plan, context: CaptureContext
) -> tuple[tuple[SourceSchema, ...], tuple[SourceLeaf, ...]]:
    """Leaves that are one dataset, on one branch and tag, are one source. Each RDD is one of its own until it is known
    what others kept in it: `merge_equal_sources` is for afterwards."""
    sources = SourceList()
    leaves: list[SourceLeaf] = []
    for node in nodes:
        described, fmt = describe_relations(node, plan, context)
        if plan.brief is not None:
            described = _without_columns(described)
        for relation in (described, *described.also):
            own = node.index if node.name in RDDS and relation.source.opaque is not None else None
            leaves.append(SourceLeaf(relation, fmt, sources.place(relation.source, own)))
    return sources.all(), tuple(leaves)


def _without_columns(relation: SourceRelation) -> SourceRelation:
    source = relation.source.model_copy(update={"columns": ()})
    return replace(relation, source=source, also=tuple(_without_columns(other) for other in relation.also))


class SourceList:
    """In the order they are first met."""

    def __init__(self) -> None:
        self._by_place: dict[object, tuple[int, SourceSchema]] = {}

    def place(self, source: SourceSchema, own: int | None = None) -> int:
        """Where it stands; `own` tells one from others that look the same."""
        alike = (source.dataset, source.table, source.generation, source.branch, source.main, source.tag, source.opaque)
        key = (*alike, own)
        return self._by_place.setdefault(key, (len(self._by_place), source))[0]

    def all(self) -> tuple[SourceSchema, ...]:
        return tuple(source for _, source in self._by_place.values())


def describe_relations(
    node: PlanNode, plan: Plan, context: CaptureContext
) -> tuple[SourceRelation, TableFormat | None]:
    """What a leaf is; opaque where nothing tells where its rows come from."""
    for found, plugin in answers(plan, lambda asked: asked.reader.source(node, plan, context)):
        return found, plugin.reader
    return _describe_other_relation(node, plan, context), None


def _describe_other_relation(node: PlanNode, plan: Plan, context: CaptureContext) -> SourceRelation:
    columns = columns_of(plan, node.output)
    if node.name == "DataSourceV2Relation" and node.args.get("catalog"):
        catalog = context.catalog(node.args["catalog"])
        name = v2_name(catalog.name, node.args["identifier"])
        location = node.args.get("table", {}).get("properties", {}).get("location")
        dataset = context.dataset(catalog, name, location)
        return SourceRelation(node.index, SourceSchema(dataset=dataset, table=name, columns=columns))
    relation = node.args.get("relation")
    word = relation.get("relation", node.name) if isinstance(relation, dict) else node.name
    return SourceRelation(node.index, SourceSchema(dataset=None, opaque=word.rpartition(".")[2], columns=columns))


def _format_of(target: WriteTarget) -> TableFormat | None:
    return next((plugin for plugin in plugins() if plugin.format == target.sink.format), plugins()[-1]).reader


def _edges(
    output: int, part: SinkWrite, lineage: QueryLineage, plan: Plan, leaves_of: Mapping[int, Sequence[SourceLeaf]]
) -> Iterator[_Edge]:
    assigned = ((target, origin) for target, origins in _targets(part, lineage, plan) for origin in origins)
    for target, origin in chain(assigned, ((None, origin) for origin in lineage.indirect)):
        for leaf in leaves_of[origin.leaf]:
            if origin.path[0] not in leaf.relation.hidden:
                yield _Edge(output, leaf.source, origin.path, target, origin.derivation, origin.expression)


def _targets(
    part: SinkWrite, lineage: QueryLineage, plan: Plan
) -> Iterator[tuple[tuple[str, ...], tuple[ColumnOrigin, ...]]]:
    if part.row_level:
        yield from lineage.fields.items()
        return
    if part.query is None or plan.brief is not None:
        return
    output = plan.nodes[part.query].output
    if part.columns and len(part.columns) != len(output):
        raise PlanError(f"{len(output)} columns are written into {len(part.columns)}")
    given: dict[str, tuple[ColumnOrigin, ...]] = {}
    for column, number in zip(part.columns, output, strict=False):
        if column is not None:
            given[column[0].lower()] = lineage.columns.get(number, ())
            yield column, given[column[0].lower()]
    for name, paths in part.target.generated.items():
        if name.lower() not in given:
            origins = (_computed(origin, path) for path in paths for origin in given.get(path[0].lower(), ()))
            yield (name,), tuple(dict.fromkeys(origins))


def _computed(origin: ColumnOrigin, path: tuple[str, ...]) -> ColumnOrigin:
    """The origin of what a table computes of one of its columns, or of a field of it."""
    if origin.derivation is not Derivation.IDENTITY:
        return replace(origin, expression=None)
    return replace(origin, path=(*origin.path, *path[1:]), derivation=Derivation.TRANSFORMATION)


Sinks = tuple[SinkSchema, ...]


class FingerprintCache:
    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._known: dict[int, tuple[ReferenceType[WriteLineage], Sinks, bytes]] = {}
        """By the shape's identity, as long as somebody has the shape: comparing two would cost as much as the
        fingerprint."""

    def of(self, lineage: WriteLineage, sinks: Sinks) -> bytes:
        """Of a shape that is written into these sinks."""
        known = self._known.get(id(lineage))
        if known is not None and known[0]() is lineage and known[1] == sinks:
            return known[2]
        found = redacted_fingerprint(lineage.sources, sinks, lineage.columns, self._redactor)
        number = id(lineage)
        self._known[number] = (ref(lineage, lambda _: self._known.pop(number, None)), sinks, found)
        return found
