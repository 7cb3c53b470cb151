"""What dead drivers left: found on this host, brought to an end, and delivered as if its driver lived.

One spool at a time, each listener by an instance of its own. A spool goes when all listeners that it was kept for are
through with it; where some aren't configured here it waits for a driver that has them. What nobody ships may take a
bounded room, then the oldest goes, and a Gap tells.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from headwater.errors import HeadwaterError
from headwater.events.health import Gap, GapReason
from headwater.journal import (
    Fsync,
    Journal,
    JournalOptions,
    LockedError,
    find_abandoned,
    remove_journal,
)
from headwater.listeners.bus.calls import Stop
from headwater.listeners.bus.course import GUARD
from headwater.listeners.bus.ends import append_ends
from headwater.listeners.bus.handing import Handing
from headwater.listeners.bus.handover import shared_spools
from headwater.listeners.bus.intake import OnLost
from headwater.listeners.bus.lane import Lane, stop_all
from headwater.listeners.bus.left import kept_for, stranded_words
from headwater.listeners.bus.making import Maker
from headwater.listeners.bus.options import BusOptions
from headwater.listeners.bus.passport import EVERYTHING, read_passport
from headwater.listeners.bus.report import Meter, Progress
from headwater.listeners.threads import Rounds

_LOG = logging.getLogger(__name__)
_STOP_SECONDS = 5.0
_LAST_SECONDS = 1.0


@dataclass(frozen=True)
class Targets:
    """To whom dead drivers' spools can be shipped now."""

    durable: Mapping[str, Maker]
    plain: Collection[str] = field(default_factory=frozenset)
    """Listeners that need no spool: one that is kept for them only is kept for nobody."""
    are_all: bool = True
    """False while it isn't known yet of every listener what it is: too early to let anything go."""
    configured: Collection[str] = field(default_factory=frozenset)
    """All that the configuration names, those too that can't be made."""


class Shipper:
    """Looks for dead drivers' spools, at first when it is started and then from time to time, and ships them."""

    def __init__(
        self,
        places: Callable[[], Collection[Path]],
        targets: Callable[[], Targets],
        options: BusOptions,
        *,
        shared: Path | None,
        fsync: Fsync,
        limit: int,
        on_lost: OnLost,
        on_gap: Callable[[Gap], object],
    ) -> None:
        self.shipped = 0
        self.looked = threading.Event()
        """Set once all that there was when it began, and that could be shipped, is."""
        self._places = places
        self._targets = targets
        self._options = options
        self._shared = shared
        self._fsync = fsync
        self._limit = limit
        self._on_lost = on_lost
        self._on_gap = on_gap
        self._stranded: set[tuple[Path, str]] = set()
        self._is_stopping = False
        self._deadline = float("inf")
        self._progress = Progress()
        self._rounds = Rounds("headwater-dead-spools", self.look, options.look_interval, at_once=True)

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
        self._progress.made()

    def join(self, timeout: float) -> bool:
        return self._rounds.stop(timeout)

    def look(self) -> None:
        """Ship what there is, once."""
        targets = self._targets()
        for spool in self._found():
            if self._is_stopping:
                return
            self._ship_quietly(spool, targets)
            self._tell_stranded(spool, targets)
        if targets.are_all:
            self._make_room()
            self.looked.set()

    def _found(self) -> list[Path]:
        """The oldest first."""
        local = [spool for place in dict.fromkeys(self._places()) for spool in find_abandoned(place)]
        return sorted([*local, *shared_spools(self._shared)], key=_age)

    def _ship_quietly(self, spool: Path, targets: Targets) -> None:
        try:
            if self._names(spool, targets):
                self._ship(spool, targets)
        except LockedError:
            return  # another driver was quicker
        except (HeadwaterError, OSError) as e:
            _LOG.warning("the spool %s of a dead driver can't be shipped now: %s", spool, e)

    def _names(self, spool: Path, targets: Targets) -> list[str]:
        """The listeners to ship to, of those that the spool was kept for; or all, where that isn't told."""
        names = kept_for(spool, self._options.files)
        return [name for name in targets.durable if name in names or not names]

    def _tell_stranded(self, spool: Path, targets: Targets) -> None:
        """Listeners that the spool's driver couldn't make, and that nobody knows here either: a name that was put right
        since, most likely. Only somebody who knows can say which one was meant."""
        files = self._options.files
        stranded = read_passport(files, spool).unmade & kept_for(spool, files) - {*targets.configured}
        for name in sorted(stranded):
            if (spool, name) not in self._stranded:
                self._stranded.add((spool, name))
                _LOG.warning("%s", stranded_words(spool, name, targets.configured))

    def _ship(self, spool: Path, targets: Targets) -> None:
        options = JournalOptions(fsync=self._fsync, max_bytes=None, drop_consumed=True, reserve_bytes=0)
        with Journal.open(spool, options, files=self._options.files) as journal:
            append_ends(journal, self._options.files)
            lanes = [
                self._lane(journal, targets.durable[name])
                for name in self._names(spool, targets)
                if journal.positions().get(name, 0) < journal.next_offset
            ]
            _LOG.info("shipping %s, which a dead driver left, to %s", spool, ", ".join(lane.name for lane in lanes))
            for lane in lanes:
                lane.start()
            self._await(lanes)
            stop_all(lanes, min(self._deadline, time.monotonic() + _STOP_SECONDS))
            for lane in lanes:
                lane.leave_spool()
            is_through = _is_through(journal, targets.plain)
        if is_through:
            remove_journal(spool)
            self.shipped += 1
            _LOG.info("shipped %s", spool)

    def _lane(self, journal: Journal, maker: Maker) -> Lane:
        name, meter, stop = maker.wanted.name, Meter(), Stop()
        families = read_passport(self._options.files, journal.directory).families.get(name, EVERYTHING)
        handing = Handing(
            name,
            journal,
            journal.cursor(name),
            families,
            self._options,
            meter=meter,
            stop=stop,
            progress=self._progress,
            on_lost=self._on_lost,
            until=journal.next_offset,
        )
        return Lane(
            maker,
            self._options,
            meter=meter,
            stop=stop,
            progress=self._progress,
            handing=handing,
            telling=None,
            on_known=lambda _: None,
        )

    def _await(self, lanes: list[Lane]) -> None:
        """Until all are through, or the bus stops, or nothing has moved for a while."""
        moved, seen = time.monotonic(), -1
        while not self._is_stopping and any(not lane.state.is_out for lane in lanes):
            self._progress.wait_for(lambda: self._is_stopping or all(lane.state.is_out for lane in lanes), 0.2)
            dealt = sum(lane.handing.dealt for lane in lanes if lane.handing is not None)
            if dealt != seen:
                moved, seen = time.monotonic(), dealt
            elif time.monotonic() - moved > self._options.patience:
                return

    def _make_room(self) -> None:
        """Let the oldest spools go that are above the limit."""
        spools = self._found()
        sizes = {spool: _size(spool) for spool in spools}
        total = sum(sizes.values())
        for spool in spools:
            if total <= self._limit:
                return
            try:
                producer = read_passport(self._options.files, spool).producer
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


def _is_through(journal: Journal, plain: Collection[str]) -> bool:
    """Whether everybody has all of it whom the spool was kept for."""
    end = journal.next_offset
    waiting = [name for name, position in journal.positions().items() if name != GUARD and position < end]
    return all(name in plain for name in waiting)


def _age(spool: Path) -> float:
    return max((each.stat().st_mtime for each in spool.glob("*.segment")), default=0.0)


def _size(spool: Path) -> int:
    return sum(each.stat().st_size for each in spool.iterdir() if each.is_file())
