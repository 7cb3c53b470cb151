"""Runs the writer's pipelines from a source into fresh tables, with the writer's own rows, offsets and dead letters."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Protocol, TypeAlias

from headwater.consumers.replay.progress import PhaseProgress, ProgressListener
from headwater.consumers.replay.ranges import Positions, RangeSource
from headwater.consumers.retrying import StopRequested
from headwater.consumers.sources.api import CLOCK_SKEW_MICROS
from headwater.consumers.writer.coordinated import Coordinator, CoordinatorLimits
from headwater.consumers.writer.plain_pipeline import PlainPipeline
from headwater.consumers.writer.record_reader import MAX_INVALID
from headwater.consumers.writer.runner import Runner
from headwater.errors import ConfigurationError, TransientError
from headwater.events.clock import wall_micros
from headwater.lineage.bulk import BusPartition
from headwater.lineage.store import Store, StoreOptions

_SHOW_SECONDS: Final = 0.5


class ReplayInterrupted(TransientError):  # noqa: N818 - somebody asked for it
    """Somebody stopped the replay. The live store is as it was, and the same command goes on."""


@dataclass(frozen=True)
class PipelineSettings:
    """How events are written; the same as a writer's."""

    group: str = "headwater-writer"
    """The writer's consumer group, under which the store has its offsets."""
    batch: int = 10_000
    readers: int = 0
    """So many processes read events; 0: one process does everything."""
    buckets: int = 2
    most_invalid: int = MAX_INVALID


class BulkReader(Protocol):
    """Stores much of a source at once, by others than this process."""

    def read(self, source: RangeSource, end: Positions, report: Callable[[int], None]) -> int:
        """Store what a source has from the store's offsets up to `end`, and return how many events that were. `report`
        gets their number now and then. Raises StopRequested if it was stopped."""
        ...


BulkReaderMaker: TypeAlias = Callable[[Store, StoreOptions], BulkReader]


def _interrupted() -> ReplayInterrupted:
    return ReplayInterrupted(
        "the replay was stopped, and the live store is as it was: the same command goes on where this one ended"
    )


class Filler:
    """Fills one store, by one source after the other."""

    def __init__(
        self,
        store: Store,
        options: StoreOptions,
        settings: PipelineSettings,
        listener: ProgressListener,
        make_bulk_reader: BulkReaderMaker | None = None,
    ) -> None:
        """`options` are those of `store`."""
        self._bulk_reader = None if make_bulk_reader is None else make_bulk_reader(store, options)
        self._store = store
        self._options = options
        self._settings = settings
        self._listener = listener
        self._pipelines: dict[str, PlainPipeline] = {}
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
        self._begin(source, end, complete_until)
        if not source.lag() and not complete_until:
            return True
        runner = Runner(source, self._plain_pipeline(source), most=self._settings.batch, idle=0.02, until_end=True)
        return self._run(runner, source, phase, seconds)

    def read_much(self, source: RangeSource, end: Positions, phase: str) -> None:
        """Do the same with as many processes as the settings say, or by Spark."""
        if self._bulk_reader is not None:
            self._read_by_others(self._bulk_reader, source, end, phase)
            return
        if not self._settings.readers:
            self.read(source, end, phase)
            return
        self._begin(source, end, 0)
        if source.lag():
            self._run(self._coordinator(source), source, phase, None)

    def _read_by_others(self, reader: BulkReader, source: RangeSource, end: Positions, phase: str) -> None:
        self._begin(source, end, 0)
        if not source.lag():
            return
        try:
            self.events += read_with_progress(reader, source, end, phase, self._listener)
        except StopRequested:
            raise _interrupted() from None

    def _plain_pipeline(self, source: RangeSource) -> PlainPipeline:
        """Return the writer's pipeline of one process, for what a source gives. It is the same one each time, because
        it has learned the events by then: while writers wait, the last ones have to be quick."""
        known = self._pipelines.get(source.address)
        if known is None:
            settings = self._settings
            about = (settings.group, source.kind, source.topic)
            known = PlainPipeline(self._store.bulk, *about, most_invalid=settings.most_invalid)
            self._pipelines[source.address] = known
        return known

    def _begin(self, source: RangeSource, end: Positions, complete_until: int) -> None:
        source.read(self.positions(), end, complete_until)

    def _coordinator(self, source: RangeSource) -> Coordinator:
        settings = self._settings
        return Coordinator(
            source,
            self._store.bulk,
            self._options,
            settings.group,
            CoordinatorLimits(readers=settings.readers, buckets=settings.buckets),
            most=settings.batch,
            idle=0.02,
            until_end=True,
            most_invalid=settings.most_invalid,
        )

    def _run(self, runner: Runner | Coordinator, source: RangeSource, phase: str, seconds: float | None) -> bool:
        progress = PhaseProgress(phase, "events", source.lag())
        self._listener.show(progress)
        is_interrupted = asyncio.run(_run_watched(runner, source, progress, self._listener, seconds))
        self.events += runner.metrics.events
        progress.is_finished = True
        self._listener.show(progress)
        if is_interrupted:
            raise _interrupted()
        return source.lag() == 0


async def _run_watched(
    runner: Runner | Coordinator,
    source: RangeSource,
    progress: PhaseProgress,
    listener: ProgressListener,
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
        listener.show(progress)


def read_with_progress(
    reader: BulkReader, source: RangeSource, end: Positions, phase: str, listener: ProgressListener
) -> int:
    """Have a source read that knows what is left of it, and show how far that is. Return the number of events."""
    progress = PhaseProgress(phase, "events", source.lag())

    def report(done: int) -> None:
        progress.done = done
        listener.show(progress)

    report(0)
    events = reader.read(source, end, report)
    progress.is_finished = True
    report(events)
    return events


def ends_now(source: RangeSource) -> tuple[dict[BusPartition, int], int]:
    """Return where a source ends now, and up to which time it had nothing else."""
    asked = wall_micros()
    ends: Mapping[BusPartition, int] = {where: each.end for where, each in source.ranges().items()}
    return dict(ends), asked - CLOCK_SKEW_MICROS


def ends_until(source: RangeSource, until: datetime | None) -> dict[BusPartition, int]:
    """Return where a source ends now, or where it ended at a time."""
    ends, _ = ends_now(source)
    if until is None:
        return ends
    at = source.offsets_at(until)
    if at is None:
        raise ConfigurationError(f"{source.address} has no index of times: --until needs a Kafka topic")
    return {where: min(end, at.get(where, end)) for where, end in ends.items()}
