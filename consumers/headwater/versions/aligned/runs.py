"""Reports a run of an aligned job, with where it begins to read: the PIP-5 table `job_startup` shows that.

In a driver with headwater's listeners they report it, like any run. In one without, it goes into the store directly.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import Final
from uuid import UUID

from headwater.events.clock import uuid7
from headwater.events.envelope import Event
from headwater.events.jobs import (
    ErrorDetails,
    JobStarted,
    JobStatus,
    JobStatusChanged,
    JobType,
    RunScope,
    StartPosition,
)
from headwater.events.names import JobName
from headwater.events.producer import Producer
from headwater.lineage.mapping import map_event
from headwater.lineage.store import Store
from headwater.listeners import job


@contextmanager
def report_run(store: Store, name: str, starts_at: tuple[StartPosition, ...]) -> Generator[None]:
    """Report that a job runs inside the block, and how it ended."""
    with job(name, starts_at=starts_at) as entry:
        if entry.run is not None:
            yield
            return
        own = _StoredRun(store, name)
        own.begin(starts_at)
        try:
            yield
        except BaseException as e:
            own.end(JobStatus.FAILED if isinstance(e, Exception) else JobStatus.KILLED, e)
            raise
        own.end(JobStatus.FINISHED, None)


class _StoredRun:
    """A run whose events go into the store."""

    def __init__(self, store: Store, name: str) -> None:
        self._store: Final = store
        self._job: Final = JobName(name=name)
        self._run: Final[UUID] = uuid7()
        self._producer: Final = Producer()

    def begin(self, starts_at: tuple[StartPosition, ...]) -> None:
        start = JobStarted(
            job=self._job, run=self._run, job_type=JobType.STREAMING, scope=RunScope.BLOCK, starts_at=starts_at
        )
        self._emit(start)
        self._emit(JobStatusChanged(job=self._job, run=self._run, status=JobStatus.RUNNING))

    def end(self, status: JobStatus, error: BaseException | None) -> None:
        details = None if error is None else ErrorDetails(type=f"{type(error).__module__}.{type(error).__qualname__}")
        self._emit(JobStatusChanged(job=self._job, run=self._run, status=status, error=details))

    def _emit(self, draft: Event) -> None:
        self._producer.emit(draft, lambda event, _: self._store.merge(map_event(event)))
