"""Events of one run in short, and the rows that they become whatever the order."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from itertools import permutations
from typing import Any
from uuid import UUID

from headwater.events import (
    DatasetId,
    Event,
    JobName,
    TableName,
)
from headwater.lineage.mapping import map_event
from headwater.lineage.rows import Row, RowSet
from headwater.testing.examples import CONTEXT

NOON = datetime.fromisoformat("2026-03-01T12:00:00+00:00")
MINUTE = timedelta(minutes=1)
P, Q = UUID(int=1), UUID(int=2)
ORDERS = DatasetId(namespace="file", name="/w/orders")
DAILY = DatasetId(namespace="file", name="/w/daily")
NAME = TableName(catalog="lake", database="sales", table="orders")
RUN = UUID(int=7)
JOB = JobName(name="etl")


def at(minutes: float, sequence: int, producer: UUID = P) -> dict[str, Any]:
    return {
        "time": NOON + minutes * MINUTE,
        "producer": producer,
        "sequence": sequence,
        "family_sequence": sequence,
        "job": JOB,
        "run": RUN,
    }


def rows(kind: str, *reported: Event) -> list[Row]:
    """Those of a kind that are there in the end, having seen that no order makes a difference."""
    states = [state_of(order) for order in permutations(reported)]
    assert len({state.digest() for state in states}) == 1
    return [row for row in states[0].rows() if row.kind.name == kind]


def state_of(reported: Iterable[Event]) -> RowSet:
    state = RowSet()
    for event in reported:
        state.merge(map_event(event))
    return state


def of_table(kind: type[Any], minutes: float, sequence: int, **more: Any) -> Any:
    reported = {"context": CONTEXT, "identifier": NAME, "dataset": ORDERS, **at(minutes, sequence), **more}
    return kind(**reported)


def columns(row: Row) -> dict[str, Any]:
    """By their names."""
    kind = row.kind
    values = dict(zip((field.name for field in (*kind.key, *kind.maxima)), (*row.key, *row.maxima), strict=True))
    for group, reported in zip(kind.groups, row.groups, strict=True):
        if reported is not None:
            values.update(zip((field.name for field in group.columns), reported.values, strict=True))
    return values
