"""What no event of this version can be made of: kinds and versions of a newer headwater, and bytes that are no event.

They are shown as what they are, with the bytes, so that nothing in a log is passed over and no reading ends there.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from headwater.errors import HeadwaterError
from headwater.events.avro import SchemaMessage, UnknownEvent
from headwater.events.presentation.json_form import event_object, time_text
from headwater.events.presentation.line import Line, Tone, line_of
from headwater.events.presentation.words import if_told, joined


@dataclass(frozen=True)
class Undecodable:
    """Bytes that can't be read as an event, and why."""

    raw: bytes
    error: HeadwaterError
    kind: str | None = None
    """What stands beside the bytes, where something does."""


@dataclass(frozen=True)
class Origin:
    """Where the bytes lie."""

    place: str
    """The partition of a log, or the directory of a spool."""
    offset: int
    time: datetime
    """When they were appended."""


def stranger_line(what: UnknownEvent | SchemaMessage | Undecodable, origin: Origin) -> Line:
    """The line of text; that of what is understood, where something is."""
    where = f"(offset {origin.offset} of {origin.place})"
    if isinstance(what, SchemaMessage):
        return Line(origin.time, "SchemaMessage", "-", joined(f"schema {what.fingerprint.hex()}", where), Tone.QUIET)
    if isinstance(what, Undecodable):
        return Line(origin.time, what.kind or "?", "-", joined(f"no event: {what.error}", where), Tone.BAD)
    if what.known is not None:
        line = line_of(what.known)
        newer = f"(of the newer version {what.version}: there may be more to it)"
        return Line(line.time, line.kind, line.job, joined(line.text, newer), line.tone)
    told = joined("a newer headwater wrote this:", f"schema {what.fingerprint.hex()}", if_told("version", what.version))
    return Line(origin.time, what.kind or "?", "-", joined(told, where), Tone.BAD)


def stranger_object(what: UnknownEvent | SchemaMessage | Undecodable, origin: Origin) -> dict[str, Any]:
    """The JSON form: `kind`, as in an event, and one more field that says why it isn't one."""
    told: dict[str, Any]
    if isinstance(what, SchemaMessage):
        told = {"schema": what.fingerprint.hex(), "text": what.text, **_origin(origin)}
        return {"kind": "SchemaMessage", "schema_message": told}
    if isinstance(what, Undecodable):
        told = {"error": type(what.error).__name__, "message": str(what.error), "data": what.raw.hex()}
        return {"kind": what.kind, "undecodable": {**told, **_origin(origin)}}
    known = None if what.known is None else event_object(what.known)
    told = {"schema": what.fingerprint.hex(), "schema_version": what.version, "known": known, "data": what.raw.hex()}
    return {"kind": what.kind, "unknown": {**told, **_origin(origin)}}


def _origin(origin: Origin) -> dict[str, str]:
    return {"place": origin.place, "offset": str(origin.offset), "appended": time_text(origin.time)}
