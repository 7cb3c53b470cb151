"""Producers whose heartbeats stopped."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from sqlalchemy import Connection, func, select

from headwater.lineage.questions.gaps.model import (
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
