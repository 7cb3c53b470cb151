"""What of inputs, outputs and columns is in a fingerprint: one content for all orders in which they can be listed.

Inputs that are alike (a table read twice) are distinguished by the columns that go out of them: each node's colour
takes in the colours of what it is connected to, until no more nodes differ. Where all outputs differ, inputs that are
still alike have the same edges to the same outputs: exchanging them changes nothing, so the content is exact. Outputs
that are alike too (one table written twice by one statement, with the same columns) are distinguished in the same way,
except where edges between twins on both sides cross as evenly as they could run side by side: two such shapes have one.

The type of a column has one spelling: key order, white space, comments and other notes of nested fields don't count.
What makes another type of it does, wherever Spark keeps it: the lengths of char and varchar, collations.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from hashlib import blake2b
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from headwater.events.column_lineage import ColumnLineage
from headwater.events.fingerprints._options import canonical_options, without_staging
from headwater.events.jobs import DatasetSchema, Sink, SinkSchema, Source, SourceSchema
from headwater.events.redaction import canonical_text
from headwater.events.tables import Column, Transform
from headwater.events.types import (
    ArrayType,
    DataType,
    MapType,
    StructField,
    StructType,
    TypeTextError,
    UnknownType,
    UserDefinedType,
    parse_json,
    to_json,
)
from headwater.events.types.char_varchar import CHAR_VARCHAR, with_lengths
from headwater.events.types.collations import COLLATIONS
from headwater.events.types.json_text import Json, dumps, loads
from headwater.events.types.spark_json import metadata_entries

_LONGEST_KEPT: Final = 2048
_PICKLED: Final = "serializedClass"
"""The code of a type that was defined in a notebook: bytes that depend on the Python."""


def canonical_type(text: str) -> str:
    """Total: a text that isn't a type counts as it is."""
    return _canonical_of_short(text) if len(text) <= _LONGEST_KEPT else _canonical(text)


@lru_cache(maxsize=4096)
def _canonical_of_short(text: str) -> str:
    return _canonical(text)


def _canonical(text: str) -> str:
    try:
        return to_json(_bare(parse_json(text)))
    except (TypeTextError, RecursionError):
        return text


def _bare(type_: DataType) -> DataType:
    if isinstance(type_, ArrayType):
        return ArrayType(_bare(type_.element), type_.contains_null)
    if isinstance(type_, MapType):
        return MapType(_bare(type_.key), _bare(type_.value), type_.value_contains_null)
    if isinstance(type_, StructType):
        return StructType(tuple([_bare_field(field) for field in type_.fields]))
    if isinstance(type_, (UserDefinedType, UnknownType)):
        return replace(type_, text=dumps(_sort_keys(loads(type_.text))))
    return type_


def _bare_field(field: StructField) -> StructField:
    type_ = _bare(field.type)
    if CHAR_VARCHAR not in field.metadata and COLLATIONS not in field.metadata:
        return StructField(field.name, type_, field.nullable)
    entries = metadata_entries(field.metadata)
    type_text = entries.get(CHAR_VARCHAR)
    limited = with_lengths(type_, type_text) if isinstance(type_text, str) else None
    kept = {COLLATIONS} if limited is not None else {COLLATIONS, CHAR_VARCHAR}
    rest: Json = {key: entry for key, entry in entries.items() if key in kept}
    return StructField(field.name, limited or type_, field.nullable, dumps(_sort_keys(rest)))


def _sort_keys(value: Json) -> Json:
    if isinstance(value, dict):
        return {key: _sort_keys(value[key]) for key in sorted(value) if key != _PICKLED}
    return [_sort_keys(item) for item in value] if isinstance(value, list) else value


Node: TypeAlias = tuple[Literal["input", "output"], int]


class Edge(NamedTuple):
    source: Node
    sink: Node
    label: str


def digest(content: Any) -> bytes:
    """128 bits of what JSON can say, whatever the order of keys; half a surrogate pair is no obstacle."""
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def order_free(inputs: Sequence[Any], outputs: Sequence[Any], edges: Iterable[Edge]) -> list[Any]:
    """The same for any order of inputs, outputs and edges. How often an input or output is there counts; an edge said
    twice is one."""
    distinct = set(edges)
    ends = {end for edge in distinct for end in (edge.source, edge.sink)}
    colours: dict[Node, str] = {end: digest(["missing", *end]).hex() for end in ends}
    colours |= {("input", at): digest(["input", content]).hex() for at, content in enumerate(inputs)}
    colours |= {("output", at): digest(["output", content]).hex() for at, content in enumerate(outputs)}
    colours = _refine_colours(colours, distinct)
    return [
        sorted(colours.values()),
        sorted([colours[edge.source], edge.label, colours[edge.sink]] for edge in distinct),
    ]


def _refine_colours(colours: Mapping[Node, str], edges: Collection[Edge]) -> dict[Node, str]:
    """A round that tells no more nodes apart is the last."""
    finer = dict(colours)
    while len(finer) > (distinct := len(set(finer.values()))):
        finer = _next_round(finer, edges)
        if len(set(finer.values())) == distinct:
            break
    return finer


def _next_round(colours: Mapping[Node, str], edges: Iterable[Edge]) -> dict[Node, str]:
    around: defaultdict[Node, list[list[str]]] = defaultdict(list)
    for edge in edges:
        around[edge.source].append([edge.label, colours[edge.sink]])
        around[edge.sink].append([edge.label, colours[edge.source]])
    return {node: digest([colour, sorted(around[node])]).hex() for node, colour in colours.items()}


def fingerprint_of(
    inputs: Sequence[SourceSchema], outputs: Sequence[SinkSchema], columns: Iterable[ColumnLineage] = ()
) -> bytes:
    """16 bytes, the same for the same shape in every producer and version."""
    return digest(order_free([*map(_source, inputs)], [*map(_sink, outputs)], _edges(columns)))


def _source(source: SourceSchema) -> list[Any]:
    """That a tag was asked for counts; which one it is can be another one each day."""
    return [*_dataset(source), *_shape(source), canonical_options(source), source.tag is not None]


def _sink(sink: SinkSchema) -> list[Any]:
    return [*_dataset(sink), *_shape(sink), canonical_options(sink)]


def _dataset(ref: Source | Sink) -> list[Any]:
    """Not its generation: a table that is made anew by each run has the same shape in all of them."""
    place = None if ref.dataset is None else [ref.dataset.namespace, without_staging(ref.dataset.name)]
    alias = None if ref.table is None else [ref.table.catalog, ref.table.database, ref.table.table]
    opaque = None if ref.opaque is None else canonical_text(ref.opaque)
    return [place, alias, opaque, ref.format.value, ref.branch, ref.main]


def _shape(shape: DatasetSchema) -> list[Any]:
    watermarks = sorted([w.column, w.delay] for w in shape.watermarks)
    return [[*map(_column, shape.columns)], [*map(_transform, shape.partitioning)], shape.primary_key, watermarks]


def _column(column: Column) -> list[Any]:
    """Comments, defaults and notes are the table's own matter: they don't make another write of it."""
    return [column.name, canonical_type(column.type), column.nullable]


def _transform(transform: Transform) -> list[Any]:
    return [transform.name, transform.columns, transform.arguments, transform.field_name]


def _edges(columns: Iterable[ColumnLineage]) -> Iterator[Edge]:
    """Tables that are alike have edges that are: what is written of one is written once."""
    labels: dict[Any, str] = {}
    for edge in columns:
        content = (edge.source, edge.target, edge.derivation._value_, edge.expression)
        label = labels.get(content)
        if label is None:
            expression = None if edge.expression is None else canonical_text(edge.expression)
            label = labels[content] = digest([*content[:3], expression]).hex()
        yield Edge(("input", edge.input), ("output", edge.output), label)
