"""Delivers one spool, and what dead drivers left, to a set of listeners: their workers, and the shipper of dead spools.

A driver has one for the listeners on its own threads, and its shipper process has one for all others.

Dead letters of listeners: events that a listener's target refuses for ever, kept beside the spools.

Each listener's are a local log of its own, `dead-letters/NAME` in the directory of spools: the same bytes, key and
headers, and why. So `headwater events cat` shows them, and whatever reads a local log can take them up.
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from headwater.errors import ConfigurationError, HeadwaterError, PluginError
from headwater.events.avro import Codec
from headwater.events.envelope import Event
from headwater.events.health import Gap, GapReason
from headwater.events.keys import KIND
from headwater.events.redaction import redacted_excerpt
from headwater.journal import DeadLetterLog, Files, JournalEntry, JournalRecord, StorageError
from headwater.listeners.bus.dead_spool_delivery import DeadSpoolDelivery, DeadSpoolTargets
from headwater.listeners.bus.durations import RecordAges
from headwater.listeners.bus.gap_tracker import GapTracker, LostRange, SpoolSource
from headwater.listeners.bus.handover import Handover
from headwater.listeners.bus.listener_calls import StopSignal
from headwater.listeners.bus.listener_creation import ListenerFactoryRunner, ListenerSpec
from headwater.listeners.bus.listener_worker import ListenerWorker, stop_workers
from headwater.listeners.bus.options import BusOptions
from headwater.listeners.bus.queue_dispatcher import QueueDispatcher
from headwater.listeners.bus.report import ListenerMeter, ListenerReport, ProgressSignal
from headwater.listeners.bus.spool import spool_places
from headwater.listeners.bus.spool_dispatcher import SpoolDispatcher
from headwater.listeners.settings import Settings
from headwater.spi import Application, Clock

DIRECTORY: Final = "dead-letters"
_MAX_BYTES: Final = 256 << 20
_MAX_WHY: Final = 1_000


class DeadLetterStore:
    """Keeps what listeners refuse, in the first of these places that takes it."""

    def __init__(self, places: Callable[[], Iterable[Path]], files: Files) -> None:
        self._places = places
        self._files = files

    def keep(self, listener: str, record: JournalRecord, why: str) -> Path:
        """Write one record to the disk, and return the log that it is in. A HeadwaterError where no place takes it."""
        fault: HeadwaterError = StorageError("there is no directory for dead letters")
        entry = JournalEntry(record.value, record.key, record.headers)
        for place in self._places():
            directory = place / DIRECTORY / listener
            try:
                DeadLetterLog(directory, max_bytes=_MAX_BYTES, files=self._files).keep(
                    [(entry, redacted_excerpt(why, _MAX_WHY))]
                )
            except HeadwaterError as e:
                fault = e
            else:
                return directory
        raise fault


def refused_gap(listener: str, record: JournalRecord, why: str, directory: Path) -> Gap | None:
    """The Gap that says what the listener doesn't get; None for a Gap that was refused itself, or there is no end."""
    if dict(record.headers).get(KIND) == Gap.__name__.encode():
        return None
    event = _decode(record)
    gap = Gap(
        reason=GapReason.OTHER,
        detail=f"listener {listener} refuses an event for ever, and goes on without it: {why}; it is in {directory}",
        listener=listener,
        missed=1,
    )
    if event is None:
        return gap
    update = {
        "missed_family": event.family,
        "missed_producer": event.producer,
        "first_sequence": event.sequence,
        "last_sequence": event.sequence,
        "first_family_sequence": event.family_sequence,
        "last_family_sequence": event.family_sequence,
        "first_time": event.time,
        "last_time": event.time,
    }
    return gap.model_copy(update=update)


def _decode(record: JournalRecord) -> Event | None:
    try:
        decoded = Codec().decode(record.value)
    except HeadwaterError:
        return None
    return decoded if isinstance(decoded, Event) else None


_LOG = logging.getLogger(__name__)


class Delivery:
    """Thread-safe; no method raises."""

    def __init__(
        self,
        specs: Sequence[ListenerSpec],
        configuration: Mapping[str, str],
        application: Application,
        settings: Settings,
        options: BusOptions,
        *,
        clock: Clock,
        source: SpoolSource | None,
        handover: Handover | None,
        has_queues: bool,
        progress: ProgressSignal,
        on_gap: Callable[[Gap], object],
        on_known: Callable[[ListenerWorker], None],
    ) -> None:
        """`source` is the spool of the driver that lives; `has_queues` says whether there can be plain listeners."""
        self.record_ages = RecordAges()
        self._settings = settings
        self._options = options
        self._source = source
        self._has_queues = has_queues
        self._progress = progress
        self._on_gap = on_gap
        self._report_known = on_known
        self._lost: Counter[str] = Counter()
        self._refused: Counter[str] = Counter()
        self._dead_letters = DeadLetterStore(lambda: spool_places(settings, make=True), options.files)
        self.workers = [
            self._make_worker(ListenerFactoryRunner(spec, configuration, application, clock)) for spec in specs
        ]
        self.dead_spools = self._make_dead_spool_delivery(handover)

    def start(self) -> None:
        for worker in self.workers:
            worker.start()
        if self.workers:
            self.dead_spools.start()

    @property
    def faults(self) -> tuple[ConfigurationError | PluginError, ...]:
        """Why listeners can't be created, as far as it is known."""
        return tuple(worker.fault for worker in self.workers if worker.fault is not None)

    @property
    def refused(self) -> Mapping[str, int]:
        """Events that went to dead letters, by listener."""
        return dict(self._refused)

    def report(self) -> tuple[ListenerReport, ...]:
        """Report each listener, with what it received from dead drivers' spools and what it lost from any spool."""
        return tuple(self._complete(worker.report()) for worker in self.workers)

    def offer(self, event: Event, size: int) -> None:
        """Offer an event that is in the spool to plain listeners. Neither waits nor raises."""
        for worker in self.workers:
            if (queue_dispatcher := worker.queue_dispatcher) is not None and event.family in worker.families:
                queue_dispatcher.offer(event, size)

    def begin_stop(self, deadline: float) -> None:
        """Let the shipper of dead spools come to an end."""
        self.dead_spools.begin_stop(deadline)

    def stop(self, deadline: float) -> bool:
        """Deliver what can be delivered until then, and stop; whether all threads ended."""
        came_back = stop_workers(self.workers, deadline)
        self.dead_spools.join(deadline - time.monotonic())
        for worker in self.workers:
            worker.release_cursor()
        return came_back

    def _complete(self, one: ListenerReport) -> ListenerReport:
        acknowledged = one.acknowledged + self.dead_spools.acknowledged[one.name]
        return replace(one, acknowledged=acknowledged, lost=self._lost[one.name], dead_letters=self._refused[one.name])

    def _make_worker(self, factory_runner: ListenerFactoryRunner) -> ListenerWorker:
        name = factory_runner.spec.name
        meter, stop = ListenerMeter(factory_runner.errors), StopSignal()
        queue = QueueDispatcher(name, self._options, meter=meter, stop=stop, progress=self._progress)
        return ListenerWorker(
            factory_runner,
            self._options,
            meter=meter,
            stop=stop,
            progress=self._progress,
            spool_dispatcher=self._make_spool_dispatcher(factory_runner, meter, stop),
            queue_dispatcher=queue if self._has_queues else None,
            on_known=self._on_known,
        )

    def _make_spool_dispatcher(
        self, factory_runner: ListenerFactoryRunner, meter: ListenerMeter, stop: StopSignal
    ) -> SpoolDispatcher | None:
        name, source = factory_runner.spec.name, self._source
        if source is None:
            return None
        try:
            cursor = source.cursor(name)
        except StorageError as e:
            _LOG.warning("listener %s can't read the spool: %s", name, e)
            return None
        return SpoolDispatcher(
            name,
            source,
            cursor,
            factory_runner.spec.families,
            self._options,
            meter=meter,
            stop=stop,
            progress=self._progress,
            on_lost=self._on_lost,
            on_refused=self._on_refused,
            record_ages=self.record_ages,
        )

    def _make_dead_spool_delivery(self, handover: Handover | None) -> DeadSpoolDelivery:
        settings, options = self._settings, self._options
        return DeadSpoolDelivery(
            lambda: tuple(spool_places(settings)),
            self._targets,
            options,
            handover=handover,
            fsync=settings.spool_fsync,
            limit=None if options.dead_spools is None else options.dead_spools * settings.spool_max_bytes,
            on_lost=self._on_lost,
            on_refused=self._on_refused,
            on_gap=self._on_gap,
        )

    def _targets(self) -> DeadSpoolTargets:
        durable = {worker.name: worker.factory_runner for worker in self.workers if worker.durable}
        plain = frozenset(worker.name for worker in self.workers if worker.durable is False)
        are_all = all(worker.is_known for worker in self.workers)
        return DeadSpoolTargets(durable, plain, are_all=are_all, configured=frozenset(self._settings.listener_names))

    def _on_lost(self, listener: str, tracker: GapTracker, lost_range: LostRange) -> None:
        """Called on a listener's thread."""
        if (gap := tracker.gap(listener, lost_range)) is not None:
            self._lost[listener] += gap.missed or 0
            _LOG.warning("listener %s missed up to %s events: %s", listener, gap.missed, gap.detail)
            self._on_gap(gap)

    def _on_refused(self, listener: str, record: JournalRecord, why: str) -> None:
        """Called on a listener's thread."""
        directory = self._dead_letters.keep(listener, record, why)
        self._refused[listener] += 1
        _LOG.warning("listener %s refuses an event for ever: %s; it is in %s", listener, why, directory)
        if (gap := refused_gap(listener, record, why, directory)) is not None:
            self._on_gap(gap)

    def _on_known(self, worker: ListenerWorker) -> None:
        """Called on the listener's thread once it is known what it is, or that it can't be created."""
        self.dead_spools.wake()
        if worker.durable is False:
            worker.release_cursor()
            worker.spool_dispatcher = None
        self._report_known(worker)
