"""`with job("orders_etl"):` for users: what is done inside belongs to that job."""

from __future__ import annotations

import functools
import inspect
import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Final, Literal, ParamSpec, TypeVar
from uuid import UUID

from headwater.errors import ConfigurationError
from headwater.events.jobs import LineageRetention, StartPosition
from headwater.listeners.jobs.job_run_tracker import JobRunTracker
from headwater.listeners.jobs.run_end import ENDED, RunEnd, run_end_of
from headwater.listeners.jobs.runs import BlockRun
from headwater.listeners.settings import parse_on_end

_LOG = logging.getLogger(__name__)
P = ParamSpec("P")
R = TypeVar("R")


def job(
    name: str,
    *,
    namespace: str | None = None,
    tags: Mapping[str, str] | None = None,
    on_end: Literal["keep", "delete-table", "delete-all"] | None = None,
    starts_at: Sequence[StartPosition] = (),
) -> JobBlock:
    """What is done inside the block, by the thread that entered it, is reported as this job's; also a decorator.

        with headwater.listeners.job("orders_etl", tags={"team": "sales"}):
            spark.sql("INSERT INTO …")

        @headwater.listeners.job("orders_etl")
        def load() -> None: …

    Each entry is a run of its own. Blocks nest, and the innermost one counts. A thread started inside belongs to the
    block if it is a `pyspark.InheritableThread`; any thread can enter one itself. In a driver without headwater
    nothing happens. `on_end` is what becomes of the job's lineage when the run ends, in place of
    `spark.headwater.lineage.on-job-end`. `starts_at` is where the run begins to read its sources, if it knows.
    """
    _check_names(name, namespace)
    return JobBlock(
        name,
        namespace,
        {str(key): str(value) for key, value in dict(tags or {}).items()},
        _parse_on_end(on_end),
        tuple(starts_at),
    )


def _check_names(name: object, namespace: object) -> None:
    if not isinstance(name, str) or not name.strip():
        raise ConfigurationError(f"a job can't be called {name!r}: give it a name, as in job('orders_etl')")
    if namespace is not None and not isinstance(namespace, str):
        raise ConfigurationError(f"a namespace of jobs can't be {namespace!r}: it is a text, as in namespace='sales'")


def _parse_on_end(on_end: str | None) -> LineageRetention | None:
    try:
        return None if on_end is None else parse_on_end(on_end)
    except ValueError as e:
        raise ConfigurationError(f"on_end {e}") from None


class JobBlock:
    """Made by `job`."""

    def __init__(
        self,
        name: str,
        namespace: str | None,
        tags: Mapping[str, str],
        on_end: LineageRetention | None = None,
        starts_at: tuple[StartPosition, ...] = (),
    ) -> None:
        self.name = name
        self.namespace = namespace
        self.tags = tags
        self.on_end = on_end
        self.starts_at = starts_at
        self._entries: list[BlockEntry] = []

    def __enter__(self) -> BlockEntry:
        entry = BlockEntry(self)
        self._entries.append(entry)
        _thread_entries().append(entry)
        entry.begin(_trackers[-1] if _trackers else None)
        return entry

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> Literal[False]:
        entry = self._entries.pop()
        here = _thread_entries()
        if entry in here:
            here.remove(entry)
        entry.end(run_end_of(error))
        return False

    def __call__(self, function: Callable[P, R]) -> Callable[P, R]:
        """Each call of the function is a run of the job."""
        if inspect.iscoroutinefunction(function) or inspect.isgeneratorfunction(function):
            raise ConfigurationError(
                f"{function.__qualname__} comes back before its work is done, so job({self.name!r}) can't be put on "
                "it: write a with-block inside"
            )

        @functools.wraps(function)
        def inside(*args: P.args, **kwargs: P.kwargs) -> R:
            with JobBlock(self.name, self.namespace, self.tags, self.on_end, self.starts_at):
                return function(*args, **kwargs)

        return inside


class BlockEntry:
    """A block that was entered. `run` is its run, None where no headwater is at work."""

    def __init__(self, job_block: JobBlock) -> None:
        self._job_block = job_block
        self._tracker: JobRunTracker | None = None
        self._block: BlockRun | None = None

    @property
    def run(self) -> UUID | None:
        return None if self._block is None else self._block.run

    def begin(self, tracker: JobRunTracker | None) -> None:
        """Nothing that goes wrong here is the user's business."""
        self._tracker = tracker
        self._block = None
        try:
            if tracker is not None:
                job_block = self._job_block
                self._block = tracker.enter(
                    job_block.name, job_block.namespace, job_block.tags, job_block.on_end, job_block.starts_at
                )
        except Exception as e:  # noqa: BLE001
            _LOG.warning("the block %r can't be recorded: %s: %s", self._job_block.name, type(e).__name__, e)

    def end(self, end: RunEnd) -> None:
        try:
            if self._tracker is not None and self._block is not None:
                self._tracker.leave(self._block, end)
        except Exception as e:  # noqa: BLE001
            _LOG.debug("the end of the block %r: %s: %s", self._job_block.name, type(e).__name__, e)


_trackers: Final[list[JobRunTracker]] = []
"""Of the contexts that headwater is in; a process has one at a time, or for a moment two."""
_local: Final = threading.local()


def attach(tracker: JobRunTracker) -> None:
    """From now on blocks are this tracker's."""
    _trackers.append(tracker)


def restart_open_blocks(tracker: JobRunTracker) -> None:
    """The blocks that the calling thread is in began before there was this tracker: now they begin here."""
    for entry in list(_thread_entries()):
        entry.end(ENDED)
        entry.begin(tracker)


def detach(tracker: JobRunTracker) -> None:
    if tracker in _trackers:
        _trackers.remove(tracker)


def forget() -> None:
    """In a forked child nothing is at work."""
    _trackers.clear()
    _thread_entries().clear()


def _thread_entries() -> list[BlockEntry]:
    if not hasattr(_local, "entries"):
        _local.entries = []
    entries: list[BlockEntry] = _local.entries
    return entries
