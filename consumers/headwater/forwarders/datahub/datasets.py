"""Datasets and containers in DataHub, from what happened to tables, views and databases."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any, Final

from datahub.emitter.mce_builder import make_user_urn
from datahub.metadata.schema_classes import (
    ContainerClass,
    DataPlatformInstanceClass,
    DatasetPropertiesClass,
    FineGrainedLineageClass,
    OtherSchemaClass,
    OwnerClass,
    OwnershipTypeClass,
    SchemaMetadataClass,
    StatusClass,
    SubTypesClass,
)
from datahub.specific.dataset import DatasetPatchBuilder

from headwater.events.catalog import (
    AlterTable,
    BranchMerged,
    CorrectionSwitched,
    CreateBranch,
    CreateTable,
    CreateTag,
    DropBranch,
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
from headwater.events.tables import Column, Table, Transform
from headwater.forwarders.datahub.containers import browse_path, propose_containers
from headwater.forwarders.datahub.fields import PathStyle, SchemaFields, schema_fields, simple_path
from headwater.forwarders.datahub.names import DataHubDataset, DataHubNamer
from headwater.forwarders.datahub.proposals import PREFIX, EventProposals
from headwater.forwarders.event_facts import known_texts

MAX_TRANSFORMATION: Final = 500
"""So many characters of an expression are sent as the transformation of a column."""


def propose_create_table(event: CreateTable, namer: DataHubNamer, proposals: EventProposals) -> None:
    """A table that is made again gets new properties and a new schema, and nothing of the old one stays."""
    if (dataset := dataset_on_main(event, namer)) is None:
        return
    _propose_table(dataset, event, event.table, proposals)
    proposals.operation(dataset.urn, "CREATE", operation_properties(event))


def propose_alter_table(event: AlterTable, namer: DataHubNamer, proposals: EventProposals) -> None:
    if (dataset := namer.of_modification(event)) is None:
        return
    renamed = _new_name(event, namer)
    current = renamed or dataset
    if event.on_branch is None and current.urn != dataset.urn:
        _propose_move(dataset, current, event, proposals)
    elif event.on_branch is None:
        _propose_changes(dataset, event, proposals)
    what = ", ".join(dict.fromkeys(change.change for change in event.changes))
    proposals.operation(current.urn, "ALTER", {**operation_properties(event), "changes": what})


def propose_drop_table(event: DropTable | DropView, namer: DataHubNamer, proposals: EventProposals) -> None:
    if (dataset := namer.of_modification(event)) is None:
        return
    proposals.upsert(dataset.urn, StatusClass(removed=True))
    proposals.operation(dataset.urn, "DROP", operation_properties(event))


def propose_truncate(event: Truncate, namer: DataHubNamer, proposals: EventProposals) -> None:
    if (dataset := namer.of_modification(event)) is not None:
        partitions = (
            {"partitions": json.dumps([dict(partition) for partition in event.partitions])} if event.partitions else {}
        )
        proposals.operation(dataset.urn, "TRUNCATE", {**operation_properties(event), **partitions})


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
    properties = {**operation_properties(event), **known_texts(told)}
    proposals.operation(dataset.urn, "MERGE_BRANCH" if isinstance(event, BranchMerged) else "REPLACE_MAIN", properties)


def propose_correction(event: CorrectionSwitched, namer: DataHubNamer, proposals: EventProposals) -> None:
    if (dataset := namer.of_modification(event)) is None:
        return
    fields = {
        "correction": event.correction,
        "wrong_table": str(event.wrong_table),
        "wrong_snapshot": event.wrong_snapshot,
        "snapshot": event.snapshot,
        "previous_snapshot": event.previous_snapshot,
    }
    proposals.operation(dataset.urn, "SWITCH_CORRECTION", {**operation_properties(event), **known_texts(fields)})


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


def dataset_on_main(event: TableModification, namer: DataHubNamer) -> DataHubDataset | None:
    return namer.of_modification(event) if event.on_branch is None else None


def _propose_table(
    dataset: DataHubDataset, event: CreateTable | AlterTable, table: Table, proposals: EventProposals
) -> None:
    propose_containers(dataset.containers, proposals)
    schema, _ = dataset_schema(dataset, table.columns, table.primary_key, table.partitioning)
    properties = DatasetPropertiesClass(
        name=dataset.display_name,
        qualifiedName=str(_table_name(event)),
        description=table.comment,
        customProperties=_table_properties(event, table),
        created=proposals.timestamp if isinstance(event, CreateTable) else None,
        lastModified=proposals.timestamp,
    )
    proposals.upsert(dataset.urn, *place_aspects(dataset, "Table"), schema, properties)
    propose_owner(dataset, table.owner, proposals)


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
        propose_containers(new.containers, proposals)
        proposals.upsert(new.urn, *place_aspects(new, "Table"))
    proposals.patch(DatasetPatchBuilder, new.urn).add_custom_property(f"{PREFIX}renamed_from", old.name)


def _table_name(event: CreateTable | AlterTable) -> TableName:
    """Return the name of a table when the event is over."""
    changes = event.changes if isinstance(event, AlterTable) else ()
    return next((change.table for change in reversed(changes) if isinstance(change, RenameTable)), event.identifier)


def _new_name(event: AlterTable, namer: DataHubNamer) -> DataHubDataset | None:
    """Return the name that the table has after the changes; None if it has the same."""
    changes = [change for change in event.changes if isinstance(change, (RenameTable, SetLocation))]
    places = [change.dataset for change in changes if change.dataset is not None]
    return namer.of_modification(event, _table_name(event), places[-1] if places else None) if changes else None


def place_aspects(dataset: DataHubDataset, subtype: str) -> Iterable[Any]:
    """Return that the dataset is there, what kind it is, and where it stands."""
    keys = dataset.containers
    return (
        StatusClass(removed=False),
        DataPlatformInstanceClass(platform=dataset.platform_urn, instance=dataset.instance_urn),
        SubTypesClass(typeNames=["Topic" if dataset.platform == "kafka" else subtype]),
        ContainerClass(container=keys[-1].as_urn()) if keys else None,
        browse_path(dataset.instance_urn, keys),
    )


def propose_owner(dataset: DataHubDataset, owner: str | None, proposals: EventProposals) -> None:
    if owner:
        patch = proposals.patch(DatasetPatchBuilder, dataset.urn)
        patch.add_owner(OwnerClass(owner=make_user_urn(owner), type=OwnershipTypeClass.TECHNICAL_OWNER))


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


def operation_properties(event: TableModification) -> dict[str, str]:
    told = {
        "job": event.job,
        "cause": event.cause.value,
        "snapshot": event.produced,
        "parent": event.parent,
        "branch": event.on_branch,
        "generation": event.generation,
    }
    return known_texts(told)
