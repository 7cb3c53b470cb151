"""The listener bus: events go into the spool once, and from there to every listener at its own pace."""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from uuid import UUID

from headwater.errors import ConfigurationError, PluginError
from headwater.events.base import CountMap
from headwater.events.clock import moment_of, reset_after_fork, wall_micros
from headwater.events.envelope import Event
from headwater.events.names import JobName
from headwater.events.producer import Producer
from headwater.journal import StorageError
from headwater.listeners.bus.delivery import Delivery
from headwater.listeners.bus.event_emitter import EventEmitter
from headwater.listeners.bus.handover import hand_over, open_handover
from headwater.listeners.bus.listener_creation import (
    Isolation,
    ListenerSpec,
    configured_isolation,
    configured_listeners,
)
from headwater.listeners.bus.listener_worker import FlushWait, ListenerWorker, WorkerFlush, await_flushes
from headwater.listeners.bus.options import BusOptions
from headwater.listeners.bus.report import BusReport, ProgressSignal, ShipperReport, SpoolShipment
from headwater.listeners.bus.shipper import ShipperProcess
from headwater.listeners.bus.shipper.start import Orders, linger_seconds
from headwater.listeners.bus.spool import Spool, open_spool
from headwater.listeners.bus.spool_manifest import SpoolManifest
from headwater.listeners.metrics.exporter import MetricsExporter
from headwater.listeners.misspellings import find_misspellings
from headwater.listeners.redactors import make_redactor, read_hash_key
from headwater.listeners.settings import PREFIX, Settings, read_settings
from headwater.listeners.threads import PeriodicThread
from headwater.spi import Application

_LOG = logging.getLogger(__name__)
_CLOSE_SHARE, _LONGEST_CLOSE = 0.2, 0.5
_SHORTEST_CLOSE, _SHORTEST_SPOOL_CLOSE = 0.1, 0.2


class Bus:
    """Delivers events to the listeners that a configuration names. Thread-safe; no method raises."""

    def __init__(self, configuration: Mapping[str, str], application: Application, options: BusOptions) -> None:
        """Use `open`."""
        self.application = application
        self.settings, faults = read_settings(configuration)
        wanted, more = configured_listeners(self.settings)
        wanted = [spec for spec in wanted if options.only is None or spec.name in options.only]
        here, there, wrong = _divide(wanted, configuration, self.settings, options)
        redactor, bad_regex = make_redactor(configuration, read_hash_key(self.settings))
        strays = [ConfigurationError(words) for words in find_misspellings(configuration)]
        self._faults: tuple[ConfigurationError, ...] = (*faults, *strays, *more, *wrong, *bad_regex)
        self.producer = Producer(application.id, redactor=redactor, capture_sql=self.settings.capture_sql)
        self._options = options
        self._handover = open_handover(self.settings, options.connect)
        self._progress = ProgressSignal()
        self._is_inert = False
        self._spool_bytes = 0
        self._stopping = threading.Lock()
        self._is_stopped: bool | None = None
        self._emitter = EventEmitter(self.producer, self._open_spool([*here, *there]), self._offer)
        spool = self._emitter.spool
        self._delivery = Delivery(
            here,
            configuration,
            application,
            self.settings,
            options,
            clock=self.producer.clock,
            source=None if spool is None else spool.journal,
            handover=open_handover(self.settings, options.connect) if here and self._handover else None,
            has_queues=True,
            progress=self._progress,
            on_gap=self._emitter.emit_own_gap,
            on_known=self._on_known,
        )
        self._shipper = self._make_shipper(there, configuration)
        self._measure_spool()
        self._exporter = MetricsExporter(self.settings, application, self.report)
        self._maintenance = PeriodicThread("headwater-bus", self._maintain, options.keep_interval)
        reset_after_fork(self)

    @classmethod
    def open(
        cls, configuration: Mapping[str, str], application: Application, *, options: BusOptions | None = None
    ) -> Bus:
        """Open a bus for the flat configuration of a driver (`spark.*`).

        Each fault of the configuration is logged once and kept in `faults`; the rest of it is used. Listeners are
        loaded and created on threads of their own.
        """
        bus = cls(configuration, application, options or BusOptions())
        for fault in bus.faults:
            _LOG.warning("%s", fault)
        bus._start()
        return bus

    def _start(self) -> None:
        self._exporter.start()
        if not self._delivery.workers and self._shipper is None:
            _LOG.warning("%slisteners names no listener, so nothing that is captured is delivered: name one", PREFIX)
            return
        self._delivery.start()
        if self._shipper is not None:
            self._shipper.start()
        self._maintenance.start()

    @property
    def faults(self) -> tuple[ConfigurationError | PluginError, ...]:
        """Faults of the configuration known so far; listeners are created in the background and may add more."""
        return (*self._faults, *self._delivery.faults, *(self._shipper.faults if self._shipper else ()))

    @property
    def spool(self) -> Path | None:
        """The directory of this driver's spool, if it has one."""
        spool = self._emitter.spool
        return None if spool is None else spool.directory

    @property
    def metrics_url(self) -> str | None:
        """The URL of the metrics, if they are served."""
        return self._exporter.url

    def attribute(self, job: JobName | None, run: UUID | None) -> None:
        """Set the application's job and run, which the Gaps that the bus itself emits carry."""
        self._emitter.about = (job, run)

    def emit(self, draft: Event) -> tuple[Event, ...]:
        """Stamp a draft, append it to the spool and return the events; a large draft becomes several.

        Waits for no listener. Returns nothing if the spool refused it. Refused events are counted, and a Gap
        reports them once the spool takes records again.
        """
        if self._is_inert or self._is_stopped is not None:
            return ()
        return self._emitter.emit(draft)

    def dropped(self) -> CountMap:
        """Return how many events were dropped so far, by place, for Heartbeats."""
        listeners = self.report().listeners
        counts = {f"broken.{kind}": count for kind, count in list(self._emitter.broken.items())}
        counts["spool"] = self._emitter.refused.total
        counts |= {f"listener.{listener.name}": listener.missed for listener in listeners}
        counts |= {f"dead-letters.{listener.name}": listener.dead_letters for listener in listeners}
        return CountMap({where: count for where, count in counts.items() if count})

    def report(self) -> BusReport:
        """Report the state and counters of the bus and of each listener."""
        emitter, shipper = self._emitter, self._shipper
        listeners = (*self._delivery.report(), *(shipper.report() if shipper else ()))
        intake = emitter.report(self._spool_bytes)
        shipped = self._delivery.dead_spools.shipped + (shipper.shipped if shipper else 0)
        process = None if shipper is None else ShipperReport(shipper.pid, shipper.restarts)
        return BusReport(emitter.emitted, emitter.refused.total, self.spool, listeners, intake, shipped, process)

    def ship(self, timeout: float) -> int | None:
        """Wait until the spools of dead drivers are shipped, and return how many went; None after `timeout` seconds.

        The bus ships them anyway; this call only waits for it.
        """
        deadline = time.monotonic() + timeout
        looks = [self._delivery.dead_spools.looked] if self._delivery.workers else []
        looks += [self._shipper.has_looked] if self._shipper else []
        have_all_looked = all(look.wait(max(0.0, deadline - time.monotonic())) for look in looks)
        return self.report().shipped if have_all_looked else None

    @property
    def handover_files(self) -> tuple[str, ...]:
        """The files under `spool.handover` that aren't delivered yet, as far as this process looks there."""
        return () if (inbox := self._delivery.dead_spools.inbox) is None else inbox.names

    @property
    def handover_error(self) -> str:
        """Why they can't be taken up now; empty if they can."""
        return "" if (inbox := self._delivery.dead_spools.inbox) is None else inbox.error

    @property
    def shipping(self) -> SpoolShipment | None:
        """The dead driver's spool that is being delivered now, by this process."""
        return self._delivery.dead_spools.shipping

    def flush(self, timeout: float) -> bool:
        """Wait until every listener has acknowledged what was emitted so far; False if one hasn't in time.

        What isn't acknowledged stays in the spool for the next driver, so a `Closed` emitted now isn't complete.
        """
        if self._is_inert:
            return True
        flushes: list[FlushWait] = [WorkerFlush(worker, timeout) for worker in self._delivery.workers]
        flushes += self._shipper.flushes() if self._shipper else []
        return await_flushes(flushes, self._progress, timeout) and not self._emitter.refused.is_pending

    def stop(self, timeout: float) -> bool:
        """Deliver what can be delivered in `timeout` seconds, and stop. True if nothing is left.

        The next driver on this host, or one that reads the shared directory, delivers the rest. The hand-over has a
        timeout of its own.
        """
        if self._is_inert:
            return True
        with self._stopping:
            if self._is_stopped is None:
                self._is_stopped = False
                self._is_stopped = self._stop(time.monotonic() + timeout, timeout)
            return self._is_stopped

    def begin_in_child(self) -> None:
        """Turn the bus off in a forked child, which has none of its threads and must not touch the spool."""
        self._is_inert = True
        if self._shipper is not None:
            self._shipper.forget_in_child()

    def _offer(self, event: Event, size: int) -> None:
        self._delivery.offer(event, size)

    def _open_spool(self, wanted: list[ListenerSpec]) -> Spool | None:
        if not wanted:
            return None
        families = {spec.name: spec.families for spec in wanted}
        since = moment_of(self.producer.clock.now()).isoformat(timespec="seconds")
        manifest = SpoolManifest(self.application, self.producer.id, families, since=since)
        return open_spool(self.settings, manifest, self._options)

    def _make_shipper(self, specs: Sequence[ListenerSpec], configuration: Mapping[str, str]) -> ShipperProcess | None:
        spool = self._emitter.spool
        if not specs or spool is None:
            return None
        for spec in specs:  # from now on nothing is cut that it hasn't read
            spool.journal.cursor(spec.name).close()
        orders = Orders(
            configuration,
            self.application,
            spool.directory,
            tuple(spec.name for spec in specs),
            linger_seconds(self.settings.spool_linger),
            self._options,
        )
        return ShipperProcess(
            orders,
            specs,
            spool.journal,
            clock=self.producer.clock,
            record_ages=self._delivery.record_ages,
            progress=self._progress,
            on_gap=self._emitter.emit_own_gap,
            on_failed=spool.note_failed_listener,
        )

    def _on_known(self, worker: ListenerWorker) -> None:
        """Give up the spool where it isn't needed: a plain listener needs none. Called on the listener's thread."""
        spool = self._emitter.spool
        if worker.fault is not None and spool is not None:
            spool.note_failed_listener(worker.name)
        if worker.durable is not False or spool is None:
            return
        with contextlib.suppress(StorageError):
            spool.journal.forget_cursor(worker.name)
        are_all_plain = self._shipper is None and all(worker.durable is False for worker in self._delivery.workers)
        if are_all_plain and (spool := self._emitter.take_spool()):
            spool.close(_LONGEST_CLOSE)
            spool.remove()

    def _maintain(self) -> None:
        self._measure_spool()
        if (spool := self._emitter.spool) is not None:
            spool.note_refused(self._emitter.refused.total)
            spool.keep()

    def _measure_spool(self) -> None:
        """Measure the spool for later reports, which must not wait for a disk."""
        spool = self._emitter.spool
        self._spool_bytes = 0 if spool is None else spool.journal.size
        if spool is not None:
            self._delivery.record_ages.record(spool.journal.next_offset, wall_micros())

    def _stop(self, deadline: float, timeout: float) -> bool:
        share = min(_LONGEST_CLOSE, _CLOSE_SHARE * timeout)
        if self._exporter.is_enabled:
            share += min(_LONGEST_CLOSE, _CLOSE_SHARE * timeout)
        self._delivery.begin_stop(deadline - share)
        self._maintenance.stop(share)
        if (spool := self._emitter.spool) is not None:
            spool.note_refused(self._emitter.refused.total)
        is_released = self._shipper is None or self._shipper.stop(deadline - share)
        came_back = self._delivery.stop(deadline - share)
        is_done = self._leave_spool(deadline) and came_back and is_released
        if self._shipper is not None:
            self._shipper.leave()
        report = self.report()
        if not (is_done and report.is_delivered):
            _LOG.warning("not everything was delivered: %s", report)
        self._exporter.stop(max(_SHORTEST_CLOSE, deadline - time.monotonic()))
        return is_done and report.is_delivered

    def _leave_spool(self, deadline: float) -> bool:
        """Close the spool, and remove it or hand it over, for which there is time of its own; whether everything in it
        is delivered."""
        spool, handover = self._emitter.spool, self._handover
        until = time.monotonic() + self.settings.spool_handover_timeout
        try:
            is_delivered = spool is None or spool.is_delivered()
            is_closed = spool is None or spool.close(max(_SHORTEST_SPOOL_CLOSE, deadline - time.monotonic()))
        except StorageError as e:
            _LOG.warning("closing the spool failed: %s", e)
            is_delivered = is_closed = False
        if spool is not None and is_closed and is_delivered:
            spool.remove()
        elif spool is not None and is_closed and handover is not None:
            handover.until(until)
            hand_over(spool.directory, handover, self._options.files)
        self._delivery.dead_spools.give_back(until)
        if handover is not None:
            handover.close()
        return is_delivered


def _divide(
    wanted: Sequence[ListenerSpec], configuration: Mapping[str, str], settings: Settings, options: BusOptions
) -> tuple[list[ListenerSpec], list[ListenerSpec], list[ConfigurationError]]:
    """The listeners that work in this process and those that work in the shipper, and what is wrong with that.

    Spools that are handed over by Hadoop are taken up by the driver's JVM, so there listeners work beside it.
    """
    here: list[ListenerSpec] = []
    there: list[ListenerSpec] = []
    faults: list[ConfigurationError] = []
    for spec in wanted:
        isolation = Isolation.THREAD
        if options.has_shipper and settings.handover_uri is None:
            try:
                isolation = configured_isolation(spec.item, configuration)
            except ConfigurationError as e:
                faults.append(ConfigurationError(f"{e}; what holds now is the default"))
                isolation = configured_isolation(spec.item, {})
        (there if isolation is Isolation.PROCESS else here).append(spec)
    return here, there, faults
