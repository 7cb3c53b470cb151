"""Up to which time the store's answers are complete, and what may be missing."""

from __future__ import annotations

from collections.abc import Generator, Iterable
from contextlib import closing
from datetime import datetime
from functools import cache
from itertools import islice
from typing import Any, Final

from sqlalchemy import Connection, bindparam, func, select

from headwater.events.clock import wall_micros
from headwater.events.envelope import EventFamily
from headwater.events.names import DEFAULT_JOB_NAMESPACE, JobName
from headwater.lineage.bulk.positions import bus_stored_until
from headwater.lineage.mapping.row_builder import RECONCILED_FAMILY
from headwater.lineage.questions.answers import Answer, AnswerLimit, LimitReason, micros_of_argument
from headwater.lineage.questions.gaps.model import GapFilter, PossibleGap, time_of
from headwater.lineage.questions.gaps.reported import find_contradicting_options, find_reported_gaps
from headwater.lineage.questions.gaps.sequences import (
    find_pending_gaps,
    find_sequence_gaps,
    find_silent_producers,
    silence_limit,
)
from headwater.lineage.questions.gaps.streams import find_stream_breaks, find_unknown_parents
from headwater.lineage.rows import tables as t
from headwater.lineage.sql.tables import table_of

AT_MOST: Final = 10_000
"""The default for how many gaps an answer contains."""
_NOT_SENT: Final = (EventFamily.ADMIN.value, RECONCILED_FAMILY)
"""The families of events that say nothing of what drivers have sent."""


def complete_until(connection: Connection, now: datetime | None = None) -> datetime | None:
    """Return the time up to which everything is stored, except for gaps. None if no producer was heard of yet.

    A running producer limits it to its last heartbeat, which confirms everything before. A missing number limits it to
    the time before that number. A dead producer doesn't limit it: it is a gap. Unread records can say anything, so each
    partition limits it to what is stored of it.
    """
    at = wall_micros() if now is None else micros_of_argument(now, "now")
    heard = _last_word(connection)
    stored = bus_stored_until(connection)
    if heard is None or (stored is not None and stored <= 0):
        return None
    bounds = [
        heard,
        at,
        *([] if stored is None else [stored]),
        *_alive(connection, at),
        *(gap.since for gap in find_pending_gaps(connection, at)),
    ]
    return time_of(min(bounds))


def gaps(
    connection: Connection,
    *,
    since: datetime | None = None,
    until: datetime | None = None,
    job: JobName | None = None,
    datasets: Iterable[bytes] | None = None,
    at_most: int = AT_MOST,
    now: datetime | None = None,
) -> Answer[PossibleGap]:
    """Return what may be missing, reported or inferred: gaps that overlap a time range and concern a job or a dataset
    (with all its identities). A producer's gap concerns everything that its application used."""
    filters = GapFilter(
        now=wall_micros() if now is None else micros_of_argument(now, "now"),
        since=None if since is None else micros_of_argument(since, "since"),
        until=None if until is None else micros_of_argument(until, "until"),
        job=None if job is None else (job.namespace or DEFAULT_JOB_NAMESPACE, job.name),
        datasets=None if datasets is None else tuple(datasets),
    )
    with closing(_all(connection, filters)) as gaps:
        found = list(islice(gaps, at_most + 1))
    cut = (AnswerLimit(LimitReason.CUT, f"the first {at_most} gaps"),) if len(found) > at_most else ()
    return Answer(tuple(found[:at_most]), complete_until(connection, now), cut)


def _all(connection: Connection, filters: GapFilter) -> Generator[PossibleGap, None, None]:
    for question in (
        find_reported_gaps,
        find_sequence_gaps,
        find_silent_producers,
        find_stream_breaks,
        find_unknown_parents,
        find_contradicting_options,
    ):
        yield from question(connection, filters)


def _last_word(connection: Connection) -> int | None:
    """Return the time of the last event that a driver sent.

    Administration events don't count: they can go directly into a store that is far behind its bus. Neither do commits
    that were found in a table's log: drivers that couldn't reach the bus meanwhile may have other commits of that time.
    """
    heard: int | None = connection.scalar(_select_last_word())
    return heard


@cache
def _select_last_word() -> Any:
    row = table_of(t.ARRIVAL).c  # of a maximum MariaDB would read all rows
    return select(row.last).where(row.family.not_in(_NOT_SENT)).order_by(row.last.desc()).limit(1)


def _alive(connection: Connection, now: int) -> list[int]:
    """Return the last heartbeats of producers that are open and not silent for too long."""
    last = connection.scalar(_select_alive(), {"now": now})
    return [] if last is None else [last]


@cache
def _select_alive() -> Any:
    row = table_of(t.PRODUCER).c
    is_heard = row.last + silence_limit(row) >= bindparam("now", type_=row.last.type)
    return select(func.min(row.last)).where(row.closed_at.is_(None), is_heard)
