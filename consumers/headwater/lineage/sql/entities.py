"""The entities of the store's interface, selected out of its rows."""

from __future__ import annotations

from typing import Any, cast

from sqlalchemy import Select, select

from headwater.lineage.predicates import Predicate
from headwater.lineage.sql.conditions import Conditions
from headwater.lineage.sql.seed_rows import data_rows, table_rows


def tables(side: str, predicate: Predicate | None, dialect: str) -> Select[Any]:
    """job, database, table, create_time: a row for each job and table."""
    return _meant(table_rows(side), predicate, dialect)


def data(side: str, predicate: Predicate | None, dialect: str) -> Select[Any]:
    """The same with barrier_id and snapshot_id: a row for each job, barrier and table."""
    return _meant(data_rows(side), predicate, dialect)


def _meant(rows: Select[Any], predicate: Predicate | None, dialect: str) -> Select[Any]:
    found = rows.subquery()
    chosen = cast("Select[Any]", select(*found.c))
    return chosen if predicate is None else chosen.where(Conditions(dialect, dict(found.c)).of(predicate))
