"""Heartbeats that stopped, and events of which a part never came."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from sqlalchemy import Connection, case, func, select

from headwater.lineage.questions.gaps.missing import SETTLED, Asked, Cause, Missing, job_text, uuid_of, when
from headwater.lineage.rows import tables as t
from headwater.lineage.sql.tables import table_of

BEAT_SECONDS: Final = 60
"""What a producer promises that has not said how often it will be heard."""
MISSED: Final = 3
"""So many heartbeats may be missed before a producer is taken for dead."""


def patience(row: Any) -> Any:
    """How long a producer may be silent, in microseconds: an expression over its row."""
    return MISSED * 1_000_000 * func.coalesce(row.beat_seconds, BEAT_SECONDS)


def silences(connection: Connection, asked: Asked) -> Iterator[Missing]:
    row = table_of(t.PRODUCER).c
    chosen = select(row.producer, row.application, row.job_namespace, row.job, row.run, row.last)
    chosen = chosen.where(row.closed_at.is_(None), row.last + patience(row) < asked.now)
    if asked.until is not None:
        chosen = chosen.where(row.last <= asked.until)
    if asked.since is not None:
        chosen = chosen.where(row.last >= asked.since)
    if asked.applications is not None:
        chosen = chosen.where(row.application.in_(asked.applications))
    for each in connection.execute(chosen.order_by(row.last)):
        yield Missing(
            Cause.SILENCE,
            "its heartbeat stopped, and it never closed: what it did after that isn't known",
            when(each.last),
            producer=uuid_of(each.producer),
            application=each.application,
            run=uuid_of(each.run),
            job=job_text(each.job_namespace, each.job),
        )


def parts(connection: Connection, asked: Asked) -> Iterator[Missing]:
    part, beat = table_of(t.PART).c, table_of(t.PRODUCER)
    whose = (beat.c.application, beat.c.job_namespace, beat.c.job, beat.c.run)
    came, first, last = func.count(), func.min(part.first), func.max(part.last)
    of_parts, kind = func.max(part.of_parts), func.max(part.kind)
    is_whole = case((came == of_parts, 1), else_=0)
    event = (part.producer, part.first_sequence)
    chosen = (
        select(*event, came.label("came"), first.label("since"), last.label("until"))
        .add_columns(of_parts.label("of"), kind.label("kind"))
        .group_by(*event)
        .having(is_whole == 0, last <= asked.now - SETTLED, *asked.in_time(first, last))
        .subquery()
    )
    joined = select(chosen, *whose).outerjoin_from(chosen, beat, beat.c.producer == chosen.c.producer)
    if asked.applications is not None:
        joined = joined.where(beat.c.application.in_(asked.applications))
    for each in connection.execute(joined.order_by(chosen.c.since, chosen.c.first_sequence)):
        yield Missing(
            Cause.PARTS,
            f"{each.came} of the {each.of} parts of a {each.kind} came",
            when(each.since),
            when(each.until),
            count=each.of - each.came,
            producer=uuid_of(each.producer),
            application=each.application,
            run=uuid_of(each.run),
            job=job_text(each.job_namespace, each.job),
        )
