"""Ships the spools of dead drivers: finds them, appends the ends of their runs, and delivers them.

One spool at a time, with a new instance of each listener. A spool is removed once all its listeners acknowledged it; if
some aren't configured here it waits for a driver that has them. Unshipped spools may take a bounded amount of disk:
above it the oldest one is removed, and a Gap reports that.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from headwater.errors import HeadwaterError
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
from headwater.listeners.bus.handover import shared_spools
from headwater.listeners.bus.listener_calls import StopSignal
from headwater.listeners.bus.listener_creation import ListenerFactoryRunner
from headwater.listeners.bus.listener_errors import describe_error
from headwater.listeners.bus.listener_worker import ListenerWorker, stop_workers
from headwater.listeners.bus.options import BusOptions
from headwater.listeners.bus.producer_progress import PROGRESS_CURSOR
from headwater.listeners.bus.remote_spools import RemoteSpool
from headwater.listeners.bus.report import ListenerMeter, ProgressSignal, SpoolShipment
from headwater.listeners.bus.retries import OnceLogger
from headwater.listeners.bus.run_ends import append_run_ends
from headwater.listeners.bus.spool_claimer import SpoolClaimer, read_origin
from headwater.listeners.bus.spool_dispatcher import OnRefused, SpoolDispatcher
from headwater.listeners.bus.spool_listeners import describe_stranded, waiting_listeners
from headwater.listeners.bus.spool_listing import size_of
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
        shared: Path | None,
        claimer: SpoolClaimer | None,
        fsync: Fsync,
        limit: int | None,
        on_lost: OnLost,
        on_refused: OnRefused,
        on_gap: Callable[[Gap], object],
    ) -> None:
        self.shipped = 0
        self.acknowledged: Counter[str] = Counter()
        """Events of dead drivers that listeners answered for, by the listener's name."""
        self.error = ""
        """Why what was handed over can't be taken up now."""
        self.looked = threading.Event()
        """Set once all that there was when it began, and that could be shipped, is."""
        self._places = places
        self._targets = targets
        self._options = options
        self._shared = shared
        self._claimer = claimer
        self._claim_errors = OnceLogger()
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
        self._claim_remote_spools(targets)
        for place in dict.fromkeys(self._places()):
            remove_remains(place)
        if targets.are_all:
            self._make_room()
            self.looked.set()

    def _find_spools(self) -> list[Path]:
        """The oldest first."""
        local = [spool for place in dict.fromkeys(self._places()) for spool in find_orphans(place)]
        found = [*local, *shared_spools(self._shared)]
        return sorted(filter(self._options.is_ours, found), key=_last_modified)

    def _claim_remote_spools(self, targets: DeadSpoolTargets) -> None:
        """One after the other out of the shared directory that is no path of this machine. Where the last one couldn't
        be delivered, the next would only lie here too."""
        if self._claimer is None:
            return
        try:
            for remote_spool in self._claimer.look():
                if self._is_stopping or any(map(read_origin, self._find_spools())):
                    return
                is_wanted = _has_target(remote_spool, targets) and self._options.is_ours(Path(remote_spool.name))
                if is_wanted and (copy := self._claimer.take(remote_spool)) is not None:
                    self._ship_quietly(copy, targets)
            self._claim_errors.reset()
            self.error = ""
        except (HeadwaterError, OSError) as e:
            self.error = describe_error(e)
            if self._claim_errors.is_new(self.error):
                _LOG.warning("what was handed over can't be taken up now: %s", e)

    def give_back(self) -> None:
        """After `join`: what was taken up and isn't delivered is somebody else's again."""
        if self._claimer is not None and self._rounds.stop():
            self._claimer.give_all_back()

    @property
    def remote_spools(self) -> tuple[RemoteSpool, ...]:
        """What is still to be taken up, as far as it is known."""
        return () if self._claimer is None else self._claimer.known

    def _is_ours_to_ship(self, spool: Path) -> bool:
        """A copy only as long as what it is a copy of is there, and is ours to ship."""
        return read_origin(spool) is None or (self._claimer is not None and self._claimer.hold(spool))

    def _ship_quietly(self, spool: Path, targets: DeadSpoolTargets) -> None:
        try:
            if self._listeners_of(spool, targets) and self._is_ours_to_ship(spool):
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
            workers = [
                self._make_worker(journal, targets.durable[name])
                for name in self._listeners_of(spool, targets)
                if journal.positions().get(name, 0) < journal.next_offset
            ]
            _LOG.info(
                "shipping %s, which a dead driver left, to %s", spool, ", ".join(worker.name for worker in workers)
            )
            self._deliver(spool, workers)
            is_through, behind = _is_delivered(journal, targets.plain), _lagging_listeners(journal)
        if is_through:
            if self._claimer is not None:
                self._claimer.finish(spool)
            remove_journal(spool)
            self.shipped += 1
            _LOG.info("shipped %s", spool)
        elif self._claimer is not None and behind.isdisjoint(targets.durable):
            self._claimer.give_back(spool)

    def _deliver(self, spool: Path, workers: list[ListenerWorker]) -> None:
        self._now = spool, workers
        try:
            for worker in workers:
                worker.start()
            self._await(spool, workers)
        finally:
            stop_workers(workers, min(self._deadline, time.monotonic() + _STOP_SECONDS))
            for worker in workers:
                worker.release_cursor()
                self.acknowledged[worker.name] += worker.acknowledged
            self._now = None

    def _make_worker(self, journal: Journal, factory_runner: ListenerFactoryRunner) -> ListenerWorker:
        name = factory_runner.spec.name
        meter, stop = ListenerMeter(factory_runner.errors), StopSignal()
        families = read_manifest(self._options.files, journal.directory).families.get(name, ALL_FAMILIES)
        spool_dispatcher = SpoolDispatcher(
            name,
            journal,
            journal.cursor(name),
            families,
            self._options,
            meter=meter,
            stop=stop,
            progress=self._progress,
            on_lost=self._on_lost,
            on_refused=self._on_refused,
            until=journal.next_offset,
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

    def _await(self, spool: Path, workers: list[ListenerWorker]) -> None:
        """Until all are through, or the bus stops, or nothing has moved for a while."""
        moved, seen = time.monotonic(), -1
        while not self._is_stopping and any(not worker.state.is_stopped for worker in workers):
            self._progress.wait_for(
                lambda: self._is_stopping or all(worker.state.is_stopped for worker in workers), 0.2
            )
            if self._claimer is not None:
                self._claimer.renew(spool)
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
        spools = [spool for spool in self._find_spools() if read_origin(spool) is None]
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


def _is_delivered(journal: Journal, plain: Collection[str]) -> bool:
    """Whether everybody has all of it whom the spool was kept for."""
    return _lagging_listeners(journal) <= {*plain}


def _lagging_listeners(journal: Journal) -> set[str]:
    """Those that haven't got all of it."""
    end = journal.next_offset
    return {name for name, position in journal.positions().items() if name != PROGRESS_CURSOR and position < end}


def _has_target(remote_spool: RemoteSpool, targets: DeadSpoolTargets) -> bool:
    """Whether somebody here hasn't got all of it; or nobody at all, so that it can go."""
    behind = {name for name, count in remote_spool.waiting.items() if count}
    return not behind.isdisjoint(targets.durable) or not behind


def _last_modified(spool: Path) -> float:
    return max((each.stat().st_mtime for each in spool.glob("*.segment")), default=0.0)
