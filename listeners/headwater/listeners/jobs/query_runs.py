"""The runs of streaming queries: each start of one, which belongs to the application or block that started it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from uuid import UUID

from headwater.events.jobs import StartPosition, StreamDetails
from headwater.events.names import JobName


@dataclass(frozen=True, kw_only=True)
class QueryStart:
    """What is known of a query that runs."""

    stream: StreamDetails
    session: Mapping[str, str] = field(default_factory=dict)
    """What the session that started it says that the application doesn't say."""
    tags: Iterable[str] = ()
    """Job tags of the thread that started it."""
    starts_at: tuple[StartPosition, ...] = ()


@dataclass(eq=False)
class QueryRun:
    """A query that was started: a run of its job."""

    job: JobName
    run: UUID
    parent_job: JobName
    parent_run: UUID
    has_ended: bool = False
