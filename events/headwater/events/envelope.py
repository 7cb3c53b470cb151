"""What every event carries first: its producer, its place in the order, its time, and its job and run."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple
from uuid import UUID

from pydantic import ValidationError

from headwater.events.base import Model
from headwater.events.errors import DecodeError, Problem
from headwater.events.json_form import event_object, json_line
from headwater.events.names import JobName
from headwater.events.scalars import EPOCH, Count, EventEnum, IdentityString, Long, Timestamp

if TYPE_CHECKING:
    from typing_extensions import Self

UNSTAMPED: Final = UUID(int=0)


class EventFamily(EventEnum):
    """What an event is about. Listeners and stores may get one family only, so sequences are counted per family too.

    >>> EventFamily("JOB").value
    'JOB'
    """

    UNKNOWN = "UNKNOWN"
    CATALOG = "CATALOG"
    JOB = "JOB"
    ADMIN = "ADMIN"


class EventId(NamedTuple):
    """The identity of an event, unique over all producers. A duplicate of an event has the same id.

    >>> from uuid import UUID
    >>> str(EventId(UUID(int=1), 7))
    '00000000-0000-0000-0000-000000000001-7'
    """

    producer: UUID
    sequence: int

    def __str__(self) -> str:
        return f"{self.producer}-{self.sequence}"


class Stamp(NamedTuple):
    """What orders facts about one thing: the newest wins, whatever order they arrive in."""

    time: datetime
    producer: UUID
    sequence: int


class Event(Model):
    """The envelope that every kind of event begins with.

    Each kind is a subclass. An event as it is constructed is a draft: a Producer fills in `producer`, the sequences and
    `time` when it emits it.

    >>> from headwater.events import Heartbeat, JobName
    >>> draft = Heartbeat(job=JobName(name="orders_etl"))
    >>> draft.stamped
    False
    >>> Event.from_json(draft.to_json()) == draft
    True
    """

    kind: str
    schema_version: int
    producer: UUID = UNSTAMPED
    sequence: Count = 0
    """Counts all events of the producer, from 1."""
    family_sequence: Count = 0
    """Counts the producer's events of this family, from 1: who gets one family only sees holes by it."""
    time: Timestamp = EPOCH
    application: IdentityString = ""
    """Spark's application id; empty where there is no application."""
    job: JobName | None = None
    run: UUID | None = None
    statement: Long | None = None
    """Spark's SQL execution id: what one statement did has one, within its application."""
    user: IdentityString | None = None
    """Who asked for it, where that is somebody else than the application's user: a client of a server."""
    operation: IdentityString | None = None
    """That client's own id of what it asked for."""

    family: ClassVar[EventFamily]

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: Any) -> None:
        super().__pydantic_init_subclass__(**kwargs)
        if isinstance(kind := cls.model_fields["kind"].default, str):
            _KINDS.setdefault(kind, cls)

    @property
    def event_id(self) -> EventId:
        return EventId(self.producer, self.sequence)

    def to_json(self) -> str:
        """Return the event as one line of JSON, in the documented form (docs/event-json.md).

        64-bit integers are texts and times have six digits, so any reader keeps every value. pydantic's own
        `model_dump_json` writes another form, which isn't promised.
        """
        return json_line(event_object(self))

    @classmethod
    def from_json(cls, text: str | bytes) -> Self:
        """Return the event that `to_json` wrote; `Event.from_json` reads every kind, a kind only its own.

        Raises DecodeError where the text is no event, or is of a kind or version that this headwater doesn't know.
        """
        try:
            content = json.loads(text)
        except ValueError as e:
            raise DecodeError(Problem.MALFORMED, f"no JSON: {e}") from e
        name = content.get("kind") if isinstance(content, dict) else None
        kind = _KINDS.get(name) if isinstance(name, str) else None
        if kind is None:
            raise DecodeError(Problem.INVALID, f"its kind is {name!r}, which this version of headwater doesn't know")
        try:
            event = kind.model_validate_json(text)
        except ValidationError as e:
            raise DecodeError(Problem.INVALID, str(e), kind=kind.__name__) from e
        if not isinstance(event, cls):
            raise DecodeError(Problem.INVALID, f"a {event.kind}, where a {cls.__name__} is expected", kind=event.kind)
        return event

    @property
    def stamp(self) -> Stamp:
        return Stamp(self.time, self.producer, self.sequence)

    @property
    def stamped(self) -> bool:
        return self.producer != UNSTAMPED


_KINDS: Final[dict[str, type[Event]]] = {}
"""The classes by their kinds. All are there once `headwater.events` is imported."""


@dataclass(frozen=True)
class UnknownEvent:
    """An event that this version of headwater doesn't know in full.

    `raw` holds the bytes as they came in, and encoding gives them back.

    >>> UnknownEvent(raw=b"...", fingerprint=bytes(8)).known is None
    True
    """

    raw: bytes
    fingerprint: bytes
    """Names the schema that the bytes were written with."""
    kind: str | None = None
    """None where the schema is unknown."""
    version: int | None = None
    known: Event | None = None
    """What this version understands of a newer version of a kind that it knows."""
