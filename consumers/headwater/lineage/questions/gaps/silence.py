"""Producers whose heartbeats stopped, and split events whose parts didn't all arrive."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from sqlalchemy import Connection, case, func, select

from headwater.lineage.questions.gaps.model import (
    SETTLE_MICROS,
    GapCause,
    GapFilter,
    PossibleGap,
    format_job,
    time_of,
    uuid_of,
)
from headwater.lineage.rows import tables as t
from headwater.lineage.sql.tables import table_of

BEAT_SECONDS: Final = 60
"""The heartbeat interval of a producer that didn't report one."""
MISSED: Final = 3
"""How many heartbeats may be missing before a producer is considered dead."""


def silence_limit(row: Any) -> Any:
    """Return an expression: how long a producer may be silent, in microseconds."""
    return MISSED * 1_000_000 * func.coalesce(row.heartbeat_seconds, BEAT_SECONDS)


def find_silent_producers(connection: Connection, filters: GapFilter) -> Iterator[PossibleGap]:
    row = table_of(t.PRODUCER).c
    chosen = select(row.producer, row.application, row.job_namespace, row.job, row.run, row.last)
    chosen = chosen.where(row.closed_at.is_(None), row.last + silence_limit(row) < filters.now)
    if filters.until is not None:
        chosen = chosen.where(row.last <= filters.until)
    if filters.since is not None:
        chosen = chosen.where(row.last >= filters.since)
    if filters.applications is not None:
        chosen = chosen.where(row.application.in_(filters.applications))
    for producer in connection.execute(chosen.order_by(row.last)):
        yield PossibleGap(
            GapCause.SILENCE,
            "its heartbeats stopped, and it never closed: what it did after that is unknown",
            time_of(producer.last),
            producer=uuid_of(producer.producer),
            application=producer.application,
            run=uuid_of(producer.run),
            job=format_job(producer.job_namespace, producer.job),
        )


def find_missing_parts(connection: Connection, filters: GapFilter) -> Iterator[PossibleGap]:
    part, beat = table_of(t.EVENT_PART).c, table_of(t.PRODUCER)
    origin = (beat.c.application, beat.c.job_namespace, beat.c.job, beat.c.run)
    came, first, last = func.count(), func.min(part.first), func.max(part.last)
    of_parts, kind = func.max(part.part_count), func.max(part.kind)
    is_whole = case((came == of_parts, 1), else_=0)
    event = (part.producer, part.first_sequence)
    parts = (
        select(*event, came.label("came"), first.label("since"), last.label("until"))
        .add_columns(of_parts.label("of"), kind.label("kind"))
        .group_by(*event)
        .having(is_whole == 0, last <= filters.now - SETTLE_MICROS, *filters.in_time(first, last))
    )
    if filters.applications is not None:
        mine = select(beat.c.producer).where(beat.c.application.in_(filters.applications))
        parts = parts.where(part.producer.in_(mine))
    chosen = parts.subquery()
    joined = select(chosen, *origin).outerjoin_from(chosen, beat, beat.c.producer == chosen.c.producer)
    for assembly in connection.execute(joined.order_by(chosen.c.since, chosen.c.first_sequence)):
        yield PossibleGap(
            GapCause.PARTS,
            f"{assembly.came} of the {assembly.of} parts of a {assembly.kind} came",
            time_of(assembly.since),
            time_of(assembly.until),
            count=assembly.of - assembly.came,
            producer=uuid_of(assembly.producer),
            application=assembly.application,
            run=uuid_of(assembly.run),
            job=format_job(assembly.job_namespace, assembly.job),
        )
