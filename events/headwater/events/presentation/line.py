"""One line of text per event: when, what kind, which job, and what happened in the words of those who run jobs.

`2026-03-01 12:00:19.000Z  Committed  orders_etl  lake.sales.daily APPEND 812→813 ← lake.raw.orders@7`

What no event of this version can be made of: kinds and versions of a newer headwater, and bytes that are no event.

They are shown as what they are, with the bytes, so that nothing in a log is passed over and no reading ends there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum
from typing import Any, Final, TypeAlias

from headwater.errors import HeadwaterError
from headwater.events import administration as a
from headwater.events import catalog as c
from headwater.events import health as h
from headwater.events import jobs as j
from headwater.events.avro import UnknownEvent
from headwater.events.envelope import Event
from headwater.events.json_form import event_object, time_text
from headwater.events.keys import KIND
from headwater.events.presentation import catalog, jobs
from headwater.events.presentation.phrases import joined, labelled
from headwater.terminal import printable

_KIND_WIDTH: Final = 16


class Severity(Enum):
    """How a line asks for attention, with the colour that says so on a terminal."""

    PLAIN = ""
    MADE = "32"
    """A table was written."""
    CHANGED = "36"
    """What a catalog holds changed, or somebody administered."""
    BAD = "31"
    """Something failed, or may be missing."""
    QUIET = "2"
    """Nothing happened."""


@dataclass(frozen=True)
class Line:
    """A line in its pieces, as they came: `format_line` makes them fit for a terminal."""

    time: datetime | None
    kind: str
    job: str
    text: str
    severity: Severity = Severity.PLAIN


def line_of(event: Event) -> Line:
    """The line of an event of any kind."""
    words = _WORDS.get(type(event))
    text = words(event) if words else ""
    job = str(event.job) if event.job else "-"
    return Line(event.time, event.kind, job, text, _severity_of(event))


def format_line(line: Line, *, color: bool = False) -> str:
    """Without the line's end. What isn't printable is escaped: names can hold anything, and a line stays one line, and
    no terminal is made to do anything."""
    time = "-" if line.time is None else line.time.replace(tzinfo=None).isoformat(" ", "milliseconds") + "Z"
    kind, job, text = printable(line.kind), printable(line.job), printable(line.text)
    padded = f"{kind:<{_KIND_WIDTH}}"
    if color:
        time, padded = f"\x1b[2m{time}\x1b[0m", f"\x1b[{line.severity.value}m{padded}\x1b[0m"
    return f"{time}  {padded}  {job}  {text}".rstrip()


def _severity_of(event: Event) -> Severity:
    if isinstance(event, j.StatementFailed | h.Gap):
        return Severity.BAD
    if isinstance(event, j.JobStatusChanged):
        return Severity.BAD if event.status in {j.JobStatus.FAILED, j.JobStatus.KILLED} else Severity.PLAIN
    if isinstance(event, j.Committed):
        return Severity.MADE
    if isinstance(event, h.Heartbeat | j.JobLineage):
        return Severity.QUIET
    return Severity.CHANGED if isinstance(event, c.CatalogModification | a.Administration) else Severity.PLAIN


_WORDS: Final[Mapping[type[Event], Callable[[Any], str]]] = {
    c.CreateDatabase: catalog.create_database,
    c.AlterDatabase: catalog.alter_database,
    c.DropDatabase: catalog.drop_database,
    c.CreateTable: catalog.create_table,
    c.AlterTable: catalog.alter_table,
    c.DropTable: catalog.drop_table,
    c.CreateView: catalog.create_view,
    c.AlterView: catalog.alter_view,
    c.DropView: catalog.drop_view,
    c.Truncate: catalog.truncate,
    c.CreateTag: catalog.create_tag,
    c.DropTag: catalog.drop_tag,
    c.CreateBranch: catalog.create_branch,
    c.DropBranch: catalog.drop_branch,
    c.BranchMerged: catalog.branch_merged,
    c.MainReplaced: catalog.main_replaced,
    c.CorrectionSwitched: catalog.correction_switched,
    j.JobStarted: jobs.job_started,
    j.JobLineage: jobs.job_lineage,
    j.Committed: jobs.committed,
    j.StatementFailed: jobs.statement_failed,
    j.JobStatusChanged: jobs.job_status_changed,
    h.Gap: jobs.gap,
    h.Heartbeat: jobs.heartbeat,
    h.Closed: jobs.closed,
    a.LineageDeleted: jobs.lineage_deleted,
    a.CatalogOptionsDeclared: jobs.catalog_options_declared,
    a.DatasetsUnified: jobs.datasets_unified,
}


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
