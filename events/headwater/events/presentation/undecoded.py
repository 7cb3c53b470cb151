"""What no event of this version can be made of: kinds and versions of a newer headwater, and bytes that are no event.

They are shown as what they are, with the bytes, so that nothing in a log is passed over and no reading ends there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, TypeAlias

from headwater.errors import HeadwaterError
from headwater.events.avro import UnknownEvent
from headwater.events.json_form import event_object, time_text
from headwater.events.keys import KIND
from headwater.events.presentation.line import Line, Severity, line_of
from headwater.events.presentation.phrases import joined, labelled


@dataclass(frozen=True)
class Undecodable:
    """Bytes that can't be read as an event, and why."""

    raw: bytes
    error: HeadwaterError


Undecoded: TypeAlias = UnknownEvent | Undecodable


@dataclass(frozen=True)
class RecordOrigin:
    """Where the bytes lie, and what stands beside them."""

    place: str
    """The partition of a log, or the directory of a spool."""
    offset: int
    time: datetime
    """When they were appended."""
    headers: Mapping[str, str] = field(default_factory=dict)


def undecoded_line(what: Undecoded, origin: RecordOrigin) -> Line:
    """The line of text; that of what is understood, where something is."""
    where = f"(offset {origin.offset} of {origin.place})"
    kind = _kind(what, origin) or "?"
    if isinstance(what, Undecodable):
        return Line(origin.time, kind, "-", joined(f"no event: {what.error}", where), Severity.BAD)
    if what.known is not None:
        line = line_of(what.known)
        newer = f"(of the newer version {what.version}: there may be more to it)"
        return Line(line.time, line.kind, line.job, joined(line.text, newer), line.severity)
    schema = f"schema {what.fingerprint.hex()}"
    text = joined("a newer headwater wrote this:", schema, labelled("version", what.version), where)
    return Line(origin.time, kind, "-", text, Severity.BAD)


def undecoded_object(what: Undecoded, origin: RecordOrigin) -> dict[str, Any]:
    """The JSON form: `kind`, as in an event, and one more field that says why it isn't one."""
    if isinstance(what, Undecodable):
        error: dict[str, Any] = {"error": type(what.error).__name__, "message": str(what.error), "data": what.raw.hex()}
        return {"kind": _kind(what, origin), "undecodable": {**error, **_origin(origin)}}
    content: dict[str, Any] = {
        "schema": what.fingerprint.hex(),
        "schema_version": what.version,
        "known": None if what.known is None else event_object(what.known),
        "data": what.raw.hex(),
    }
    return {"kind": _kind(what, origin), "unknown": {**content, **_origin(origin)}}


def _kind(what: UnknownEvent | Undecodable, origin: RecordOrigin) -> str | None:
    """As its schema says, else as what stands beside it does."""
    kind = what.kind if isinstance(what, UnknownEvent) else None
    return kind or origin.headers.get(KIND)


def _origin(origin: RecordOrigin) -> dict[str, Any]:
    where = {"place": origin.place, "offset": str(origin.offset), "appended": time_text(origin.time)}
    return {**where, "headers": dict(origin.headers)}
