"""Gaps that events report."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, select

from headwater.lineage.questions.gaps.model import GapCause, GapFilter, PossibleGap, format_job, time_of, uuid_of
from headwater.lineage.rows import tables as t
from headwater.lineage.sql.tables import table_of


def find_reported_gaps(connection: Connection, filters: GapFilter) -> Iterator[PossibleGap]:
    """Yield them. A gap without times of its own has the time of its event."""
    gap, dataset = table_of(t.GAP), table_of(t.DATASET)
    chosen = select(gap, dataset.c.namespace, dataset.c.name)
    chosen = chosen.outerjoin_from(gap, dataset, gap.c.dataset == dataset.c.id)
    if filters.since is not None:  # a gap is reported when it is over
        chosen = chosen.where(gap.c.time >= filters.since)
    if filters.job is not None:
        chosen = chosen.where(gap.c.job_namespace == filters.job[0], gap.c.job == filters.job[1])
    if filters.datasets is not None:
        chosen = chosen.where(gap.c.dataset.in_(filters.datasets))
    for reported in connection.execute(chosen.order_by(gap.c.time, gap.c.producer, gap.c.sequence)):
        found = _possible_gap(reported)
        if filters.until is None or found.since is None or found.since <= (time_of(filters.until) or found.since):
            yield found


def _possible_gap(row: Any) -> PossibleGap:
    bounds = json.loads(row.bounds) if row.bounds else {}
    at = time_of(row.time)
    reason = str(row.reason)
    return PossibleGap(
        GapCause.REPORTED,
        row.detail or reason.replace("_", " ").lower(),
        _moment(bounds.get("first_time")) or at,
        _moment(bounds.get("last_time")) or at,
        reason=reason,
        count=bounds.get("missed"),
        producer=uuid_of(row.producer),
        family=bounds.get("missed_family"),
        run=uuid_of(row.run),
        job=format_job(row.job_namespace, row.job),
        dataset=None if row.namespace is None else f"{row.namespace}/{row.name.lstrip('/')}",
        branch=(bounds.get("source") or {}).get("branch"),
    )


def _moment(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text.replace("Z", "+00:00"))
