"""What jobs and tables are, whatever runs: JobEvents of a write's shape, DatasetEvents of what DDL did.

A modification of which it isn't known whether it took effect is no event: OpenLineage can't say that. Nor are those of
databases, tags and branches, which it has no word for.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, TypeAlias

from openlineage.client.event_v2 import DatasetEvent, InputDataset, JobEvent, OutputDataset, StaticDataset
from openlineage.client.generated.base import DatasetFacet
from openlineage.client.generated.documentation_dataset import DocumentationDatasetFacet
from openlineage.client.generated.lifecycle_state_change_dataset import (
    LifecycleStateChange,
    LifecycleStateChangeDatasetFacet,
    PreviousIdentifier,
)
from openlineage.client.generated.lineage import LineageDatasetFacet, LineageDatasetInput
from openlineage.client.generated.ownership_dataset import Owner, OwnershipDatasetFacet
from openlineage.client.generated.symlinks_dataset import Identifier

from headwater.events.administration import DatasetsUnified
from headwater.events.catalog import (
    AlterTable,
    AlterView,
    CreateTable,
    CreateView,
    DropTable,
    DropView,
    ModificationEffect,
    TableModification,
    Truncate,
)
from headwater.events.changes import RenameTable, SetLocation
from headwater.events.jobs import DatasetRef, JobLineage, NamedCatalog
from headwater.events.names import DatasetId, TableName
from headwater.events.scalars import Format
from headwater.events.tables import Table, Transform, View
from headwater.forwarders.openlineage.columns import KnownShape, column_lineage_facet, schema_facet
from headwater.forwarders.openlineage.datasets import lifecycle, named, table_facets, version_facet
from headwater.forwarders.openlineage.identifiers import (
    PRODUCER_URI,
    Catalogs,
    DatasetName,
    event_time,
    job_of,
    stamped,
    symlinks_to,
)
from headwater.forwarders.openlineage.own_facets import HeadwaterTableDatasetFacet
from headwater.forwarders.openlineage.runs import sql_facet

Facets: TypeAlias = "dict[str, DatasetFacet | None]"

_PLACES: Final = ("file", "s3", "gs", "hdfs", "abfss", "wasbs", "dbfs", "oss", "cosn", "viewfs")
"""Schemes of namespaces in which a name is a path."""


def shape_of_job(event: JobLineage) -> Iterator[JobEvent]:
    """Yield which tables and columns a job reads and writes."""
    if event.job is None:
        return
    shape = KnownShape(event)
    inputs = named(event.inputs, shape.catalogs)
    outputs = named(event.outputs, shape.catalogs)
    yield JobEvent(
        eventTime=event_time(event.time),
        job=job_of(event.job, {"sql": sql_facet(event.sql)}),
        inputs=[InputDataset(*name, facets=_shape_facets(refs[0], name, shape)) for name, refs in inputs.items()],
        outputs=[
            OutputDataset(*name, facets=_shape_facets(refs[0], name, shape, is_output=True))
            for name, refs in outputs.items()
        ],
        producer=PRODUCER_URI,
    )


def _shape_facets(
    ref: DatasetRef, name: DatasetName, shape: KnownShape, *, is_output: bool = False
) -> dict[str, DatasetFacet]:
    facets = table_facets(ref, shape.catalogs)
    facets["schema"] = shape.output_schema(name) if is_output else shape.input_schema(name)
    facets["columnLineage"] = shape.column_lineage(name) if is_output else None
    return stamped(facets)


def modification(event: TableModification) -> Iterator[DatasetEvent]:
    """Yield what DDL made of a table or view."""
    if event.effect is not ModificationEffect.APPLIED or event.on_branch is not None:
        return
    catalogs = Catalogs(_catalog_of(event))
    ref = _ref_after(event)
    name = catalogs.name_of(ref.dataset, ref.table)
    if name is None:
        return
    facets: Facets = table_facets(ref, catalogs)
    facets["version"] = version_facet(None if event.produced is None else str(event.produced))
    facets["lifecycleStateChange"] = _lifecycle(event, catalogs)
    _describe_table(facets, _table_after(event))
    _describe_view(facets, _view_after(event), catalogs)
    _describe_event(facets, event)
    yield _dataset_event(event, name, facets)


def _catalog_of(event: TableModification) -> Iterator[NamedCatalog]:
    if event.context.id is not None:
        yield NamedCatalog(name=event.context.name, id=event.context.id)


def _dataset_event(event: TableModification | DatasetsUnified, name: DatasetName, facets: Facets) -> DatasetEvent:
    dataset = StaticDataset(*name, facets=stamped(facets))
    return DatasetEvent(eventTime=event_time(event.time), dataset=dataset, producer=PRODUCER_URI)


def _ref_after(event: TableModification) -> DatasetRef:
    """The table as it is called and where it is from now on."""
    table, dataset = event.identifier, event.dataset
    for change in event.changes if isinstance(event, AlterTable) else ():
        if isinstance(change, RenameTable):
            table, dataset = change.table, change.dataset or dataset
        elif isinstance(change, SetLocation):
            dataset = change.dataset or dataset
    if isinstance(event, AlterView) and event.renamed_to is not None:
        table, dataset = event.renamed_to, event.renamed_dataset or dataset
    is_view = isinstance(event, (CreateView, AlterView, DropView))
    format_ = Format.VIEW if is_view and event.format is Format.UNKNOWN else event.format
    return DatasetRef(dataset=dataset, table=table, generation=event.generation, format=format_)


def _lifecycle(event: TableModification, catalogs: Catalogs) -> LifecycleStateChangeDatasetFacet | None:
    """Removing some partitions is no TRUNCATE: headwater_table has which."""
    if isinstance(event, (CreateTable, CreateView)):
        return lifecycle(LifecycleStateChange.OVERWRITE if event.replaced else LifecycleStateChange.CREATE)
    if isinstance(event, (DropTable, DropView)):
        return lifecycle(LifecycleStateChange.DROP)
    if isinstance(event, Truncate):
        return None if event.partitions else lifecycle(LifecycleStateChange.TRUNCATE)
    new_table = _new_name(event)
    return _rename(event, new_table, catalogs) if new_table else lifecycle(LifecycleStateChange.ALTER)


def _new_name(event: TableModification) -> TableName | None:
    if isinstance(event, AlterView):
        return event.renamed_to
    renames = (
        [change.table for change in event.changes if isinstance(change, RenameTable)]
        if isinstance(event, AlterTable)
        else []
    )
    return renames[-1] if renames else None


def _rename(event: TableModification, _new: TableName, catalogs: Catalogs) -> LifecycleStateChangeDatasetFacet:
    """Where the data stayed in its place, what changed is the name in the catalog: the previous one is a symlink's."""
    is_moved = _ref_after(event).dataset != event.dataset
    old = catalogs.name_of(event.dataset, event.identifier) if is_moved else catalogs.alias_of(event.identifier)
    facet = lifecycle(LifecycleStateChange.RENAME)
    facet.previousIdentifier = None if old is None else PreviousIdentifier(name=old.name, namespace=old.namespace)
    return facet


def _table_after(event: TableModification) -> Table | None:
    if isinstance(event, CreateTable):
        return event.table
    return event.new_table if isinstance(event, AlterTable) else None


def _view_after(event: TableModification) -> View | None:
    if isinstance(event, CreateView):
        return event.view
    return event.new_view if isinstance(event, AlterView) else None


def _describe_table(facets: Facets, table: Table | None) -> None:
    if table is None:
        return
    facets["schema"] = schema_facet(table.columns)
    facets["ownership"] = _ownership(table.owner)
    facets["documentation"] = _documentation(table.comment)
    own = facets["headwater_table"]
    if isinstance(own, HeadwaterTableDatasetFacet):
        own.partitionedBy = [_transform_text(transform) for transform in table.partitioning] or None
        own.primaryKey = [".".join(path) for path in table.primary_key] or None


def _describe_view(facets: Facets, view: View | None, catalogs: Catalogs) -> None:
    if view is None:
        return
    names = [catalogs.name_of(source.dataset, source.table) for source in view.sources]
    facets["schema"] = schema_facet(view.columns)
    facets["ownership"] = _ownership(view.owner)
    facets["documentation"] = _documentation(view.comment)
    facets["columnLineage"] = column_lineage_facet(
        view.lineage, 0, lambda index: names[index] if index < len(names) else None
    )
    facets["lineage"] = _lineage([name for name in names if name])
    own = facets["headwater_table"]
    if isinstance(own, HeadwaterTableDatasetFacet):
        own.viewSql = view.sql


def _lineage(sources: list[DatasetName]) -> LineageDatasetFacet | None:
    if not sources:
        return None
    inputs = [LineageDatasetInput(*name, type="DATASET") for name in dict.fromkeys(sources)]
    return LineageDatasetFacet(inputs=list(inputs))


def _describe_event(facets: Facets, event: TableModification) -> None:
    own = facets["headwater_table"]
    if isinstance(own, HeadwaterTableDatasetFacet):
        own.event = str(event.event_id)
        if isinstance(event, Truncate):
            own.truncatedPartitions = [dict(partition) for partition in event.partitions] or None


def _ownership(owner: str | None) -> OwnershipDatasetFacet | None:
    return OwnershipDatasetFacet(owners=[Owner(owner)]) if owner else None


def _documentation(comment: str | None) -> DocumentationDatasetFacet | None:
    return DocumentationDatasetFacet(comment) if comment else None


def _transform_text(transform: Transform) -> str:
    columns = [".".join(path) for path in transform.columns]
    if transform.is_identity:
        return ", ".join(columns)
    return f"{transform.name}({', '.join([*transform.arguments, *columns])})"


def unified(event: DatasetsUnified) -> Iterator[DatasetEvent]:
    """Yield the other identities of a dataset as its symlinks."""
    identifiers = [Identifier(other.namespace, other.name, _kind_of_name(other)) for other in event.others]
    name = DatasetName(event.dataset.namespace, event.dataset.name)
    yield _dataset_event(event, name, {"symlinks": symlinks_to(identifiers)})


def _kind_of_name(dataset: DatasetId) -> str:
    return "LOCATION" if dataset.namespace.partition(":")[0] in _PLACES else "TABLE"
