"""Views in DataHub, with what they read."""

from __future__ import annotations

from datahub.emitter.mce_builder import make_schema_field_urn
from datahub.metadata.schema_classes import (
    DatasetLineageTypeClass,
    DatasetPropertiesClass,
    FineGrainedLineageClass,
    StatusClass,
    UpstreamClass,
    ViewPropertiesClass,
)
from datahub.specific.dataset import DatasetPatchBuilder

from headwater.events.catalog import (
    AlterView,
    CreateView,
    DropView,
    TableModification,
)
from headwater.events.tables import View
from headwater.forwarders.datahub.containers import propose_containers
from headwater.forwarders.datahub.datasets import (
    column_edge,
    dataset_on_main,
    dataset_schema,
    operation_properties,
    place_aspects,
    propose_drop_table,
    propose_owner,
)
from headwater.forwarders.datahub.fields import simple_path
from headwater.forwarders.datahub.names import DataHubDataset, DataHubNamer
from headwater.forwarders.datahub.proposals import EventProposals


def propose_create_view(event: CreateView, namer: DataHubNamer, proposals: EventProposals) -> None:
    if (dataset := dataset_on_main(event, namer)) is not None:
        _propose_view(dataset, event, event.view, namer, proposals)


def propose_alter_view(event: AlterView, namer: DataHubNamer, proposals: EventProposals) -> None:
    old = dataset_on_main(event, namer)
    new = namer.of_modification(event, event.renamed_to) if event.renamed_to else old
    view = event.new_view or event.view
    if old is None or new is None:
        return
    if new.urn != old.urn:
        proposals.upsert(old.urn, StatusClass(removed=True))
    if event.view is not None:
        _remove_sources(old, event, event.view, namer, proposals)
    if view is not None:
        _propose_view(new, event, view, namer, proposals)
    elif new.urn != old.urn:
        proposals.upsert(new.urn, *place_aspects(new, "View"))


def propose_drop_view(event: DropView, namer: DataHubNamer, proposals: EventProposals) -> None:
    propose_drop_table(event, namer, proposals)
    if event.view is not None and (dataset := namer.of_modification(event)) is not None:
        _remove_sources(dataset, event, event.view, namer, proposals)


def _propose_view(
    dataset: DataHubDataset, event: CreateView | AlterView, view: View, namer: DataHubNamer, proposals: EventProposals
) -> None:
    propose_containers(dataset.containers, proposals)
    schema, _ = dataset_schema(dataset, view.columns)
    properties = DatasetPropertiesClass(
        name=dataset.display_name,
        qualifiedName=str((isinstance(event, AlterView) and event.renamed_to) or event.identifier),
        description=view.comment,
        customProperties=dict(view.properties),
        lastModified=proposals.timestamp,
    )
    sql = view.sql and ViewPropertiesClass(materialized=False, viewLogic=view.sql, viewLanguage="SQL")
    proposals.upsert(dataset.urn, *place_aspects(dataset, "View"), schema, properties, sql or None)
    propose_owner(dataset, view.owner, proposals)
    _add_sources(dataset, event, view, namer, proposals)
    proposals.operation(
        dataset.urn, "CREATE" if isinstance(event, CreateView) else "ALTER", operation_properties(event)
    )


def _view_lineage(
    dataset: DataHubDataset, event: TableModification, view: View, namer: DataHubNamer
) -> tuple[list[str], list[FineGrainedLineageClass]]:
    """Return what a view reads, and which columns its columns come from."""
    _, fields = dataset_schema(dataset, view.columns)
    sources = [namer.of_source(source, event.context) for source in view.sources]
    edges: list[FineGrainedLineageClass] = []
    for edge in view.lineage:
        upstream = sources[edge.input] if edge.input < len(sources) else None
        if upstream is not None and edge.target is not None:
            origin = make_schema_field_urn(upstream.urn, simple_path(edge.source))
            target = make_schema_field_urn(dataset.urn, fields.path(edge.target))
            edges.append(column_edge(origin, target, edge))
    return list(dict.fromkeys(source.urn for source in sources if source)), edges


def _add_sources(
    dataset: DataHubDataset, event: TableModification, view: View, namer: DataHubNamer, proposals: EventProposals
) -> None:
    sources, edges = _view_lineage(dataset, event, view, namer)
    patch = proposals.patch(DatasetPatchBuilder, dataset.urn)
    for source in sources:
        patch.add_upstream_lineage(UpstreamClass(dataset=source, type=DatasetLineageTypeClass.VIEW))
    for edge in edges:
        patch.add_fine_grained_lineage(edge)


def _remove_sources(
    dataset: DataHubDataset, event: TableModification, view: View, namer: DataHubNamer, proposals: EventProposals
) -> None:
    """Remove the edges that the old definition of a view gave it. Edges that others wrote stay."""
    sources, edges = _view_lineage(dataset, event, view, namer)
    patch = proposals.patch(DatasetPatchBuilder, dataset.urn)
    for source in sources:
        patch.remove_upstream_lineage(source)
    for edge in edges:
        patch.remove_fine_grained_lineage(edge)
