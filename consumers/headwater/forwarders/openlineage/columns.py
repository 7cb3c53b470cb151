"""The schema and column lineage of datasets, as OpenLineage's facets."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from openlineage.client.generated.column_lineage_dataset import (
    ColumnLineageDatasetFacet,
    Fields,
    InputField,
    Transformation,
)
from openlineage.client.generated.schema_dataset import SchemaDatasetFacet, SchemaDatasetFacetFields

from headwater.events.column_lineage import ColumnLineage, Derivation
from headwater.events.scalars import FieldPath
from headwater.events.tables import Column
from headwater.events.types import ArrayType, DataType, MapType, StructType, TypeTextError, parse_json, simple_string
from headwater.forwarders.openlineage.names import DatasetName

ELEMENT: Final = "_element"
"""What OpenLineage calls the items of an array."""


def schema_facet(columns: Sequence[Column]) -> SchemaDatasetFacet | None:
    """Return the schema; None where no column is known."""
    fields = [_column(column, place) for place, column in enumerate(columns, 1)]
    return SchemaDatasetFacet(fields=fields) if fields else None


def _column(column: Column, place: int) -> SchemaDatasetFacetFields:
    """A type that isn't understood has its text and no fields."""
    try:
        field = _field(column.name, parse_json(column.type))
    except TypeTextError:
        field = SchemaDatasetFacetFields(name=column.name, type=column.type)
    field.description = column.comment
    field.ordinal_position = place
    return field


def _field(name: str, type_: DataType) -> SchemaDatasetFacetFields:
    if isinstance(type_, StructType):
        return SchemaDatasetFacetFields(
            name, "struct", fields=[_field(field.name, field.type) for field in type_.fields]
        )
    if isinstance(type_, ArrayType):
        return SchemaDatasetFacetFields(name, "array", fields=[_field(ELEMENT, type_.element)])
    if isinstance(type_, MapType):
        return SchemaDatasetFacetFields(name, "map", fields=[_field("key", type_.key), _field("value", type_.value)])
    return SchemaDatasetFacetFields(name, simple_string(type_), fields=None)


def column_lineage_facet(
    edges: Iterable[ColumnLineage], output: int, input_name: Callable[[int], DatasetName | None]
) -> ColumnLineageDatasetFacet | None:
    """Return which columns the columns of one output are made from; None where nothing is known of it.

    An edge from an input that has no name here is left out.
    """
    targets: dict[FieldPath | None, dict[tuple[DatasetName, FieldPath], InputField]] = {}
    for edge in edges:
        name = input_name(edge.input) if edge.output == output else None
        if name is not None:
            fields = targets.setdefault(edge.target, {})
            field = fields.setdefault((name, edge.source), _input_field(name, edge.source))
            _add_transformation(field, edge)
    if not targets:
        return None
    whole = targets.pop(None, {})
    return ColumnLineageDatasetFacet(
        fields={_text(target): Fields(list(fields.values())) for target, fields in targets.items() if target},
        dataset=list(whole.values()) or None,
    )


def _input_field(name: DatasetName, path: FieldPath) -> InputField:
    return InputField(name.namespace, name.name, _text(path), transformations=[])


def _add_transformation(field: InputField, edge: ColumnLineage) -> None:
    """A derivation that isn't known, as a newer producer may name one, is no transformation: the edge stands."""
    if edge.derivation is Derivation.UNKNOWN:
        return
    kind = "DIRECT" if edge.derivation.is_direct else "INDIRECT"
    transformation = Transformation(type=kind, subtype=edge.derivation.value, description=edge.expression)
    if field.transformations is not None and transformation not in field.transformations:
        field.transformations.append(transformation)


def _text(path: FieldPath) -> str:
    return ".".join(path)
