"""What is to change in Atlas: entities to write, each with the rule by which it gives way to what is there already."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import Enum
from typing import Any, Final, NamedTuple, TypeAlias

from headwater.events.scalars import EPOCH

EVENT_TIME: Final = "eventTime"
"""The attribute with the time of the event that an entity was last written from, in milliseconds."""
_MILLISECOND: Final = timedelta(milliseconds=1)


class AtlasRef(NamedTuple):
    """An entity by its type and qualifiedName: headwater never knows a GUID beforehand."""

    type_name: str
    qualified_name: str


References: TypeAlias = "AtlasRef | tuple[AtlasRef, ...]"


class WriteRule(Enum):
    """What becomes of an entity that Atlas has already."""

    SET = "SET"
    """Its attributes are set."""
    ADD = "ADD"
    """As SET, but what its references lead to stays, and an older event adds to it: edges are a set that grows."""
    FILL = "FILL"
    """Only attributes that it has no value of are set."""
    ABSENT = "ABSENT"
    """It stays as it is: the entity is only written where there is none."""


@dataclass(frozen=True)
class Put:
    """An entity to write."""

    ref: AtlasRef
    name: str
    at: int
    """The time of the event, in milliseconds."""
    attributes: Mapping[str, Any] = field(default_factory=dict)
    """None empties an attribute; one that isn't here keeps its value."""
    references: Mapping[str, References] = field(default_factory=dict)
    """A tuple stands for all that there are."""
    rule: WriteRule = WriteRule.SET
    guard: AtlasRef | None = None
    """It gives way where this entity was written from a newer event."""
    moved_from: AtlasRef | None = None
    """The same thing under the name that it had before: the entity keeps its GUID, and so its lineage."""

    @property
    def mentioned(self) -> Iterator[AtlasRef]:
        """Yield every entity that has to be known before this one is written."""
        yield self.ref
        for each in (self.guard, self.moved_from):
            if each is not None:
                yield each
        for value in self.references.values():
            yield from (value,) if isinstance(value, AtlasRef) else value


@dataclass(frozen=True)
class Remove:
    """An entity to delete; Atlas deletes what is a part of it too."""

    ref: AtlasRef
    at: int
    """The time of the event: what was written from a newer one stays."""

    @property
    def mentioned(self) -> Iterator[AtlasRef]:
        yield self.ref


Change: TypeAlias = "Put | Remove"


def millis_since_epoch(time: datetime) -> int:
    return (time - EPOCH) // _MILLISECOND


def readable_change(change: Change) -> dict[str, Any]:
    """Return a change as people read it: what is to be there, and by which rule."""
    told: dict[str, Any] = {"type": change.ref.type_name, "qualifiedName": change.ref.qualified_name}
    if isinstance(change, Remove):
        return {"change": "DELETE", **told}
    told = {"change": change.rule.value, **told, "name": change.name, "attributes": dict(change.attributes)}
    if change.references:
        told["references"] = {name: _readable(value) for name, value in change.references.items()}
    if change.moved_from is not None:
        told["movedFrom"] = change.moved_from.qualified_name
    return told


def _readable(value: References) -> str | list[str]:
    """Return entities by their names. Their types follow from the reference."""
    return value.qualified_name if isinstance(value, AtlasRef) else [ref.qualified_name for ref in value]
