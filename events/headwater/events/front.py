"""`encode`, `decode` and `redact`: what most programs do with events, each one call.

The codec and the redactor are imported at the first call, because a driver that only passes bytes on needs neither.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, TypeVar

from headwater.events.envelope import Event, UnknownEvent

if TYPE_CHECKING:
    from headwater.events.avro.codec import Codec

T = TypeVar("T")


def encode(event: Event | UnknownEvent) -> bytes:
    """Return the bytes of an event as they go over the bus: Avro in its single-object encoding.

    Raises EncodeError where no producer has stamped the event, or where it is larger than a broker takes.

    >>> event = Event.from_json('{"kind":"Heartbeat","schema_version":1,"sequence":"1","family_sequence":"1",'
    ...     '"producer":"0197c1d2-0000-7000-8000-000000000000","time":"2026-01-01T00:00:00.000000Z"}')
    >>> decode(encode(event)) == event
    True
    """
    return _codec().encode(event)


def decode(data: bytes) -> Event | UnknownEvent:
    """Return the event in these bytes; an UnknownEvent where a newer headwater wrote them.

    Raises DecodeError where they are no event. `headwater.events.avro.Codec` also reads a schema registry's framing.

    >>> decode(b"not an event")
    Traceback (most recent call last):
    headwater.events.errors.DecodeError: unknown framing: these bytes can't be read as an event: ...
    """
    return _codec().decode(data)


def redact(value: T) -> T:
    """Return the value without its secrets: a text, a map, a sequence, or an event.

    A producer does this to every event before it is encoded. The very same object comes back where nothing was secret.

    >>> redact({"url": "jdbc:postgresql://db/sales", "password": "hunter2"})
    {'url': 'jdbc:postgresql://db/sales', 'password': '*********(redacted)'}
    """
    from headwater.events.redaction import redact as redacted  # noqa: PLC0415 - see above

    return redacted(value)


@cache
def _codec() -> Codec:
    from headwater.events.avro.codec import Codec  # noqa: PLC0415 - see above

    return Codec()
