"""What no event of this version can be made of: kinds and versions of a newer headwater, and bytes that are no event.

They are shown as what they are, with the bytes, so that nothing in a log is passed over and no reading ends there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, TypeAlias

from headwater.errors import HeadwaterError
from headwater.events.avro import SchemaMessage, UnknownEvent
from headwater.events.keys import KIND
from headwater.events.presentation.json_form import event_object, time_text
from headwater.events.presentation.line import Line, Tone, line_of
from headwater.events.presentation.words import if_told, joined


@dataclass(frozen=True)
class Undecodable:
    """Bytes that can't be read as an event, and why."""

    raw: bytes
    error: HeadwaterError


Stranger: TypeAlias = UnknownEvent | SchemaMessage | Undecodable


@dataclass(frozen=True)
class Origin:
    """Where the bytes lie, and what stands beside them."""

    place: str
    """The partition of a log, or the directory of a spool."""
    offset: int
    time: datetime
    """When they were appended."""
    headers: Mapping[str, str] = field(default_factory=dict)


def stranger_line(what: Stranger, origin: Origin) -> Line:
    """The line of text; that of what is understood, where something is."""
    where = f"(offset {origin.offset} of {origin.place})"
    if isinstance(what, SchemaMessage):
        return Line(origin.time, "SchemaMessage", "-", joined(f"schema {what.fingerprint.hex()}", where), Tone.QUIET)
    kind = _kind(what, origin) or "?"
    if isinstance(what, Undecodable):
        return Line(origin.time, kind, "-", joined(f"no event: {what.error}", where), Tone.BAD)
    if what.known is not None:
        line = line_of(what.known)
        newer = f"(of the newer version {what.version}: there may be more to it)"
        return Line(line.time, line.kind, line.job, joined(line.text, newer), line.tone)
    schema = f"schema {what.fingerprint.hex()}"
    told = joined("a newer headwater wrote this:", schema, if_told("version", what.version), where)
    return Line(origin.time, kind, "-", told, Tone.BAD)


def stranger_object(what: Stranger, origin: Origin) -> dict[str, Any]:
    """The JSON form: `kind`, as in an event, and one more field that says why it isn't one."""
    if isinstance(what, SchemaMessage):
        return {
            "kind": "SchemaMessage",
            "schema_message": {"schema": what.fingerprint.hex(), "text": what.text, **_origin(origin)},
        }
    if isinstance(what, Undecodable):
        error: dict[str, Any] = {"error": type(what.error).__name__, "message": str(what.error), "data": what.raw.hex()}
        return {"kind": _kind(what, origin), "undecodable": {**error, **_origin(origin)}}
    told: dict[str, Any] = {
        "schema": what.fingerprint.hex(),
        "schema_version": what.version,
        "known": None if what.known is None else event_object(what.known),
        "data": what.raw.hex(),
    }
    return {"kind": _kind(what, origin), "unknown": {**told, **_origin(origin)}}


def _kind(what: UnknownEvent | Undecodable, origin: Origin) -> str | None:
    """As its schema says, else as what stands beside it does."""
    told = what.kind if isinstance(what, UnknownEvent) else None
    return told or origin.headers.get(KIND)


def _origin(origin: Origin) -> dict[str, Any]:
    where = {"place": origin.place, "offset": str(origin.offset), "appended": time_text(origin.time)}
    return {**where, "headers": dict(origin.headers)}
