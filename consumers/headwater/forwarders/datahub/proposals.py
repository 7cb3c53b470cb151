"""Metadata change proposals: what DataHub's SDK calls a change of one aspect of one entity.

Proposals in batches whose order doesn't matter, however the server treats what is in one.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from typing import Any, Final, Protocol, TypeAlias, TypeVar, cast

from datahub.emitter.mce_builder import UNKNOWN_USER, make_user_urn
from datahub.emitter.mcp import MetadataChangeProposalWrapper
from datahub.metadata.schema_classes import (
    AuditStampClass,
    ChangeTypeClass,
    DataProcessInstanceRunEventClass,
    GenericAspectClass,
    MetadataChangeProposalClass,
    OperationClass,
    OperationSourceTypeClass,
    SystemMetadataClass,
    TimeStampClass,
)

from headwater.events import Event
from headwater.events.scalars import EPOCH

Proposal: TypeAlias = MetadataChangeProposalWrapper | MetadataChangeProposalClass
"""The second is a patch."""

PREFIX: Final = "headwater."
"""Before our own keys among the properties of a dataset."""
RUN_ID: Final = "headwater"
"""DataHub's own id of what wrote an aspect; `datahub ingest rollback --run-id` takes it."""
_MILLISECOND: Final = timedelta(milliseconds=1)


class PatchBuilder(Protocol):
    """What the SDK's builders of patches have in common."""

    def build(self) -> list[MetadataChangeProposalClass]: ...


P = TypeVar("P", bound=PatchBuilder)
P_co = TypeVar("P_co", bound=PatchBuilder, covariant=True)


class PatchBuilderClass(Protocol[P_co]):
    """The class of such a builder."""

    def __call__(self, urn: str, *, system_metadata: SystemMetadataClass) -> P_co: ...


class EventProposals:
    """Collects the proposals of one event. All carry the event's time, so that the same event makes the same ones."""

    def __init__(self, event: Event) -> None:
        self.event: Final = event
        self.millis: Final = millis_since_epoch(event.time)
        self._found: list[Proposal] = []
        self._patches: dict[tuple[object, str], PatchBuilder] = {}

    def upsert(self, urn: str, *aspects: Any) -> None:
        """Propose that these aspects of an entity are so, whatever they were. None is skipped."""
        for aspect in aspects:
            if aspect is not None:
                system = self._system_metadata()
                self._found.append(MetadataChangeProposalWrapper(entityUrn=urn, aspect=aspect, systemMetadata=system))

    def create(self, urn: str, *aspects: Any) -> None:
        """Propose these aspects of an entity where it has none yet. What is there, from whomever, stays."""
        for aspect in aspects:
            if aspect is not None:
                proposal = MetadataChangeProposalWrapper(
                    entityUrn=urn,
                    aspect=aspect,
                    changeType=ChangeTypeClass.CREATE,
                    headers={"If-None-Match": "*"},
                    systemMetadata=self._system_metadata(),
                )
                self._found.append(proposal)

    def patch(self, builder: PatchBuilderClass[P], urn: str) -> P:
        """Return the builder of patches to an entity. What it holds when all is collected is proposed."""
        patch = self._patches.get((builder, urn))
        if patch is None:
            patch = self._patches[builder, urn] = builder(urn, system_metadata=self._system_metadata())
        return cast("P", patch)

    def operation(
        self, urn: str, type_: str, properties: dict[str, str], *, number: int = 0, rows: int | None = None
    ) -> None:
        """Propose an operation on a dataset. A type that DataHub has no word for is a custom one."""
        custom = type_ not in _OPERATIONS
        self.upsert(
            urn,
            OperationClass(
                timestampMillis=self.millis,
                lastUpdatedTimestamp=self.millis,
                operationType="CUSTOM" if custom else type_,
                customOperationType=type_ if custom else None,
                actor=self.actor if self.event.user else None,
                numAffectedRows=rows,
                sourceType=OperationSourceTypeClass.DATA_PROCESS,
                customProperties=properties,
                messageId=f"{self.event.event_id}-{number}",
            ),
        )

    @property
    def actor(self) -> str:
        return make_user_urn(self.event.user) if self.event.user else UNKNOWN_USER

    @property
    def stamp(self) -> AuditStampClass:
        return AuditStampClass(time=self.millis, actor=self.actor)

    @property
    def timestamp(self) -> TimeStampClass:
        return TimeStampClass(time=self.millis)

    def __iter__(self) -> Iterator[Proposal]:
        """Yield what was collected, patches last: they are changes to what an upsert wrote."""
        yield from self._found
        for patch in self._patches.values():
            yield from patch.build()

    def _system_metadata(self) -> SystemMetadataClass:
        return SystemMetadataClass(lastObserved=self.millis, runId=RUN_ID)


_OPERATIONS: Final = frozenset({"INSERT", "UPDATE", "DELETE", "CREATE", "ALTER", "DROP", "UNKNOWN"})


def millis_since_epoch(time: datetime) -> int:
    return (time - EPOCH) // _MILLISECOND


_TIME_SERIES: Final = {OperationClass.ASPECT_NAME, DataProcessInstanceRunEventClass.ASPECT_NAME}


def independent_batches(proposals: Iterable[Proposal], most: int) -> Iterator[list[Proposal]]:
    """Yield the proposals in batches of at most so many, each with one change of an aspect of an entity.

    An upsert takes the place of what came before it in the batch. A patch joins a patch, and behind an upsert it begins
    the next batch, for the server applies it to what was stored before the batch. What is only for an entity that has
    no such aspect is left out behind another change of it.
    """
    batch: dict[object, Proposal] = {}
    for number, proposal in enumerate(proposals):
        key = _subject(proposal, number)
        if key in batch and proposal.changeType == ChangeTypeClass.CREATE:
            continue
        if proposal.changeType == ChangeTypeClass.PATCH and (earlier := batch.get(key)) is not None:
            joined = _join_patches(earlier, proposal)
            if joined is not None:
                batch[key] = joined
                continue
        else:
            joined = proposal
        if len(batch) >= most or joined is None:
            yield list(batch.values())
            batch = {}
        batch.pop(key, None)
        batch[key] = proposal
    if batch:
        yield list(batch.values())


def _join_patches(earlier: Proposal, later: Proposal) -> Proposal | None:
    """Return one patch for two of the same aspect; None if the first is no patch, or they name elements differently."""
    if not (isinstance(earlier, MetadataChangeProposalClass) and isinstance(later, MetadataChangeProposalClass)):
        return None
    if earlier.aspect is None or later.aspect is None:
        return None
    first, second = json.loads(earlier.aspect.value), json.loads(later.aspect.value)
    content: Any
    if isinstance(first, list) and isinstance(second, list):
        content = _last_of_each_path([*first, *second])
    elif isinstance(first, dict) and isinstance(second, dict) and _keys_of(first) == _keys_of(second):
        content = {**second, "patch": _last_of_each_path([*first["patch"], *second["patch"]])}
    else:
        return None
    aspect = GenericAspectClass(value=json.dumps(content).encode(), contentType=later.aspect.contentType)
    return MetadataChangeProposalClass(
        entityType=later.entityType,
        entityUrn=later.entityUrn,
        changeType=later.changeType,
        aspectName=later.aspectName,
        aspect=aspect,
        systemMetadata=later.systemMetadata,
    )


def _last_of_each_path(operations: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the operations without those that a later one on the same path undoes. No path leads into another."""
    return list({operation["path"]: operation for operation in operations}.values())


def _keys_of(patch: dict[str, Any]) -> object:
    return patch.get("arrayPrimaryKeys")


def _subject(proposal: Proposal, number: int) -> object:
    """Return what a proposal changes. Each entry of a time series is a thing of its own."""
    if proposal.aspectName in _TIME_SERIES:
        return number
    return proposal.entityUrn, proposal.aspectName
