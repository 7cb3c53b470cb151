"""Up to when the store's answers are complete, and what may be missing from them."""

from __future__ import annotations

from collections.abc import Generator, Iterable
from contextlib import closing
from datetime import datetime
from itertools import islice
from typing import Final

from sqlalchemy import Connection, func, select

from headwater.events.clock import micros_of, wall_micros
from headwater.events.envelope import Family
from headwater.events.names import DEFAULT_JOB_NAMESPACE, JobName
from headwater.lineage.bulk.positions import bus_stored_until
from headwater.lineage.questions.answers import Answer, Limit, Why
from headwater.lineage.questions.gaps.missing import Asked, Missing, when
from headwater.lineage.questions.gaps.numbers import holes, pending
from headwater.lineage.questions.gaps.silence import parts, patience, silences
from headwater.lineage.questions.gaps.snapshots import unknown_parents
from headwater.lineage.questions.gaps.streams import breaks
from headwater.lineage.questions.gaps.told import told
from headwater.lineage.rows import tables as t
from headwater.lineage.sql.tables import table_of

AT_MOST: Final = 10_000
"""So many gaps an answer has unless told otherwise."""


def complete_until(connection: Connection, now: datetime | None = None) -> datetime | None:
    """All that was committed up to here is in the store, but for the gaps; None where nobody was heard yet.

    A producer that is open and alive holds this back to its last heartbeat, which says that all before it was told, and
    a number that has not come yet to the time before it. One that is dead holds nothing back: it is a gap. What a
    writer has not read yet may say anything, so each partition of a bus holds it back to what is stored of it.
    """
    at = wall_micros() if now is None else micros_of(now)
    heard = _last_word(connection)
    stored = bus_stored_until(connection)
    if heard is None or (stored is not None and stored <= 0):
        return None
    bounds = [
        heard,
        at,
        *([] if stored is None else [stored]),
        *_alive(connection, at),
        *(each.since for each in pending(connection, at)),
    ]
    return when(min(bounds))


def gaps(
    connection: Connection,
    *,
    since: datetime | None = None,
    until: datetime | None = None,
    job: JobName | None = None,
    datasets: Iterable[bytes] | None = None,
    at_most: int = AT_MOST,
    now: datetime | None = None,
) -> Answer[Missing]:
    """What may be missing, told and inferred: those that reach into a time, and concern a job or a dataset (by all of
    its identities). A producer's gap concerns what its application had to do with."""
    asked = Asked(
        now=wall_micros() if now is None else micros_of(now),
        since=None if since is None else micros_of(since),
        until=None if until is None else micros_of(until),
        job=None if job is None else (job.namespace or DEFAULT_JOB_NAMESPACE, job.name),
        datasets=None if datasets is None else tuple(datasets),
    )
    with closing(_all(connection, asked)) as each:
        found = list(islice(each, at_most + 1))
    cut = (Limit(Why.CUT, f"the first {at_most} gaps"),) if len(found) > at_most else ()
    return Answer(tuple(found[:at_most]), complete_until(connection, now), cut)


def _all(connection: Connection, asked: Asked) -> Generator[Missing, None, None]:
    for question in (told, holes, silences, parts, breaks, unknown_parents):
        yield from question(connection, asked)


def _last_word(connection: Connection) -> int | None:
    """Not an administrator's, whose events can go straight into a store that is far behind its bus."""
    row = table_of(t.RECEIVED).c
    heard: int | None = connection.scalar(select(func.max(row.last)).where(row.family != Family.ADMIN.value))
    return heard


def _alive(connection: Connection, now: int) -> list[int]:
    """The last words of those that are open, and not silent for too long."""
    row = table_of(t.PRODUCER).c
    chosen = select(func.min(row.last)).where(row.closed_at.is_(None), row.last + patience(row) >= now)
    last = connection.scalar(chosen)
    return [] if last is None else [last]
