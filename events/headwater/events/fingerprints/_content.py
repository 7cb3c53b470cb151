"""What of inputs, outputs and columns is in a fingerprint."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from headwater.events.column_lineage import ColumnLineage
from headwater.events.fingerprints._graph import Edge, digest, order_free
from headwater.events.fingerprints._options import canonical_options
from headwater.events.fingerprints._staging import without_staging
from headwater.events.fingerprints._types import canonical_type
from headwater.events.jobs import DatasetSchema, Sink, SinkSchema, Source, SourceSchema
from headwater.events.redaction import canonical_text
from headwater.events.tables import Column, Transform


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
