"""What is handed on to the stage that knows jobs: events that don't say yet whose they are, and how to find that.

Among them are Gaps of records that say what couldn't be seen, and of those that couldn't be understood.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, timezone
from typing import Any, Final, TypeAlias
from uuid import UUID

from headwater.events import Event, Gap
from headwater.events.health import GapReason
from headwater.events.jobs import DatasetRef
from headwater.listeners.attribution import Client
from headwater.listeners.capture.early_events import QUEUE
from headwater.listeners.capture.records import (
    CaughtError,
    DroppedRecord,
    FailedRecord,
    InvalidRecord,
    LostRecord,
    ProcedureCallRecord,
    Record,
    UnreadableRecord,
)
from headwater.listeners.jobs.run_end import QueryStart, RunEnd


@dataclass(frozen=True, slots=True)
class Owner:
    """What the job and run of drafts are found by."""

    record: Record
    sink: str | None = None
    """What the statement writes first, by name."""
    query_run: UUID | None = None
    """The run of the streaming query that it is a part of."""
    is_session: bool = False
    """Drafts are the client's session's, not a job's in it."""


@dataclass(frozen=True, slots=True)
class OwnedDrafts:
    owner: Owner
    events: Iterable[Event]
    """In order. Each is made when the one before it was emitted."""


@dataclass(frozen=True, slots=True)
class QueryBegin:
    run: UUID
    start: QueryStart


@dataclass(frozen=True, slots=True)
class QueryEnd:
    run: UUID
    end: RunEnd


@dataclass(frozen=True, slots=True)
class SessionEnd:
    client: Client


Translated: TypeAlias = OwnedDrafts | QueryBegin | QueryEnd | SessionEnd


def name_of(place: DatasetRef) -> str | None:
    """What the job of a write is called after: the table, else the dataset by a name that people can read."""
    if place.table is not None:
        return str(place.table)
    return None if place.dataset is None else place.dataset.short_name


_EPOCH: Final = datetime(1970, 1, 1, tzinfo=timezone.utc)


def make_gap(record: Record, reason: GapReason, detail: str, missed: int | None = None) -> Gap:
    """A Gap of the time that the record is of."""
    return Gap(
        reason=reason,
        detail=detail,
        missed=missed,
        first_time=None if record.started is None else time_of(record.started),
        last_time=None if record.ended is None else time_of(record.ended),
    )


def gap_of(record: Record) -> Gap:
    """The Gap that a record is which says that something wasn't seen."""
    reason, detail_of = _DETAILS[type(record)]
    missed = record.count if isinstance(record, DroppedRecord | LostRecord | FailedRecord) else None
    return make_gap(record, reason, detail_of(record), missed)


def _of_unreadable(record: UnreadableRecord) -> str:
    what = "a procedure" if record.id is None else f"statement {record.id}"
    return f"{what} can't be recorded: {record.why}"


def _of_lost(record: LostRecord) -> str:
    return (
        f"Spark's queue was full: {record.count} of its events, of all kinds, didn't come to headwater; a "
        f"larger spark.scheduler.listenerbus.eventqueue.{QUEUE}.capacity gives it more room"
    )


def by_statement(record: FailedRecord) -> Iterator[FailedRecord]:
    """A record for each statement of which something is known to be missing, and one for the rest."""
    known: dict[int | None, list[CaughtError]] = {}
    for error in record.caught:
        known.setdefault(error.statement, []).append(error)
    rest = known.pop(None, [])
    for statement, caught in known.items():
        yield replace(record, id=statement, count=len(caught), caught=tuple(caught))
    count = record.count - sum(map(len, known.values()))
    if count > 0:
        yield replace(record, count=count, caught=tuple(rest))


def _of_failed(record: FailedRecord) -> str:
    what = "some statements" if record.id is None else f"statement {record.id}"
    causes = "; ".join(dict.fromkeys(error.why for error in record.caught))
    return f"what was seen of {what} can't be read" + (f": {causes}" if causes else "")


_DETAILS: Final[Mapping[type[Record], tuple[GapReason, Callable[[Any], str]]]] = {
    InvalidRecord: (GapReason.CAPTURE_FAILED, lambda record: record.why),
    UnreadableRecord: (GapReason.CAPTURE_FAILED, _of_unreadable),
    ProcedureCallRecord: (
        GapReason.NOT_SUPPORTED,
        lambda record: f"CALL {record.procedure} ran while Spark analysed it: what it did isn't shown",
    ),
    DroppedRecord: (
        GapReason.QUEUE_OVERFLOW,
        lambda record: f"{record.count} statements weren't read: the queue was full",
    ),
    LostRecord: (GapReason.QUEUE_OVERFLOW, _of_lost),
    FailedRecord: (GapReason.CAPTURE_FAILED, _of_failed),
}


def time_of(millis: int) -> datetime:
    return _EPOCH + timedelta(milliseconds=millis)
