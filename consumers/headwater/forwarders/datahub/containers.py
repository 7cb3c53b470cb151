"""Containers in DataHub: databases, and what contains them."""

from __future__ import annotations

from collections.abc import Sequence

from datahub.emitter.mce_builder import make_user_urn
from datahub.emitter.mcp import MetadataChangeProposalWrapper
from datahub.emitter.mcp_builder import ContainerKey, gen_containers
from datahub.metadata.schema_classes import (
    BrowsePathEntryClass,
    BrowsePathsV2Class,
    StatusClass,
)

from headwater.events.catalog import (
    AlterDatabase,
    CreateDatabase,
    DropDatabase,
)
from headwater.events.tables import Database
from headwater.forwarders.datahub.names import DataHubDataset, DataHubNamer
from headwater.forwarders.datahub.proposals import PREFIX, EventProposals
from headwater.forwarders.event_facts import known_texts


def propose_database(event: CreateDatabase | AlterDatabase, namer: DataHubNamer, proposals: EventProposals) -> None:
    database = event.database if isinstance(event, CreateDatabase) else event.new_database
    propose_containers(namer.of_database(event.context, event.identifier), proposals, database)


def propose_drop_database(event: DropDatabase, namer: DataHubNamer, proposals: EventProposals) -> None:
    for key in namer.of_database(event.context, event.identifier)[-1:]:
        proposals.upsert(key.as_urn(), StatusClass(removed=True))


def browse_path(instance: str | None, keys: Sequence[ContainerKey]) -> BrowsePathsV2Class | None:
    urns = [*([instance] if instance else []), *(key.as_urn() for key in keys)]
    return BrowsePathsV2Class(path=[BrowsePathEntryClass(id=urn, urn=urn) for urn in urns]) if urns else None


def propose_containers(
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
        propose(key.as_urn(), browse_path(_container_instance(key), keys[:index]))


def _container_name(key: ContainerKey) -> str:
    words = key.property_dict()
    return next(words[word] for word in ("namespace", "schema", "database") if word in words)


def _container_kind(key: ContainerKey, *, is_inner: bool) -> str:
    if "namespace" in key.property_dict():
        return "Namespace"
    return "Schema" if is_inner else "Database"


def _container_instance(key: ContainerKey) -> str | None:
    return DataHubDataset(key.platform, "-", key.instance, key.env or "").instance_urn


def _database_properties(database: Database) -> dict[str, str]:
    return {**database.properties, **known_texts({f"{PREFIX}location": database.location})}
