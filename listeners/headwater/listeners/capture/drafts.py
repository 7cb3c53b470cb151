"""What is handed on to the stage that knows jobs: events that don't say yet whose they are, and how to find that."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias
from uuid import UUID

from headwater.events import Event
from headwater.events.jobs import DatasetRef
from headwater.listeners.attribution import Client
from headwater.listeners.capture.records import Record
from headwater.listeners.jobs.query_runs import QueryStart
from headwater.listeners.jobs.run_end import RunEnd


@dataclass(frozen=True, slots=True)
class Owner:
    """What the job and run of drafts are found by."""

    record: Record
    sink: str | None = None
    """What the statement writes first, by name."""
    query_run: UUID | None = None
    """The run of the streaming query that it is a part of."""
    is_session: bool = False
    """Drafts are the client's session's, not a job's in it."""


@dataclass(frozen=True, slots=True)
class OwnedDrafts:
    owner: Owner
    events: Iterable[Event]
    """In order. Each is made when the one before it was emitted."""


@dataclass(frozen=True, slots=True)
class QueryBegin:
    run: UUID
    start: QueryStart


@dataclass(frozen=True, slots=True)
class QueryEnd:
    run: UUID
    end: RunEnd


@dataclass(frozen=True, slots=True)
class SessionEnd:
    client: Client


Translated: TypeAlias = OwnedDrafts | QueryBegin | QueryEnd | SessionEnd


def name_of(place: DatasetRef) -> str | None:
    """What the job of a write is called after: the table, else the dataset by a name that people can read."""
    if place.table is not None:
        return str(place.table)
    return None if place.dataset is None else place.dataset.short_name
