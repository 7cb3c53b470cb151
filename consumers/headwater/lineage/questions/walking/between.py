"""Edges between tables, of many tables at once."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from sqlalchemy import Connection, select

from headwater.lineage.questions.walking.limits import Limits
from headwater.lineage.questions.walking.tombs import visible_edges
from headwater.lineage.rows import tables as t
from headwater.lineage.sql.among import among
from headwater.lineage.sql.tables import table_of


def edges_between(
    connection: Connection,
    datasets: Collection[bytes],
    limits: Limits,
    *,
    upward: bool,
    as_of: int,
    job: str | None = None,
) -> list[Any]:
    """Those that were told up to a time, by a job and its steps if one is given, and aren't deleted."""
    row = table_of(t.TABLE_EDGE).c
    wanted = select(*(column for column in row if column.name != "id"))
    wanted = wanted.where(row.last > row.deleted, row.first <= as_of)
    if job is not None:
        wanted = wanted.where((row.job == job) | (row.parent_job == job))
    return visible_edges(
        connection, list(among(connection, wanted, row.target if upward else row.source, datasets)), limits
    )
