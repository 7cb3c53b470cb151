"""What the JobLineage that a commit names tells of its datasets: catalogs, schemas, column lineage."""

from __future__ import annotations

from collections.abc import Iterable

from openlineage.client.generated.column_lineage_dataset import ColumnLineageDatasetFacet
from openlineage.client.generated.schema_dataset import SchemaDatasetFacet

from headwater.events.jobs import DatasetRef, JobLineage, SourceSchema
from headwater.forwarders.openlineage.columns import column_lineage_facet, schema_facet
from headwater.forwarders.openlineage.names import Catalogs, DatasetName


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
