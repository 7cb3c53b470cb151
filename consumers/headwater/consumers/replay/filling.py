"""Runs the writer's pipelines from a source into fresh tables, with the writer's own rows, offsets and dead letters."""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, Protocol, TypeAlias

from headwater.consumers.replay.ranges import Positions, RangeSource
from headwater.consumers.retrying import StopRequested
from headwater.consumers.sources.api import CLOCK_SKEW_MICROS
from headwater.consumers.writer.pipeline import Pipeline
from headwater.consumers.writer.processes.process_pipeline import ProcessPipeline
from headwater.consumers.writer.routes import MAIN_STORE
from headwater.consumers.writer.runner import Runner
from headwater.consumers.writer.store_pipeline import StorePipeline
from headwater.errors import ConfigurationError, TransientError
from headwater.events.clock import wall_micros
from headwater.lineage.bulk import BusPartition
from headwater.lineage.store import Store, StoreOptions

_SHOW_SECONDS: Final = 0.5
_IDLE_SECONDS: Final = 0.02


class ReplayInterrupted(TransientError):  # noqa: N818 - somebody asked for it
    """Somebody stopped the replay. The live store is as it was, and the same command goes on."""

    def __init__(self) -> None:
        super().__init__(
            "the replay was stopped, and the live store is as it was: the same command goes on where this one ended"
        )


@dataclass(frozen=True)
class ReplaySettings:
    """What a replay does, and how events are written; the latter is the same as a writer's."""

    group: str = "headwater-writer"
    """The writer's consumer group, under which the store has its offsets."""
    batch: int = 10_000
    processes: int = 1
    """With more than one, so many processes read events, and others write rows."""
    switches: bool = True
    """Whether the fresh tables take the place of the live ones."""
    accept_loss: bool = False
    """Go on although events would be lost."""
    purge: bool = False
    """Purge the fresh tables, because the live ones were."""
    until: datetime | None = None
    """Read what was appended before this time, for a new store."""
    pause_seconds: float = 10.0
    """How long writers of the live store may have to wait."""


@dataclass
class PhaseProgress:
    """How far one phase of a replay is, and how long it will take."""

    phase: str
    unit: str
    """What is counted: `events` or `rows`."""
    total: int = 0
    done: int = 0
    is_finished: bool = False
    began: float = field(default_factory=time.monotonic)

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.began

    @property
    def rate(self) -> float:
        """So many a second, since the phase began."""
        return self.done / self.seconds if self.seconds > 0 else 0.0

    @property
    def seconds_left(self) -> float | None:
        """None as long as nothing is known."""
        return None if not self.done else max(0, self.total - self.done) / self.rate


ShowProgress: TypeAlias = Callable[[PhaseProgress], None]
"""Shows progress to somebody: called every half second, and at the begin and end of each phase."""


class BulkReader(Protocol):
    """Stores much of a source at once, by others than this process."""

    def read(self, source: RangeSource, end: Positions, report: Callable[[int], None]) -> int:
        """Store what a source has from the store's offsets up to `end`, and return how many events that were. `report`
        gets their number now and then. Raises StopRequested if it was stopped."""
        ...


BulkReaderMaker: TypeAlias = Callable[[Store, StoreOptions], BulkReader]


class Filler:
    """Fills one store, by one source after the other."""

    def __init__(
        self,
        store: Store,
        options: StoreOptions,
        settings: ReplaySettings,
        show: ShowProgress,
        make_bulk_reader: BulkReaderMaker | None = None,
    ) -> None:
        """`options` are those of `store`."""
        self._bulk_reader = None if make_bulk_reader is None else make_bulk_reader(store, options)
        self._store = store
        self._options = options
        self._settings = settings
        self._show = show
        self._pipelines: dict[str, StorePipeline] = {}
        """By the addresses of sources."""
        self.events = 0
        """Events that were stored, dead letters among them."""

    def positions(self) -> Positions:
        """Return the offsets up to which everything is stored."""
        return self._store.bulk.offsets(self._settings.group)

    def read(
        self, source: RangeSource, end: Positions, phase: str, *, complete_until: int = 0, seconds: float | None = None
    ) -> bool:
        """Read a source from where the store is up to these offsets. Return False if that wasn't reached in so many
        seconds."""
        source.read(self.positions(), end, complete_until)
        if not source.lag() and not complete_until:
            return True
        return self._run(source, self._store_pipeline(source), phase, seconds)

    def read_much(self, source: RangeSource, end: Positions, phase: str) -> None:
        """Do the same with as many processes as the settings say, or by Spark."""
        if self._bulk_reader is None and self._settings.processes == 1:
            self.read(source, end, phase)
            return
        source.read(self.positions(), end)
        if not source.lag():
            return
        if self._bulk_reader is None:
            self._run(source, self._process_pipeline(source), phase)
            return
        try:
            self.events += read_with_progress(self._bulk_reader, source, end, phase, self._show)
        except StopRequested:
            raise ReplayInterrupted from None

    def _store_pipeline(self, source: RangeSource) -> StorePipeline:
        """Return the writer's pipeline of one process, for what a source gives. It is the same one each time, because
        it has learned the events by then: while writers wait, the last ones have to be quick."""
        known = self._pipelines.get(source.address)
        if known is None:
            known = StorePipeline({MAIN_STORE: self._store.bulk}, self._settings.group, source.kind, source.topic)
            self._pipelines[source.address] = known
        return known

    def _process_pipeline(self, source: RangeSource) -> ProcessPipeline:
        about = (self._settings.group, source.kind, source.topic)
        return ProcessPipeline(self._store.bulk, self._options, *about, processes=self._settings.processes)

    def _run(self, source: RangeSource, pipeline: Pipeline, phase: str, seconds: float | None = None) -> bool:
        """Run a pipeline from where the source stands."""
        runner = Runner(source, pipeline, most=self._settings.batch, idle=_IDLE_SECONDS, until_end=True)
        progress = PhaseProgress(phase, "events", source.lag())
        self._show(progress)
        is_interrupted = asyncio.run(_run_watched(runner, source, progress, self._show, seconds))
        self.events += runner.metrics.events
        progress.is_finished = True
        self._show(progress)
        if is_interrupted:
            raise ReplayInterrupted
        return source.lag() == 0


async def _run_watched(
    runner: Runner,
    source: RangeSource,
    progress: PhaseProgress,
    show: ShowProgress,
    seconds: float | None,
) -> bool:
    """Return whether somebody asked the process to stop."""
    loop, asked = asyncio.get_running_loop(), list[signal.Signals]()

    def stop(number: signal.Signals) -> None:
        asked.append(number)
        runner.stop()

    with suppress(RuntimeError, ValueError):  # only the main thread hears signals
        for each in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(each, stop, each)
    if seconds is not None:
        loop.call_later(seconds, runner.stop)
    running = asyncio.ensure_future(runner.run())
    while True:
        done, _ = await asyncio.wait([running], timeout=_SHOW_SECONDS)
        unstored = runner.metrics.polled - runner.metrics.events
        progress.done = max(progress.done, progress.total - source.lag() - unstored)
        if done:
            await running
            return bool(asked)
        show(progress)


def read_with_progress(reader: BulkReader, source: RangeSource, end: Positions, phase: str, show: ShowProgress) -> int:
    """Have a source read that knows what is left of it, and show how far that is. Return the number of events."""
    return with_progress(phase, "events", source.lag(), show, lambda report: reader.read(source, end, report))


def with_progress(
    phase: str, unit: str, total: int, show: ShowProgress, work: Callable[[Callable[[int], None]], int]
) -> int:
    """Show how far some work is, which reports what is done, and return what it returns."""
    progress = PhaseProgress(phase, unit, total)

    def report(done: int) -> None:
        progress.done = done
        show(progress)

    report(0)
    done = work(report)
    progress.is_finished = True
    report(done)
    return done


def ends_now(source: RangeSource) -> tuple[dict[BusPartition, int], int]:
    """Return where a source ends now, and up to which time it had nothing else."""
    asked = wall_micros()
    return {where: each.end for where, each in source.ranges().items()}, asked - CLOCK_SKEW_MICROS


def ends_until(source: RangeSource, until: datetime | None) -> dict[BusPartition, int]:
    """Return where a source ends now, or where it ended at a time."""
    ends, _ = ends_now(source)
    if until is None:
        return ends
    at = source.offsets_at(until)
    if at is None:
        raise ConfigurationError(f"{source.address} has no index of times: --until needs a Kafka topic")
    return {where: min(end, at.get(where, end)) for where, end in ends.items()}
