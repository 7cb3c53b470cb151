"""The listener bus: events go into the spool once, and from there to every listener at its own pace."""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from uuid import UUID

from headwater.errors import ConfigurationError, PluginError
from headwater.events.base import Counts
from headwater.events.clock import moment_of, wall_micros
from headwater.events.envelope import Event
from headwater.events.forks import watch
from headwater.events.names import JobName
from headwater.events.producer import Producer
from headwater.journal import StorageError
from headwater.listeners.bus.ages import Ages
from headwater.listeners.bus.calls import Stop
from headwater.listeners.bus.dead import Shipper, Targets
from headwater.listeners.bus.handed import Handed
from headwater.listeners.bus.handing import Handing
from headwater.listeners.bus.holes import Hole, Holes
from headwater.listeners.bus.lane import Lane, await_all, stop_all
from headwater.listeners.bus.leaving import leave_spool
from headwater.listeners.bus.making import Maker, Wanted, wanted_listeners
from headwater.listeners.bus.options import BusOptions
from headwater.listeners.bus.passport import Passport
from headwater.listeners.bus.report import BusReport, ListenerReport, Meter, Progress, Shipping
from headwater.listeners.bus.secrets import redactor_of
from headwater.listeners.bus.sharing import Sharing
from headwater.listeners.bus.spool import Spool, open_spool, spool_places
from headwater.listeners.bus.teller import Teller
from headwater.listeners.bus.telling import Telling
from headwater.listeners.metrics.exposing import Exposure
from headwater.listeners.misspelt import misspelt
from headwater.listeners.settings import PREFIX, read_settings
from headwater.listeners.threads import Rounds
from headwater.spi import Application

_LOG = logging.getLogger(__name__)
_CLOSE_SHARE, _LONGEST_CLOSE = 0.2, 0.5
_SHORTEST_CLOSE = 0.1


class Bus:
    """Tells events to the listeners that a configuration asks for. For any thread; none of its methods raises."""

    def __init__(self, configuration: Mapping[str, str], application: Application, options: BusOptions) -> None:
        """Use `open`."""
        self.application = application
        self.settings, faults = read_settings(configuration)
        wanted, more = wanted_listeners(self.settings)
        redactor, bad_regex = redactor_of(configuration)
        strays = [ConfigurationError(words) for words in misspelt(configuration)]
        self._faults: tuple[ConfigurationError, ...] = (*faults, *strays, *more, *bad_regex)
        self.producer = Producer(application.id, redactor=redactor, capture_sql=self.settings.capture_sql)
        self._options = options
        self._sharing = Sharing(self.settings, options.connect)
        self._progress = Progress()
        self._is_inert = False
        self._ages = Ages()
        self._lost: Counter[str] = Counter()
        self._spool_bytes = 0
        self._stopping = threading.Lock()
        self._is_stopped: bool | None = None
        self._teller = Teller(self.producer, self._open_spool(wanted), self._offer)
        self._lanes = [self._lane(Maker(each, configuration, application, self.producer.clock)) for each in wanted]
        self._shipper = self._make_shipper()
        self._look_at_spool()
        self._exposure = Exposure(self.settings, application, self.report)
        self._keeper = Rounds("headwater-bus", self._keep, options.keep_interval)
        watch(self)

    @classmethod
    def open(
        cls, configuration: Mapping[str, str], application: Application, *, options: BusOptions | None = None
    ) -> Bus:
        """A bus for the flat configuration of a driver (`spark.*`). What is wrong in it is in the log, each fault once,
        and in `faults`; the rest is used. Listeners are loaded and made on threads of their own."""
        bus = cls(configuration, application, options or BusOptions())
        for fault in bus.faults:
            _LOG.warning("%s", fault)
        bus._start()
        return bus

    def _start(self) -> None:
        self._exposure.start()
        if not self._lanes:
            _LOG.warning("%slisteners names no listener: whatever is captured is told to nobody", PREFIX)
            return
        for lane in self._lanes:
            lane.start()
        self._shipper.start()
        self._keeper.start()

    @property
    def faults(self) -> tuple[ConfigurationError | PluginError, ...]:
        """What is wrong with the configuration, as far as it is known by now: listeners are made in the background."""
        return (*self._faults, *(lane.fault for lane in self._lanes if lane.fault is not None))

    @property
    def spool(self) -> Path | None:
        """Where this driver's spool is, if it has one."""
        spool = self._teller.spool
        return None if spool is None else spool.directory

    @property
    def metrics_url(self) -> str | None:
        """Where metrics are served, if they are."""
        return self._exposure.url

    def attribute(self, job: JobName | None, run: UUID | None) -> None:
        """The job and run of the application: Gaps that the bus tells itself are about them."""
        self._teller.about = (job, run)

    def tell(self, draft: Event) -> tuple[Event, ...]:
        """Stamp a draft and put it on its way; what was stamped, in parts where it is large. Waits for no listener.

        Nothing is returned where the spool refused it: that is counted, and told as a Gap once it takes records again.
        """
        if self._is_inert or self._is_stopped is not None:
            return ()
        return self._teller.tell(draft)

    def dropped(self) -> Counts:
        """How much was dropped so far, by where, for Heartbeats."""
        counts = {f"broken.{kind}": count for kind, count in list(self._teller.broken.items())}
        counts["spool"] = self._teller.refused.total
        counts |= {f"listener.{each.name}": each.missed for each in self.report().listeners}
        return Counts({where: count for where, count in counts.items() if count})

    def report(self) -> BusReport:
        """How the bus and each of its listeners are doing."""
        teller, shipper = self._teller, self._shipper
        listeners = tuple(self._with_dead(lane.report()) for lane in self._lanes)
        intake = teller.report(self._spool_bytes)
        return BusReport(teller.told, teller.refused.total, self.spool, listeners, intake, shipper.shipped)

    def ship(self, timeout: float) -> int | None:
        """Wait until what dead drivers left is shipped, as far as its listeners are here and take it; how many spools
        went. None if that takes longer. Nobody has to ask: it is what the bus does anyway."""
        return self._shipper.shipped if self._shipper.looked.wait(timeout) else None

    @property
    def handed(self) -> tuple[Handed, ...]:
        """What is in the shared directory, where that is no path of this machine, and hasn't been taken up."""
        return self._shipper.handed

    @property
    def taking_trouble(self) -> str:
        """Why what is there can't be taken up now."""
        return self._shipper.trouble

    @property
    def shipping(self) -> Shipping | None:
        """The spool of a dead driver that is being delivered right now."""
        return self._shipper.shipping

    def flush(self, timeout: float) -> bool:
        """Wait until every listener has dealt with what was told so far; False if one hasn't. Then it is left in the
        spool for the next driver, unless it is dealt with after this: a `Closed` told now isn't complete."""
        if self._is_inert:
            return True
        return await_all(self._lanes, self._progress, timeout) and not self._teller.refused.is_pending

    def stop(self, timeout: float) -> bool:
        """Deliver what can be delivered in that many seconds, and end. True if nothing is left: else the next driver on
        this host, or whoever looks into the shared directory, delivers the rest. Handing over has time of its own."""
        if self._is_inert:
            return True
        with self._stopping:
            if self._is_stopped is None:
                self._is_stopped = False
                self._is_stopped = self._stop(time.monotonic() + timeout, timeout)
            return self._is_stopped

    def begin_in_child(self) -> None:
        """A forked child has none of the threads, and no business with the spool."""
        self._is_inert = True

    def _with_dead(self, one: ListenerReport) -> ListenerReport:
        """With what it was handed of dead drivers' spools, and what it lost of any."""
        acknowledged = one.acknowledged + self._shipper.acknowledged[one.name]
        return replace(one, acknowledged=acknowledged, lost=self._lost[one.name])

    def _offer(self, event: Event, size: int) -> None:
        for lane in self._lanes:
            if (telling := lane.telling) is not None and event.family in lane.families:
                telling.offer(event, size)

    def _open_spool(self, wanted: list[Wanted]) -> Spool | None:
        if not wanted:
            return None
        families = {each.name: each.families for each in wanted}
        since = moment_of(self.producer.clock.now()).isoformat(timespec="seconds")
        passport = Passport(self.application, self.producer.id, families, since=since)
        return open_spool(self.settings, passport, self._options)

    def _lane(self, maker: Maker) -> Lane:
        name = maker.wanted.name
        meter, stop = Meter(maker.errors), Stop()
        return Lane(
            maker,
            self._options,
            meter=meter,
            stop=stop,
            progress=self._progress,
            handing=self._handing(maker, meter, stop),
            telling=Telling(name, self._options, meter=meter, stop=stop, progress=self._progress),
            on_known=self._on_known,
        )

    def _handing(self, maker: Maker, meter: Meter, stop: Stop) -> Handing | None:
        name, spool = maker.wanted.name, self._teller.spool
        if spool is None:
            return None
        try:
            cursor = spool.journal.cursor(name)
        except StorageError as e:
            _LOG.warning("listener %s can't read the spool: %s", name, e)
            return None
        return Handing(
            name,
            spool.journal,
            cursor,
            maker.wanted.families,
            self._options,
            meter=meter,
            stop=stop,
            progress=self._progress,
            on_lost=self._on_lost,
            ages=self._ages,
        )

    def _make_shipper(self) -> Shipper:
        settings = self.settings
        return Shipper(
            lambda: tuple(spool_places(settings)),
            self._targets,
            self._options,
            shared=self._sharing.path,
            taker=self._sharing.taker,
            fsync=settings.spool_fsync,
            limit=None if self._options.dead_spools is None else self._options.dead_spools * settings.spool_max_bytes,
            on_lost=self._on_lost,
            on_gap=self._teller.tell_own,
        )

    def _targets(self) -> Targets:
        durable = {lane.name: lane.maker for lane in self._lanes if lane.durable}
        plain = frozenset(lane.name for lane in self._lanes if lane.durable is False)
        are_all = all(lane.is_known for lane in self._lanes)
        return Targets(durable, plain, are_all=are_all, configured=frozenset(lane.name for lane in self._lanes))

    def _on_lost(self, listener: str, holes: Holes, hole: Hole) -> None:
        """Called on a listener's thread."""
        if (gap := holes.gap(listener, hole)) is not None:
            self._lost[listener] += gap.missed or 0
            _LOG.warning("listener %s missed up to %s events: %s", listener, gap.missed, gap.detail)
            self._teller.tell_own(gap)

    def _on_known(self, lane: Lane) -> None:
        """Called on a listener's thread: a plain one needs no spool, and when all are plain nobody does."""
        self._shipper.wake()
        spool = self._teller.spool
        if lane.fault is not None and spool is not None:
            spool.note_unmade(lane.name)
        if lane.durable is not False or spool is None:
            return
        lane.leave_spool()
        lane.handing = None
        with contextlib.suppress(StorageError):
            spool.journal.forget_cursor(lane.name)
        if all(each.durable is False for each in self._lanes) and (spool := self._teller.take_spool()):
            spool.close(_LONGEST_CLOSE)
            spool.remove()

    def _keep(self) -> None:
        self._look_at_spool()
        if (spool := self._teller.spool) is not None:
            spool.note_refused(self._teller.refused.total)
            spool.keep()

    def _look_at_spool(self) -> None:
        """On behalf of whoever asks for a report, which must not wait for a disk."""
        spool = self._teller.spool
        self._spool_bytes = 0 if spool is None else spool.journal.size
        if spool is not None:
            self._ages.note(spool.journal.next_offset, wall_micros())

    def _stop(self, deadline: float, timeout: float) -> bool:
        share = min(_LONGEST_CLOSE, _CLOSE_SHARE * timeout)
        if self._exposure.is_wanted:
            share += min(_LONGEST_CLOSE, _CLOSE_SHARE * timeout)
        self._shipper.begin_stop(deadline - share)
        self._keeper.stop(share)
        if (spool := self._teller.spool) is not None:
            spool.note_refused(self._teller.refused.total)
        came_back = stop_all(self._lanes, deadline - share)
        self._shipper.join(deadline - share - time.monotonic())
        for lane in self._lanes:
            lane.leave_spool()
        self._sharing.begin_stop()
        is_done = leave_spool(self._teller.spool, self._sharing.hand_over, deadline) and came_back
        self._shipper.give_back()
        self._sharing.close()
        report = self.report()
        if not (is_done and report.is_delivered):
            _LOG.warning("not everything was delivered: %s", report)
        self._exposure.stop(max(_SHORTEST_CLOSE, deadline - time.monotonic()))
        return is_done and report.is_delivered
