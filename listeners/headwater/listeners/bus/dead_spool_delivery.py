"""Ships the spools of dead drivers: finds them, appends the ends of their runs, and delivers them.

One spool at a time, with a new instance of each listener. A spool is removed once all its listeners acknowledged it; if
some aren't configured here it waits for a driver that has them. Unshipped spools may take a bounded amount of disk:
above it the oldest one is removed, and a Gap reports that. Files that drivers handed over are delivered the same way.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from headwater.errors import HeadwaterError
from headwater.events.envelope import EventFamily
from headwater.events.health import Gap, GapReason
from headwater.journal import (
    Fsync,
    Journal,
    JournalOptions,
    LockedError,
    find_orphans,
    remove_journal,
    remove_remains,
)
from headwater.listeners.bus.gap_tracker import SpoolSource
from headwater.listeners.bus.handover import Handover
from headwater.listeners.bus.handover_file import HandoverFile
from headwater.listeners.bus.handover_inbox import HandoverInbox
from headwater.listeners.bus.listener_calls import StopSignal
from headwater.listeners.bus.listener_creation import ListenerFactoryRunner
from headwater.listeners.bus.listener_worker import ListenerWorker, stop_workers
from headwater.listeners.bus.options import BusOptions
from headwater.listeners.bus.producer_progress import PROGRESS_CURSOR, append_run_ends
from headwater.listeners.bus.report import ListenerMeter, ProgressSignal, SpoolShipment
from headwater.listeners.bus.spool_dispatcher import OnRefused, SpoolDispatcher
from headwater.listeners.bus.spool_listing import describe_stranded, size_of, waiting_listeners
from headwater.listeners.bus.spool_manifest import ALL_FAMILIES, read_manifest
from headwater.listeners.bus.spool_reader import OnLost
from headwater.listeners.threads import PeriodicThread

_LOG = logging.getLogger(__name__)
_STOP_SECONDS = 5.0
_LAST_SECONDS = 1.0


@dataclass(frozen=True)
class DeadSpoolTargets:
    """The listeners to which dead drivers' spools can be shipped now."""

    durable: Mapping[str, ListenerFactoryRunner]
    plain: Collection[str] = field(default_factory=frozenset)
    """Listeners that need no spool: one that is kept for them only is kept for nobody."""
    are_all: bool = True
    """False while it isn't known yet of every listener what it is: too early to let anything go."""
    configured: Collection[str] = field(default_factory=frozenset)
    """All that the configuration names, those too that can't be made."""


class DeadSpoolDelivery:
    """Looks for dead drivers' spools at its start and periodically, and ships them."""

    def __init__(
        self,
        places: Callable[[], Collection[Path]],
        targets: Callable[[], DeadSpoolTargets],
        options: BusOptions,
        *,
        handover: Handover | None,
        fsync: Fsync,
        limit: int | None,
        on_lost: OnLost,
        on_refused: OnRefused,
        on_gap: Callable[[Gap], object],
    ) -> None:
        self.shipped = 0
        self.acknowledged: Counter[str] = Counter()
        """Events of dead drivers that listeners answered for, by the listener's name."""
        self.inbox = None if handover is None else HandoverInbox(handover)
        self.looked = threading.Event()
        """Set once all that there was when it began, and that could be shipped, is."""
        self._places = places
        self._targets = targets
        self._options = options
        self._fsync = fsync
        self._limit = limit
        self._on_lost = on_lost
        self._on_refused = on_refused
        self._on_gap = on_gap
        self._stranded: set[str] = set()
        self._now: tuple[Path, list[ListenerWorker]] | None = None
        self._is_stopping = False
        self._deadline = float("inf")
        self._progress = ProgressSignal()
        self._rounds = PeriodicThread("headwater-dead-spools", self.look, options.look_interval, at_once=True)

    @property
    def shipping(self) -> SpoolShipment | None:
        """The spool that is being shipped right now."""
        now = self._now
        return None if now is None else SpoolShipment(now[0], tuple(worker.report() for worker in now[1]))

    def start(self) -> None:
        self._rounds.start()

    def wake(self) -> None:
        """There is a listener to ship to that wasn't there before."""
        self._rounds.wake()

    def begin_stop(self, deadline: float) -> None:
        """Go on for a moment; a job doesn't end later because of what others left. The next driver does the rest."""
        self._deadline = min(deadline, time.monotonic() + _LAST_SECONDS)
        self._is_stopping = True
        self._rounds.stop()
        self._progress.notify()

    def join(self, timeout: float) -> bool:
        return self._rounds.stop(timeout)

    def look(self) -> None:
        """Ship what there is, once."""
        targets, spools = self._targets(), self._find_spools()
        for spool in spools:
            if self._is_stopping:
                return
            self._ship_quietly(spool, targets)
        self._warn_stranded(spools, targets)
        self._ship_handover_files(targets)
        for place in dict.fromkeys(self._places()):
            remove_remains(place)
        if targets.are_all:
            self._make_room()
            self.looked.set()

    def give_back(self, deadline: float) -> None:
        """After `join`: what was taken up and isn't delivered is somebody else's again."""
        if self.inbox is not None and self._rounds.stop():
            self.inbox.close(deadline)

    def _find_spools(self) -> list[Path]:
        """The oldest first."""
        found = [spool for place in dict.fromkeys(self._places()) for spool in find_orphans(place)]
        return sorted(filter(self._options.is_ours, found), key=_last_modified)

    def _ship_handover_files(self, targets: DeadSpoolTargets) -> None:
        """Ship one file after the other, but none for listeners that took nothing of another one just now."""
        wanted = {*targets.durable}
        for name, size in self.inbox.look().items() if self.inbox is not None else ():
            if self._is_stopping or self.inbox is None:
                return
            if self._options.is_ours(Path(name)) and (file := self.inbox.take(name, size, wanted)) is not None:
                wanted -= self._ship_file(self.inbox, file, targets)

    def _ship_file(self, inbox: HandoverInbox, file: HandoverFile, targets: DeadSpoolTargets) -> set[str]:
        """The listeners here that still haven't got all of it."""
        names = sorted(_lagging_listeners(file) & {*targets.durable})
        _LOG.info("shipping %s, which was handed over, to %s", file.name, ", ".join(names))
        self._deliver(
            file.directory, [self._make_worker(file, targets.durable[name], file.header.families) for name in names]
        )
        behind = _lagging_listeners(file)
        if behind <= {*targets.plain}:
            self.shipped += inbox.finish(file)
        elif targets.are_all and behind.isdisjoint(targets.durable):
            inbox.leave_rest(file)
        return behind & {*targets.durable}

    def _ship_quietly(self, spool: Path, targets: DeadSpoolTargets) -> None:
        try:
            if self._listeners_of(spool, targets):
                self._ship(spool, targets)
        except LockedError:
            return  # another driver was quicker
        except (HeadwaterError, OSError) as e:
            _LOG.warning("the spool %s of a dead driver can't be shipped now: %s", spool, e)

    def _listeners_of(self, spool: Path, targets: DeadSpoolTargets) -> list[str]:
        """The listeners to ship to, of those that the spool was kept for; or all, where that isn't noted."""
        names = waiting_listeners(spool, self._options.files)
        return [name for name in targets.durable if name in names or not names]

    def _warn_stranded(self, spools: Iterable[Path], targets: DeadSpoolTargets) -> None:
        """Listeners that a spool's driver couldn't make, and that nobody knows here either: a name that was put right
        since, most likely. Only somebody who knows can say which one was meant. Each name is said once, however many
        drivers have left a spool for it."""
        files = self._options.files
        stranded: dict[str, list[Path]] = {}
        for spool in spools:
            failed = read_manifest(files, spool).failed_listeners & waiting_listeners(spool, files)
            for name in failed.difference(targets.configured, self._stranded):
                stranded.setdefault(name, []).append(spool)
        for name, several in sorted(stranded.items()):
            self._stranded.add(name)
            _LOG.warning("%s", describe_stranded(several, name, targets.configured))

    def _ship(self, spool: Path, targets: DeadSpoolTargets) -> None:
        options = JournalOptions(fsync=self._fsync, max_bytes=None, drop_consumed=True, reserve_bytes=0)
        with Journal.open(spool, options, files=self._options.files) as journal:
            append_run_ends(journal, self._options.files)
            families = read_manifest(self._options.files, spool).families
            workers = [
                self._make_worker(journal, targets.durable[name], families)
                for name in self._listeners_of(spool, targets)
                if journal.positions().get(name, 0) < journal.next_offset
            ]
            _LOG.info(
                "shipping %s, which a dead driver left, to %s", spool, ", ".join(worker.name for worker in workers)
            )
            self._deliver(spool, workers)
            is_through = _lagging_listeners(journal) <= {*targets.plain}
        if is_through:
            remove_journal(spool)
            self.shipped += 1
            _LOG.info("shipped %s", spool)

    def _deliver(self, spool: Path, workers: list[ListenerWorker]) -> None:
        self._now = spool, workers
        try:
            for worker in workers:
                worker.start()
            self._await(workers)
        finally:
            stop_workers(workers, min(self._deadline, time.monotonic() + _STOP_SECONDS))
            for worker in workers:
                worker.release_cursor()
                self.acknowledged[worker.name] += worker.acknowledged
            self._now = None

    def _make_worker(
        self, source: _DeadSource, factory_runner: ListenerFactoryRunner, families: Mapping[str, frozenset[EventFamily]]
    ) -> ListenerWorker:
        name = factory_runner.spec.name
        meter, stop = ListenerMeter(factory_runner.errors), StopSignal()
        spool_dispatcher = SpoolDispatcher(
            name,
            source,
            source.cursor(name),
            families.get(name, ALL_FAMILIES),
            self._options,
            meter=meter,
            stop=stop,
            progress=self._progress,
            on_lost=self._on_lost,
            on_refused=self._on_refused,
            until=source.next_offset,
        )
        return ListenerWorker(
            factory_runner,
            self._options,
            meter=meter,
            stop=stop,
            progress=self._progress,
            spool_dispatcher=spool_dispatcher,
            queue_dispatcher=None,
            on_known=lambda _: None,
        )

    def _await(self, workers: list[ListenerWorker]) -> None:
        """Until all are through, or the bus stops, or nothing has moved for a while."""
        moved, seen = time.monotonic(), -1
        while not self._is_stopping and any(not worker.state.is_stopped for worker in workers):
            self._progress.wait_for(
                lambda: self._is_stopping or all(worker.state.is_stopped for worker in workers), 0.2
            )
            dealt = sum(
                worker.spool_dispatcher.acknowledged_offset for worker in workers if worker.spool_dispatcher is not None
            )
            if dealt != seen:
                moved, seen = time.monotonic(), dealt
            elif time.monotonic() - moved > self._options.stall_seconds:
                return

    def _make_room(self) -> None:
        """Let the oldest spools go that are above the limit."""
        if self._limit is None:
            return
        spools = self._find_spools()
        sizes = {spool: size_of(spool) for spool in spools}
        total = sum(sizes.values())
        for spool in spools:
            if total <= self._limit:
                return
            try:
                producer = read_manifest(self._options.files, spool).producer
                remove_journal(spool)
            except (HeadwaterError, OSError) as e:
                _LOG.warning("the spool %s should make room, and can't be removed: %s", spool, e)
                continue
            total -= sizes[spool]
            detail = (
                f"what dead drivers left takes more than {self._limit} bytes: the oldest, {spool.name}, was removed"
            )
            _LOG.warning("%s", detail)
            self._on_gap(Gap(reason=GapReason.SPOOL_LIMIT, detail=detail, missed_producer=producer))


class _DeadSource(SpoolSource, Protocol):
    """A spool or a file to which nobody appends."""

    def positions(self) -> Mapping[str, int]: ...


def _lagging_listeners(source: _DeadSource) -> set[str]:
    """Those that haven't got all of it."""
    end = source.next_offset
    return {name for name, position in source.positions().items() if name != PROGRESS_CURSOR and position < end}


def _last_modified(spool: Path) -> float:
    return max((segment.stat().st_mtime for segment in spool.glob("*.segment")), default=0.0)
