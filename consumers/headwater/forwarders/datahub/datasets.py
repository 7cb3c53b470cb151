"""Datasets and containers in DataHub, from what happened to tables, views and databases."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any, Final

from datahub.emitter.mce_builder import make_schema_field_urn, make_user_urn
from datahub.emitter.mcp import MetadataChangeProposalWrapper
from datahub.emitter.mcp_builder import ContainerKey, gen_containers
from datahub.metadata.schema_classes import (
    BrowsePathEntryClass,
    BrowsePathsV2Class,
    ContainerClass,
    DataPlatformInstanceClass,
    DatasetLineageTypeClass,
    DatasetPropertiesClass,
    FineGrainedLineageClass,
    OtherSchemaClass,
    OwnerClass,
    OwnershipTypeClass,
    SchemaMetadataClass,
    StatusClass,
    SubTypesClass,
    UpstreamClass,
    ViewPropertiesClass,
)
from datahub.specific.dataset import DatasetPatchBuilder

from headwater.events.catalog import (
    AlterDatabase,
    AlterTable,
    AlterView,
    BranchMerged,
    CreateBranch,
    CreateDatabase,
    CreateTable,
    CreateTag,
    CreateView,
    DropBranch,
    DropDatabase,
    DropTable,
    DropTag,
    DropView,
    MainReplaced,
    TableModification,
    Truncate,
)
from headwater.events.changes import RemoveProperty, RenameTable, SetComment, SetLocation, SetProperty
from headwater.events.column_lineage import ColumnLineage
from headwater.events.names import TableName
from headwater.events.scalars import FieldPath
from headwater.events.tables import Column, Database, Table, Transform, View
from headwater.forwarders.datahub.fields import PathStyle, SchemaFields, schema_fields, simple_path
from headwater.forwarders.datahub.names import DataHubDataset, DataHubNamer
from headwater.forwarders.datahub.proposals import EventProposals
from headwater.forwarders.event_facts import known_texts

PREFIX: Final = "headwater."
"""Before our own keys among the properties of a dataset."""
MAX_TRANSFORMATION: Final = 500
"""So many characters of an expression are sent as the transformation of a column."""


def propose_create_table(event: CreateTable, namer: DataHubNamer, proposals: EventProposals) -> None:
    """A table that is made again gets new properties and a new schema, and nothing of the old one stays."""
    if (dataset := _changed(event, namer)) is None:
        return
    _propose_table(dataset, event, event.table, proposals)
    proposals.operation(dataset.urn, "CREATE", _operation_properties(event))


def propose_alter_table(event: AlterTable, namer: DataHubNamer, proposals: EventProposals) -> None:
    if (dataset := namer.of_modification(event)) is None:
        return
    renamed = _renamed(event, namer)
    current = renamed or dataset
    if event.on_branch is None and current.urn != dataset.urn:
        _propose_move(dataset, current, event, proposals)
    elif event.on_branch is None:
        _propose_changes(dataset, event, proposals)
    what = ", ".join(dict.fromkeys(change.change for change in event.changes))
    proposals.operation(current.urn, "ALTER", {**_operation_properties(event), "changes": what})


def propose_drop_table(event: DropTable | DropView, namer: DataHubNamer, proposals: EventProposals) -> None:
    if (dataset := namer.of_modification(event)) is None:
        return
    proposals.upsert(dataset.urn, StatusClass(removed=True))
    if isinstance(event, DropView) and event.view is not None:
        _remove_sources(dataset, event, event.view, namer, proposals)
    proposals.operation(dataset.urn, "DROP", _operation_properties(event))


def propose_create_view(event: CreateView, namer: DataHubNamer, proposals: EventProposals) -> None:
    if (dataset := _changed(event, namer)) is not None:
        _propose_view(dataset, event, event.view, namer, proposals)


def propose_alter_view(event: AlterView, namer: DataHubNamer, proposals: EventProposals) -> None:
    old = _changed(event, namer)
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
        proposals.upsert(new.urn, *_place_aspects(new, "View"))


def propose_truncate(event: Truncate, namer: DataHubNamer, proposals: EventProposals) -> None:
    if (dataset := namer.of_modification(event)) is not None:
        partitions = (
            {"partitions": json.dumps([dict(partition) for partition in event.partitions])} if event.partitions else {}
        )
        proposals.operation(dataset.urn, "TRUNCATE", {**_operation_properties(event), **partitions})


def propose_reference(
    event: CreateTag | DropTag | CreateBranch | DropBranch, namer: DataHubNamer, proposals: EventProposals
) -> None:
    """Tags and branches of a table are properties: DataHub's own tags mean something else."""
    if (dataset := namer.of_modification(event)) is None:
        return
    word = f"tag.{event.tag}" if isinstance(event, (CreateTag, DropTag)) else f"branch.{event.branch}"
    patch = proposals.patch(DatasetPatchBuilder, dataset.urn)
    if isinstance(event, (DropTag, DropBranch)):
        patch.remove_custom_property(PREFIX + word)
    else:
        snapshot = "snapshot unknown" if event.snapshot is None else f"snapshot {event.snapshot}"
        patch.add_custom_property(PREFIX + word, snapshot)


def propose_branch_change(event: BranchMerged | MainReplaced, namer: DataHubNamer, proposals: EventProposals) -> None:
    if (dataset := namer.of_modification(event)) is None:
        return
    told = {"branch": event.branch, "snapshot": event.snapshot, "previous_snapshot": event.previous_snapshot}
    properties = {**_operation_properties(event), **known_texts(told)}
    proposals.operation(dataset.urn, "MERGE_BRANCH" if isinstance(event, BranchMerged) else "REPLACE_MAIN", properties)


def propose_database(event: CreateDatabase | AlterDatabase, namer: DataHubNamer, proposals: EventProposals) -> None:
    database = event.database if isinstance(event, CreateDatabase) else event.new_database
    _propose_containers(namer.of_database(event.context, event.identifier), proposals, database)


def propose_drop_database(event: DropDatabase, namer: DataHubNamer, proposals: EventProposals) -> None:
    for key in namer.of_database(event.context, event.identifier)[-1:]:
        proposals.upsert(key.as_urn(), StatusClass(removed=True))


def dataset_schema(
    dataset: DataHubDataset,
    columns: Sequence[Column],
    primary_key: Sequence[FieldPath] = (),
    partitioning: Sequence[Transform] = (),
) -> tuple[SchemaMetadataClass, SchemaFields]:
    """Return the schema of a dataset, and where each column is in it."""
    partitioned_by = tuple(column for transform in partitioning for column in transform.columns)
    found = schema_fields(tuple(columns), PathStyle.of(dataset.platform), tuple(primary_key), partitioned_by)
    schema = SchemaMetadataClass(
        schemaName=dataset.name,
        platform=dataset.platform_urn,
        version=0,
        hash="",
        platformSchema=OtherSchemaClass(rawSchema=""),
        fields=list(found.fields),
        primaryKeys=[found.path(column) for column in primary_key] or None,
    )
    return schema, found


def transformation(edge: ColumnLineage) -> str:
    """Return how a column comes into another, in words: AGGREGATION: sum(amount)."""
    text = edge.derivation.value if edge.expression is None else f"{edge.derivation.value}: {edge.expression}"
    return text[:MAX_TRANSFORMATION]


def column_edge(upstream: str, downstream: str, edge: ColumnLineage) -> FineGrainedLineageClass:
    """Return one edge from a schema field to another, as DataHub has it."""
    return FineGrainedLineageClass(
        upstreamType="FIELD_SET",
        upstreams=[upstream],
        downstreamType="FIELD",
        downstreams=[downstream],
        transformOperation=transformation(edge),
        confidenceScore=1.0,
    )


def _changed(event: TableModification, namer: DataHubNamer) -> DataHubDataset | None:
    return namer.of_modification(event) if event.on_branch is None else None


def _propose_table(
    dataset: DataHubDataset, event: CreateTable | AlterTable, table: Table, proposals: EventProposals
) -> None:
    _propose_containers(dataset.containers, proposals)
    schema, _ = dataset_schema(dataset, table.columns, table.primary_key, table.partitioning)
    properties = DatasetPropertiesClass(
        name=dataset.display_name,
        qualifiedName=str(_table_name(event)),
        description=table.comment,
        customProperties=_table_properties(event, table),
        created=proposals.timestamp if isinstance(event, CreateTable) else None,
        lastModified=proposals.timestamp,
    )
    proposals.upsert(dataset.urn, *_place_aspects(dataset, "Table"), schema, properties)
    _propose_owner(dataset, table.owner, proposals)


def _propose_changes(dataset: DataHubDataset, event: AlterTable, proposals: EventProposals) -> None:
    if event.new_table is not None and event.new_table.columns:
        new = event.new_table
        proposals.upsert(dataset.urn, dataset_schema(dataset, new.columns, new.primary_key, new.partitioning)[0])
    patch = proposals.patch(DatasetPatchBuilder, dataset.urn)
    patch.set_last_modified(proposals.timestamp)
    for change in event.changes:
        if isinstance(change, SetProperty):
            patch.add_custom_property(change.key, change.value)
        elif isinstance(change, RemoveProperty):
            patch.remove_custom_property(change.key)
        elif isinstance(change, SetComment):
            patch.set_description(change.comment or "")
    if event.new_table is not None:
        patch.add_custom_properties(_own_properties(event, event.new_table))


def _propose_move(old: DataHubDataset, new: DataHubDataset, event: AlterTable, proposals: EventProposals) -> None:
    """A renamed table is a new entity: DataHub can't change what an entity is called."""
    if any(isinstance(change, RenameTable) for change in event.changes):
        proposals.upsert(old.urn, StatusClass(removed=True))
    if (table := event.new_table or event.table) is not None:
        _propose_table(new, event, table, proposals)
    else:
        _propose_containers(new.containers, proposals)
        proposals.upsert(new.urn, *_place_aspects(new, "Table"))
    proposals.patch(DatasetPatchBuilder, new.urn).add_custom_property(f"{PREFIX}renamed_from", old.name)


def _table_name(event: CreateTable | AlterTable) -> TableName:
    """Return the name of a table when the event is over."""
    changes = event.changes if isinstance(event, AlterTable) else ()
    return next((change.table for change in reversed(changes) if isinstance(change, RenameTable)), event.identifier)


def _renamed(event: AlterTable, namer: DataHubNamer) -> DataHubDataset | None:
    """Return the name that the table has after the changes; None if it has the same."""
    changes = [change for change in event.changes if isinstance(change, (RenameTable, SetLocation))]
    places = [change.dataset for change in changes if change.dataset is not None]
    return namer.of_modification(event, _table_name(event), places[-1] if places else None) if changes else None


def _propose_view(
    dataset: DataHubDataset, event: CreateView | AlterView, view: View, namer: DataHubNamer, proposals: EventProposals
) -> None:
    _propose_containers(dataset.containers, proposals)
    schema, _ = dataset_schema(dataset, view.columns)
    properties = DatasetPropertiesClass(
        name=dataset.display_name,
        qualifiedName=str((isinstance(event, AlterView) and event.renamed_to) or event.identifier),
        description=view.comment,
        customProperties=dict(view.properties),
        lastModified=proposals.timestamp,
    )
    sql = view.sql and ViewPropertiesClass(materialized=False, viewLogic=view.sql, viewLanguage="SQL")
    proposals.upsert(dataset.urn, *_place_aspects(dataset, "View"), schema, properties, sql or None)
    _propose_owner(dataset, view.owner, proposals)
    _add_sources(dataset, event, view, namer, proposals)
    proposals.operation(
        dataset.urn, "CREATE" if isinstance(event, CreateView) else "ALTER", _operation_properties(event)
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


def _place_aspects(dataset: DataHubDataset, subtype: str) -> Iterable[Any]:
    """Return that the dataset is there, what kind it is, and where it stands."""
    keys = dataset.containers
    return (
        StatusClass(removed=False),
        DataPlatformInstanceClass(platform=dataset.platform_urn, instance=dataset.instance_urn),
        SubTypesClass(typeNames=["Topic" if dataset.platform == "kafka" else subtype]),
        ContainerClass(container=keys[-1].as_urn()) if keys else None,
        _browse_path(dataset.instance_urn, keys),
    )


def _browse_path(instance: str | None, keys: Sequence[ContainerKey]) -> BrowsePathsV2Class | None:
    urns = [*([instance] if instance else []), *(key.as_urn() for key in keys)]
    return BrowsePathsV2Class(path=[BrowsePathEntryClass(id=urn, urn=urn) for urn in urns]) if urns else None


def _propose_containers(
    keys: Sequence[ContainerKey], proposals: EventProposals, database: Database | None = None
) -> None:
    """Propose a database, if it is known how it is described; else, and what contains it, only what DataHub hasn't."""
    for index, key in enumerate(keys):
        parent = keys[index - 1] if index else None
        told = database if key is keys[-1] else None
        propose = proposals.upsert if told else proposals.create
        for unit in gen_containers(
            key,
            name=_container_name(key),
            sub_types=[_container_kind(key, is_inner=parent is not None)],
            parent_container_key=parent,
            extra_properties=_database_properties(told) if told else None,
            description=told.comment if told else None,
            owner_urn=make_user_urn(told.owner) if told and told.owner else None,
        ):
            if isinstance(unit.metadata, MetadataChangeProposalWrapper):
                propose(key.as_urn(), unit.metadata.aspect)
        propose(key.as_urn(), _browse_path(_container_instance(key), keys[:index]))


def _container_name(key: ContainerKey) -> str:
    words = key.property_dict()
    return next(words[word] for word in ("namespace", "schema", "database") if word in words)


def _container_kind(key: ContainerKey, *, is_inner: bool) -> str:
    if "namespace" in key.property_dict():
        return "Namespace"
    return "Schema" if is_inner else "Database"


def _container_instance(key: ContainerKey) -> str | None:
    return DataHubDataset(key.platform, "-", key.instance, key.env or "").instance_urn


def _propose_owner(dataset: DataHubDataset, owner: str | None, proposals: EventProposals) -> None:
    if owner:
        patch = proposals.patch(DatasetPatchBuilder, dataset.urn)
        patch.add_owner(OwnerClass(owner=make_user_urn(owner), type=OwnershipTypeClass.TECHNICAL_OWNER))


def _database_properties(database: Database) -> dict[str, str]:
    return {**database.properties, **known_texts({f"{PREFIX}location": database.location})}


def _table_properties(event: TableModification, table: Table) -> dict[str, str]:
    return {**table.properties, **_own_properties(event, table)}


def _own_properties(event: TableModification, table: Table) -> dict[str, str]:
    """Return what DataHub has no place for, under keys of our own."""
    told = {
        "catalog": event.identifier.catalog or event.context.name,
        "generation": event.generation,
        "format": event.format.value,
        "location": table.location,
        "provider": table.provider,
        "kind": table.table_kind.value,
        "schema_id": event.schema_id,
        "partitioning": ", ".join(map(_transform, table.partitioning)),
        "ordering": ", ".join(_transform(each.by) + (" desc" if each.descending else "") for each in table.ordering),
        "clustering": ", ".join(map(simple_path, table.clustering)),
        "watermarks": ", ".join(
            f"{simple_path(watermark.column)}: {watermark.delay}" for watermark in table.watermarks
        ),
        "constraints": ", ".join(f"{constraint.name} {constraint.kind.value}" for constraint in table.constraints),
    }
    return {f"{PREFIX}{key}": text for key, text in known_texts(told).items()}


def _transform(transform: Transform) -> str:
    inner = ", ".join((*transform.arguments, *map(simple_path, transform.columns)))
    return inner if transform.is_identity else f"{transform.name}({inner})"


def _operation_properties(event: TableModification) -> dict[str, str]:
    told = {
        "job": event.job,
        "cause": event.cause.value,
        "snapshot": event.produced,
        "parent": event.parent,
        "branch": event.on_branch,
        "generation": event.generation,
    }
    return known_texts(told)
