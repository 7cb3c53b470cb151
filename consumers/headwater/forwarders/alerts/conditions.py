"""What in an event a rule is about: pure functions, without any input, output or clock.

A finding is what a rule found in an event, with the values for its text. The same event gives the same findings.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Final

from headwater.events import Event
from headwater.events.health import Gap
from headwater.events.jobs import CommitKind, Committed, JobStatusChanged, Output, OverwriteScope, StatementFailed
from headwater.events.json_form import time_text
from headwater.events.keys import datasets_in, jobs_in
from headwater.events.names import DatasetId, TableName
from headwater.forwarders.alerts.rules import GapRule, JobFailedRule, Rule

_NO_NEW_DATA: Final = frozenset({CommitKind.COMPACT, CommitKind.VACUUM, CommitKind.ANALYZE, CommitKind.ALTER})
"""A table that is only compacted is as late as before."""


@dataclass(frozen=True)
class RuleFinding:
    """Something that a rule wants somebody to hear of."""

    rule: Rule
    key: str
    """Two findings of a rule with one key are one alert."""
    happened: float
    """In seconds since 1970."""
    subject: str
    """What it is about, in a word."""
    values: Mapping[str, str] = field(default_factory=dict)
    """For the rule's text."""
    event: str | None = None
    """The id of the event."""

    @property
    def alert_id(self) -> str:
        return hashlib.sha256(f"{self.rule.name}\0{self.key}".encode("utf-8", "backslashreplace")).hexdigest()[:32]


def findings_of(event: Event, rule: Rule, happened: float) -> Iterator[RuleFinding]:
    """Yield what a rule finds in an event by itself: those that need more than one event are elsewhere."""
    if isinstance(rule, JobFailedRule):
        yield from _failures(event, rule, happened)
    elif isinstance(rule, GapRule) and isinstance(event, Gap):
        yield from _gaps(event, rule, happened)


def _failures(event: Event, rule: JobFailedRule, happened: float) -> Iterator[RuleFinding]:
    if not rule.job_patterns.match(jobs_in(event)):
        return
    if isinstance(event, JobStatusChanged):
        if event.status.value not in rule.status or (event.inferred and not rule.inferred):
            return
        key = f"run/{event.run or event.event_id}"
        status = f"{event.status.value}, as others found" if event.inferred else event.status.value
    elif isinstance(event, StatementFailed) and rule.statements:
        key, status = f"statement/{event.event_id}", "FAILED in a statement"
    else:
        return
    error = event.error
    values = {
        **_values_of(event),
        "status": status,
        "error": "no error is known" if error is None else f"{error.type}: {error.message}",
    }
    yield RuleFinding(rule, key, happened, values["job"], values, str(event.event_id))


def _gaps(event: Gap, rule: GapRule, happened: float) -> Iterator[RuleFinding]:
    tables = [] if event.source is None else list(datasets_in(event.source))
    if not rule.job_patterns.match(jobs_in(event)) or not rule.table_patterns.match(tables):
        return
    if rule.reasons and event.reason.value not in rule.reasons:
        return
    values = {
        **_values_of(event),
        "reason": event.reason.value,
        "detail": event.detail,
        "missed": "an unknown number" if event.missed is None else str(event.missed),
        "table": "" if event.source is None else name_of(event.source.table, event.source.dataset),
    }
    yield RuleFinding(
        rule, f"gap/{event.event_id}", happened, values["table"] or values["job"], values, str(event.event_id)
    )


def _values_of(event: Event) -> dict[str, str]:
    return {
        "job": "an unknown job" if event.job is None else str(event.job),
        "run": "" if event.run is None else str(event.run),
        "application": event.application,
        "user": event.user or "",
    }


@dataclass(frozen=True)
class TableCommit:
    """A commit that brought new data to a table."""

    table: str
    names: tuple[str, ...]
    """All by which people call it."""


def commits_of(event: Committed) -> Iterator[TableCommit]:
    """Yield the tables that have new data."""
    for output in event.outputs:
        if has_new_data(output) and (output.dataset or output.table):
            yield TableCommit(name_of(output.table, output.dataset), names_of(output.table, output.dataset))


def has_new_data(output: Output) -> bool:
    """Return whether a commit brought rows. REPLACE is what Iceberg says of files that are written anew, and Delta of
    tables that are made anew from a query."""
    if output.commit_kind is CommitKind.REPLACE:
        return output.replaced is OverwriteScope.ALL
    return output.commit_kind not in _NO_NEW_DATA


def name_of(table: TableName | None, dataset: DatasetId | None) -> str:
    """Return the name that people know best."""
    return str(table) if table is not None else str(dataset) if dataset is not None else "an unknown table"


def names_of(table: TableName | None, dataset: DatasetId | None) -> tuple[str, ...]:
    return tuple(name for each in (table, dataset) if each is not None for name in datasets_in(each))


def moment_text(seconds: float) -> str:
    """Return a moment as events have it, but for whole seconds."""
    return time_text(datetime.fromtimestamp(seconds, timezone.utc)).partition(".")[0] + "Z"


def duration_text(seconds: float) -> str:
    """Return a duration in its two largest units."""
    left = max(0, int(seconds))
    pieces = []
    for unit, size in (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1)):
        count, left = divmod(left, size)
        if count:
            pieces.append(f"{count} {unit}")
    return " ".join(pieces[:2]) or "0 s"
