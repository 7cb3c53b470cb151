"""Events as a producer emits them: in order, counted, with times in minutes after noon."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any, TypeVar
from uuid import UUID

from sqlalchemy import Connection

from headwater.events import DatasetId, Event, EventFamily, JobName, TableName
from headwater.lineage.bulk import merge_rows
from headwater.lineage.mapping import map_event

NOON = datetime.fromisoformat("2026-03-01T12:00:00+00:00")
E = TypeVar("E", bound=Event)


def at(minutes: float) -> datetime:
    return NOON + timedelta(minutes=minutes)


def dataset(name: str) -> DatasetId:
    return DatasetId(namespace="s3://lake", name=f"w/{name}")


def place(name: str, **more: Any) -> dict[str, Any]:
    """A table of the lake, in its first generation."""
    table = TableName(catalog="lake", database="sales", table=name)
    return {"dataset": dataset(name), "table": table, "generation": "1", **more}


class ScriptedProducer:
    """A producer. What it emits is kept in `events`; what is lost takes a number all the same."""

    def __init__(self, number: int, job: str = "etl", run: int | None = None) -> None:
        self.id = UUID(int=number)
        self.run = UUID(int=run or 1000 + number)
        self.job = JobName(name=job)
        self.events: list[Event] = []
        self._sequence = 0
        self._family = dict.fromkeys(EventFamily, 0)

    def emit(self, minutes: float, kind: type[E], **fields: Any) -> E:
        event = self._next(minutes, kind, fields)
        self.events.append(event)
        return event

    def lose(self, minutes: float, kind: type[E], **fields: Any) -> E:
        return self._next(minutes, kind, fields)

    def _next(self, minutes: float, kind: type[E], fields: dict[str, Any]) -> E:
        self._sequence += 1
        self._family[kind.family] += 1
        envelope: dict[str, Any] = {
            "producer": self.id,
            "sequence": self._sequence,
            "family_sequence": self._family[kind.family],
            "time": at(minutes),
            "application": f"app-{self.id.int}",
            "run": self.run,
            "job": self.job,
        }
        return kind(**{**envelope, **fields})


def store(connection: Connection, *sources: ScriptedProducer | Iterable[Event]) -> None:
    for each in sources:
        events = each.events if isinstance(each, ScriptedProducer) else each
        merge_rows(connection, [row for event in events for row in map_event(event)])
