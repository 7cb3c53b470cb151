"""Metadata change proposals: what DataHub's SDK calls a change of one aspect of one entity."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any, Final, Protocol, TypeAlias, TypeVar, cast

from datahub.emitter.mce_builder import UNKNOWN_USER, make_user_urn
from datahub.emitter.mcp import MetadataChangeProposalWrapper
from datahub.metadata.schema_classes import (
    AuditStampClass,
    ChangeTypeClass,
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


def known_texts(told: Mapping[str, object]) -> dict[str, str]:
    """Return what is known, as text: DataHub's properties are texts."""
    return {key: str(value) for key, value in told.items() if value is not None and value != ""}


def millis_since_epoch(time: datetime) -> int:
    return (time - EPOCH) // _MILLISECOND
