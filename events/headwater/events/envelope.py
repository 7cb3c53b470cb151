"""What every event carries first: who told it, in which order, when, and for which job and run."""

from __future__ import annotations

from datetime import datetime
from typing import ClassVar, Final, NamedTuple
from uuid import UUID

from pydantic import Field

from headwater.events.base import Model
from headwater.events.names import JobName
from headwater.events.scalars import EPOCH, Count, Long, Time, Word

UNSTAMPED: Final = UUID(int=0)


class Family(Word):
    """Listeners and stores may get one family only, so holes are counted per family too."""

    UNKNOWN = "UNKNOWN"
    CATALOG = "CATALOG"
    JOB = "JOB"
    ADMIN = "ADMIN"


class EventId(NamedTuple):
    """Unique over all producers; duplicates of an event carry the same id."""

    producer: UUID
    sequence: int

    def __str__(self) -> str:
        return f"{self.producer}-{self.sequence}"


class Stamp(NamedTuple):
    """What orders facts about one thing: the newest wins, whatever order they arrive in."""

    time: datetime
    producer: UUID
    sequence: int


class Part(Model):
    """This event is one of several that a too large one was cut into; their sequences follow each other."""

    number: int = Field(ge=1, le=2**31 - 1)
    of: int = Field(ge=1, le=2**31 - 1)


class Event(Model):
    """The envelope. A kind is a subclass; a producer's `stamp` fills what has a default here and isn't optional."""

    kind: str
    schema_version: int
    producer: UUID = UNSTAMPED
    sequence: Count = 0
    """Counts all events of the producer, from 1."""
    family_sequence: Count = 0
    """Counts the producer's events of this family, from 1: who gets one family only sees holes by it."""
    time: Time = EPOCH
    application: str = ""
    """Spark's application id; empty where there is no application."""
    job: JobName | None = None
    run: UUID | None = None
    part: Part | None = None
    statement: Long | None = None
    """Spark's SQL execution id: what one statement did has one, within its application."""
    user: str | None = None
    """Who asked for it, where that is somebody else than the application's user: a client of a server."""
    operation: str | None = None
    """That client's own id of what it asked for."""

    family: ClassVar[Family]

    @property
    def event_id(self) -> EventId:
        return EventId(self.producer, self.sequence)

    @property
    def stamp(self) -> Stamp:
        return Stamp(self.time, self.producer, self.sequence)

    @property
    def stamped(self) -> bool:
        return self.producer != UNSTAMPED
