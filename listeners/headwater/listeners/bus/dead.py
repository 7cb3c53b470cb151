"""What dead drivers left: found on this host, brought to an end, and delivered as if its driver lived.

One spool at a time, each listener by an instance of its own. A spool goes when all listeners that it was kept for are
through with it; where some aren't configured here it waits for a driver that has them. What nobody ships may take a
bounded room, then the oldest goes, and a Gap tells.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
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
from headwater.listeners.bus.errors import words_of
from headwater.listeners.bus.handed import Handed
from headwater.listeners.bus.handing import Handing
from headwater.listeners.bus.handover import shared_spools
from headwater.listeners.bus.intake import OnLost
from headwater.listeners.bus.lane import Lane, stop_all
from headwater.listeners.bus.left import kept_for, stranded_words
from headwater.listeners.bus.listing import size_of
from headwater.listeners.bus.making import Maker
from headwater.listeners.bus.news import News
from headwater.listeners.bus.options import BusOptions
from headwater.listeners.bus.passport import EVERYTHING, read_passport
from headwater.listeners.bus.report import Meter, Progress, Shipping
from headwater.listeners.bus.taking import Taker, origin_of
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
        taker: Taker | None,
        fsync: Fsync,
        limit: int | None,
        on_lost: OnLost,
        on_gap: Callable[[Gap], object],
    ) -> None:
        self.shipped = 0
        self.acknowledged: Counter[str] = Counter()
        """Events of dead drivers that listeners answered for, by the listener's name."""
        self.trouble = ""
        """Why what was handed over can't be taken up now."""
        self.looked = threading.Event()
        """Set once all that there was when it began, and that could be shipped, is."""
        self._places = places
        self._targets = targets
        self._options = options
        self._shared = shared
        self._taker = taker
        self._taking = News()
        self._fsync = fsync
        self._limit = limit
        self._on_lost = on_lost
        self._on_gap = on_gap
        self._stranded: set[tuple[Path, str]] = set()
        self._now: tuple[Path, list[Lane]] | None = None
        self._is_stopping = False
        self._deadline = float("inf")
        self._progress = Progress()
        self._rounds = Rounds("headwater-dead-spools", self.look, options.look_interval, at_once=True)

    @property
    def shipping(self) -> Shipping | None:
        """The spool that is being shipped right now."""
        now = self._now
        return None if now is None else Shipping(now[0], tuple(lane.report() for lane in now[1]))

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
        self._take_up(targets)
        if targets.are_all:
            self._make_room()
            self.looked.set()

    def _found(self) -> list[Path]:
        """The oldest first."""
        local = [spool for place in dict.fromkeys(self._places()) for spool in find_abandoned(place)]
        found = [*local, *shared_spools(self._shared)]
        return sorted(filter(self._options.is_meant, found), key=_age)

    def _take_up(self, targets: Targets) -> None:
        """One after the other out of the shared directory that is no path of this machine. Where the last one couldn't
        be delivered, the next would only lie here too."""
        if self._taker is None:
            return
        try:
            for handed in self._taker.look():
                if self._is_stopping or any(map(origin_of, self._found())):
                    return
                is_wanted = _is_for(handed, targets) and self._options.is_meant(Path(handed.name))
                if is_wanted and (copy := self._taker.take(handed)) is not None:
                    self._ship_quietly(copy, targets)
            self._taking.over()
            self.trouble = ""
        except (HeadwaterError, OSError) as e:
            self.trouble = words_of(e)
            if self._taking.is_news(self.trouble):
                _LOG.warning("what was handed over can't be taken up now: %s", e)

    def give_back(self) -> None:
        """After `join`: what was taken up and isn't delivered is somebody else's again."""
        if self._taker is not None and self._rounds.stop():
            self._taker.give_all_back()

    @property
    def handed(self) -> tuple[Handed, ...]:
        """What is still to be taken up, as far as it is known."""
        return () if self._taker is None else self._taker.known

    def _may_be_shipped(self, spool: Path) -> bool:
        """A copy only as long as what it is a copy of is there, and is ours to ship."""
        return origin_of(spool) is None or (self._taker is not None and self._taker.hold(spool))

    def _ship_quietly(self, spool: Path, targets: Targets) -> None:
        try:
            if self._names(spool, targets) and self._may_be_shipped(spool):
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
            self._deliver(spool, lanes)
            is_through, behind = _is_through(journal, targets.plain), _behind(journal)
        if is_through:
            if self._taker is not None:
                self._taker.finish(spool)
            remove_journal(spool)
            self.shipped += 1
            _LOG.info("shipped %s", spool)
        elif self._taker is not None and behind.isdisjoint(targets.durable):
            self._taker.give_back(spool)

    def _deliver(self, spool: Path, lanes: list[Lane]) -> None:
        self._now = spool, lanes
        try:
            for lane in lanes:
                lane.start()
            self._await(spool, lanes)
        finally:
            stop_all(lanes, min(self._deadline, time.monotonic() + _STOP_SECONDS))
            for lane in lanes:
                lane.leave_spool()
                self.acknowledged[lane.name] += lane.acknowledged
            self._now = None

    def _lane(self, journal: Journal, maker: Maker) -> Lane:
        name = maker.wanted.name
        meter, stop = Meter(maker.errors), Stop()
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

    def _await(self, spool: Path, lanes: list[Lane]) -> None:
        """Until all are through, or the bus stops, or nothing has moved for a while."""
        moved, seen = time.monotonic(), -1
        while not self._is_stopping and any(not lane.state.is_out for lane in lanes):
            self._progress.wait_for(lambda: self._is_stopping or all(lane.state.is_out for lane in lanes), 0.2)
            if self._taker is not None:
                self._taker.renew(spool)
            dealt = sum(lane.handing.dealt for lane in lanes if lane.handing is not None)
            if dealt != seen:
                moved, seen = time.monotonic(), dealt
            elif time.monotonic() - moved > self._options.patience:
                return

    def _make_room(self) -> None:
        """Let the oldest spools go that are above the limit."""
        if self._limit is None:
            return
        spools = [spool for spool in self._found() if origin_of(spool) is None]
        sizes = {spool: size_of(spool) for spool in spools}
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
    return _behind(journal) <= {*plain}


def _behind(journal: Journal) -> set[str]:
    """Those that haven't got all of it."""
    end = journal.next_offset
    return {name for name, position in journal.positions().items() if name != GUARD and position < end}


def _is_for(handed: Handed, targets: Targets) -> bool:
    """Whether somebody here hasn't got all of it; or nobody at all, so that it can go."""
    behind = {name for name, count in handed.waiting.items() if count}
    return not behind.isdisjoint(targets.durable) or not behind


def _age(spool: Path) -> float:
    return max((each.stat().st_mtime for each in spool.glob("*.segment")), default=0.0)
