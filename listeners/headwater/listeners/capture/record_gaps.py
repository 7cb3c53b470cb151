"""Gaps of records that say what couldn't be seen, and of those that couldn't be understood."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from typing import Any, Final

from headwater.events import Gap
from headwater.events.health import GapReason
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
