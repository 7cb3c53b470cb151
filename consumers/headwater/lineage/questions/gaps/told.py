"""Gaps that somebody told."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, select

from headwater.lineage.questions.gaps.missing import Asked, Cause, Missing, job_text, uuid_of, when
from headwater.lineage.rows import tables as t
from headwater.lineage.sql.tables import table_of


def told(connection: Connection, asked: Asked) -> Iterator[Missing]:
    """A gap without bounds of its own is one of the moment at which it was told."""
    gap, dataset = table_of(t.GAP), table_of(t.DATASET)
    chosen = select(gap, dataset.c.namespace, dataset.c.name)
    chosen = chosen.outerjoin_from(gap, dataset, gap.c.dataset == dataset.c.id)
    if asked.since is not None:  # it is told when it is over
        chosen = chosen.where(gap.c.time >= asked.since)
    if asked.job is not None:
        chosen = chosen.where(gap.c.job_namespace == asked.job[0], gap.c.job == asked.job[1])
    if asked.datasets is not None:
        chosen = chosen.where(gap.c.dataset.in_(asked.datasets))
    for each in connection.execute(chosen.order_by(gap.c.time, gap.c.producer, gap.c.sequence)):
        found = _missing(each)
        if asked.until is None or found.since is None or found.since <= (when(asked.until) or found.since):
            yield found


def _missing(row: Any) -> Missing:
    bounds = json.loads(row.bounds) if row.bounds else {}
    at = when(row.time)
    reason = str(row.reason)
    return Missing(
        Cause.TOLD,
        row.detail or reason.replace("_", " ").lower(),
        _moment(bounds.get("first_time")) or at,
        _moment(bounds.get("last_time")) or at,
        reason=reason,
        count=bounds.get("missed"),
        producer=uuid_of(row.producer),
        family=bounds.get("missed_family"),
        run=uuid_of(row.run),
        job=job_text(row.job_namespace, row.job),
        dataset=None if row.namespace is None else f"{row.namespace}/{row.name.lstrip('/')}",
        branch=(bounds.get("source") or {}).get("branch"),
    )


def _moment(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text.replace("Z", "+00:00"))
