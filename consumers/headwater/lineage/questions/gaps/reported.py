"""Gaps that events report.

Catalogs whose lineage options were declared in two ways: they are immutable, so the first declaration holds.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from typing import Any

from sqlalchemy import Connection, select

from headwater.lineage.questions.gaps.model import GapCause, GapFilter, PossibleGap, format_job, time_of, uuid_of
from headwater.lineage.rows import tables as t
from headwater.lineage.rows.tombstones import SWITCHES
from headwater.lineage.sql.tables import table_of


@dataclass(frozen=True)
class CatalogOption:
    """An option of a catalog, with the values that drivers declared; the first one holds."""

    catalog: str
    name: str
    declared: Sequence[Any]

    @property
    def value(self) -> str:
        return str(self.declared[0].value)


def load_switches(connection: Connection) -> list[CatalogOption]:
    """Return the options that switch lineage off, of each catalog."""
    row = table_of(t.CATALOG_OPTION).c
    columns = (row.catalog_id, row.catalog, row.name, row.value, row.first, row.last, row.id)
    found = connection.execute(select(*columns).where(row.name.in_(SWITCHES))).all()
    ordered = sorted(found, key=lambda switch: (*_of_one(switch), switch.first, bytes(switch.id)))
    declared = (tuple(rows) for _, rows in groupby(ordered, _of_one))
    return [CatalogOption(rows[0].catalog or "", rows[0].name, _once(rows)) for rows in declared]


def _of_one(row: Any) -> tuple[bytes, str, str]:
    """A catalog is what it points at; one of which that isn't known is its name."""
    return bytes(row.catalog_id or b""), "" if row.catalog_id else row.catalog or "", row.name


def _once(rows: Sequence[Any]) -> Sequence[Any]:
    """Leave out what says under another name of the catalog what was said before."""
    values = [switch.value for switch in rows]
    return tuple(switch for n, switch in enumerate(rows) if switch.value not in values[:n])


def find_contradicting_options(connection: Connection, filters: GapFilter) -> Iterator[PossibleGap]:
    """Yield a gap for each value that was declared later than another one.

    A driver that says false leaves out what others report; what one reports that says true isn't shown.
    """
    contradicting = [switches for switches in load_switches(connection) if len(switches.declared) > 1]
    used = _used_catalogs(connection, filters) if contradicting else None
    for switches in contradicting:
        if used is not None and switches.catalog not in used:
            continue
        for later in switches.declared[1:]:
            is_early = filters.since is not None and later.last < filters.since
            if is_early or (filters.until is not None and later.first > filters.until):
                continue
            yield PossibleGap(
                GapCause.OPTION,
                f"catalog {switches.catalog}: a driver has {switches.name}={later.value}, and {switches.value} was "
                "declared first, which holds",
                time_of(later.first),
                time_of(later.last),
                reason="CATALOG_OPTION",
            )


def _used_catalogs(connection: Connection, filters: GapFilter) -> set[str] | None:
    """Return the names of the catalogs that a question concerns; None for all."""
    if filters.datasets is not None:
        alias = table_of(t.ALIAS).c
        return set(connection.scalars(select(alias.catalog).where(alias.dataset.in_(filters.datasets)).distinct()))
    if filters.job is not None:
        return set(connection.scalars(filters.of_job("catalog").distinct()))
    return None


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
