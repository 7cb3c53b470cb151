"""The schema and column lineage of datasets, as OpenLineage's facets.

What the JobLineage that a commit names tells of its datasets: catalogs, schemas, column lineage.
"""

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
from headwater.events.jobs import DatasetRef, JobLineage, SourceSchema
from headwater.events.scalars import FieldPath
from headwater.events.tables import Column
from headwater.events.types import ArrayType, DataType, MapType, StructType, TypeTextError, parse_json, simple_string
from headwater.forwarders.openlineage.identifiers import Catalogs, DatasetName

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


class KnownShape:
    """A JobLineage to look things up in. Of a lineage that never came nothing is known, and nothing is said."""

    def __init__(self, lineage: JobLineage | None) -> None:
        self._lineage = lineage
        self.catalogs = Catalogs(lineage.catalogs if lineage else ())
        self._inputs = self._by_name(lineage.inputs if lineage else ())
        self._outputs = self._by_name(lineage.outputs if lineage else ())

    def _by_name(self, refs: Iterable[DatasetRef]) -> dict[DatasetName, int]:
        """Of two of one name the first: they are one dataset."""
        found: dict[DatasetName, int] = {}
        for index, ref in enumerate(refs):
            name = self.catalogs.name_of(ref.dataset, ref.table)
            if name is not None:
                found.setdefault(name, index)
        return found

    @property
    def sql(self) -> str | None:
        """The statement, which is recorded only where capture.sql is true."""
        return self._lineage.sql if self._lineage else None

    def input_schema(self, name: DatasetName) -> SchemaDatasetFacet | None:
        index = self._inputs.get(name)
        return schema_facet(self._lineage.inputs[index].columns) if self._lineage and index is not None else None

    def output_schema(self, name: DatasetName) -> SchemaDatasetFacet | None:
        index = self._outputs.get(name)
        return schema_facet(self._lineage.outputs[index].columns) if self._lineage and index is not None else None

    def column_lineage(self, name: DatasetName) -> ColumnLineageDatasetFacet | None:
        """Return the column lineage of an output."""
        index = self._outputs.get(name)
        if self._lineage is None or index is None:
            return None
        return column_lineage_facet(self._lineage.columns, index, self._input_name)

    def _input_name(self, index: int) -> DatasetName | None:
        inputs: tuple[SourceSchema, ...] = self._lineage.inputs if self._lineage else ()
        ref = inputs[index] if index < len(inputs) else None
        return None if ref is None else self.catalogs.name_of(ref.dataset, ref.table)
