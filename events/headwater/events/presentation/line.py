"""One line of text per event: when, what kind, which job, and what happened in the words of those who run jobs.

`2026-03-01 12:00:19.000Z  Committed  orders_etl  lake.sales.daily APPEND 812→813 ← lake.raw.orders@7`
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from typing import Any, Final

from headwater.events import administration as a
from headwater.events import catalog as c
from headwater.events import health as h
from headwater.events import jobs as j
from headwater.events.envelope import Event
from headwater.events.presentation import catalog, jobs, others
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
    j.JobStarted: jobs.job_started,
    j.JobLineage: jobs.job_lineage,
    j.Committed: jobs.committed,
    j.StatementFailed: jobs.statement_failed,
    j.JobStatusChanged: jobs.job_status_changed,
    h.Gap: others.gap,
    h.Heartbeat: others.heartbeat,
    h.Closed: others.closed,
    a.LineageDeleted: others.lineage_deleted,
    a.CatalogOptionsDeclared: others.catalog_options_declared,
    a.DatasetsUnified: others.datasets_unified,
}
