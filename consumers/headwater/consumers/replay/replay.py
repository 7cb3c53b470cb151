"""A whole replay: fills fresh tables by the writer's pipeline until little is left, then takes one lock, reads the
rest, and puts the fresh tables in the place of the live ones.

Interrupted anywhere before that, it leaves the live store as it was, and begun again it goes on.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

from headwater.consumers.replay import preparation
from headwater.consumers.replay.filling import (
    BulkReaderMaker,
    Filler,
    ReplaySettings,
    ShowProgress,
    ends_now,
    ends_until,
    with_progress,
)
from headwater.consumers.replay.preparation import CopiedStore, EventsWouldBeLost, LiveState
from headwater.consumers.replay.ranges import RangeSource
from headwater.errors import ConfigurationError, TransientError
from headwater.lineage.maintenance.purge import purge
from headwater.lineage.replacement.areas import Area, copy_store, count_rows, create_area, drop_area
from headwater.lineage.replacement.arrivals import MissingEvents, describe_missing
from headwater.lineage.replacement.state import read_state, replay_lock, write_state
from headwater.lineage.replacement.switching import Fence, make_view_indexes, switch_over_for
from headwater.lineage.sql.errors import StoreBusyError
from headwater.lineage.store import Store, StoreOptions, open_store
from headwater.lineage.store.migrations import HISTORY, MigrationHistory

_TRIES: Final = 20
"""How often a switch-over is tried, if somebody uses the tables for too long each time."""
_TRY_AGAIN_SECONDS: Final = 1.0
_LONGEST_WAIT: Final = 5.0
_ROUNDS: Final = 5
_FEW_EVENTS: Final = 100
_COPIED: Final = "copied"


@dataclass
class ReplayResult:
    """What a replay did."""

    events: int = 0
    copied_rows: int = 0
    missing: list[MissingEvents] = field(default_factory=list)
    """Events that the live store has and the sources don't, where that was accepted."""
    is_switched: bool = False
    pause: float = 0.0
    """Seconds for which writers of the live store had to wait."""


class Replay:
    """One replay into one store."""

    def __init__(
        self,
        options: StoreOptions,
        sources: Sequence[RangeSource],
        settings: ReplaySettings,
        show: ShowProgress,
        *,
        copied: CopiedStore | None = None,
        make_bulk_reader: BulkReaderMaker | None = None,
        history: MigrationHistory = HISTORY,
    ) -> None:
        """`make_bulk_reader` makes who reads what there is at first, if that isn't this process."""
        self._make_bulk_reader = make_bulk_reader
        self._options = options
        self._sources = list(sources)
        self._settings = settings
        self._show = show
        self._copied = copied
        self._history = history
        self._result = ReplayResult()

    def run(self) -> ReplayResult:
        result = self._result
        with preparation.live_engine(self._options, self._history) as live, replay_lock(live, self._options.target):
            switch_over_for(self._options).recover()
            if self._settings.switches:
                preparation.check_former(self._options)
            state = preparation.read_live_state(live, self._settings)
            with create_area(self._options, Area.FRESH) as fresh:
                filler = self._prepare(fresh, state)
                self._fill(fresh, filler)
                if self._settings.switches:
                    make_view_indexes(self._options, fresh.engine)
                    self._switch(fresh, filler)
            result.events = filler.events
            if result.is_switched and state.is_new:
                drop_area(self._options, Area.FORMER)
        return result

    def _prepare(self, fresh: Store, live: LiveState) -> Filler:
        settings, copied = self._settings, self._copied
        addresses = [*([copied.address] if copied else []), *(source.address for source in self._sources)]
        preparation.check_same_sources(fresh, addresses, settings)
        options = self._options.beside(Area.FRESH.value)
        filler = Filler(fresh, options, settings, self._show, self._make_bulk_reader)
        start = dict(filler.positions())
        for where, at in (copied.offsets(settings.group) if copied else {}).items():
            start[where] = max(start.get(where, 0), at)
        accept_loss = settings.accept_loss
        preparation.check_coverage(fresh.bulk, self._sources, start, live.offsets, accept_loss=accept_loss)
        return filler

    def _fill(self, fresh: Store, filler: Filler) -> None:
        """Read the sources up to their ends."""
        if self._copied is not None and read_state(fresh.engine).get(_COPIED) is None:
            self._copy(fresh, self._copied)
        for source in self._sources:
            filler.read_much(source, ends_until(source, self._settings.until), f"reading {source.address}")
        if self._settings.purge:
            purge(fresh.engine)

    def _copy(self, fresh: Store, copied: CopiedStore) -> None:
        """Copy the rows of another store."""
        with open_store(copied.options, readonly=True) as store, store.engine.connect() as rows:
            self._result.copied_rows = with_progress(
                f"copying {copied.address}",
                "rows",
                count_rows(rows),
                self._show,
                lambda report: copy_store(rows, fresh.bulk, report),
            )
        write_state(fresh.engine, {_COPIED: "yes"})

    def _catch_up(self, filler: Filler, seconds: float | None = None) -> bool:
        """Read each source up to where it ends now. Return False if that took longer than so many seconds."""
        deadline = None if seconds is None else time.monotonic() + seconds
        if self._settings.until is not None:
            return True
        for source in self._sources:
            ends, complete_until = ends_now(source)
            left = None if deadline is None else max(0.1, deadline - time.monotonic())
            words = f"catching up {source.address}"
            if not filler.read(source, ends, words, complete_until=complete_until, seconds=left):
                return False
        return True

    def _switch(self, fresh: Store, filler: Filler) -> None:
        """Switch over, in a moment at which nobody uses the tables for long."""
        switch_over = switch_over_for(self._options)
        followers = switch_over.followers()
        if followers:
            raise ConfigurationError(
                f"these belong to the live tables and would stay with them: {', '.join(followers)}. Drop them, run the "
                "replay again, which goes on from here, and make them again afterwards"
            )
        for number in range(_TRIES):
            self._come_near(filler)
            with suppress(StoreBusyError, _PauseTooLongError):
                with switch_over.fence(self._settings.pause_seconds) as fence:
                    began = time.monotonic()
                    self._switch_behind(fence, fresh, filler)
                self._result.is_switched, self._result.pause = True, time.monotonic() - began
                return
            time.sleep(min(_TRY_AGAIN_SECONDS * (number + 1), _LONGEST_WAIT))
        raise StoreBusyError(
            f"the live tables were in use for too long, {_TRIES} times: they are as they were. Run the same command at "
            "a quieter time, which goes on from here. A larger --pause lets writers wait longer"
        )

    def _come_near(self, filler: Filler) -> None:
        """Catch up until little comes meanwhile: the rest is read while writers wait."""
        for _ in range(_ROUNDS):
            before = filler.events
            self._catch_up(filler)
            if filler.events - before <= _FEW_EVENTS:
                return

    def _switch_behind(self, fence: Fence, fresh: Store, filler: Filler) -> None:
        """Read the last events while no writer commits, and switch over."""
        if not self._catch_up(filler, self._settings.pause_seconds):
            raise _PauseTooLongError
        missing = self._result.missing = fence.missing_events()
        if missing and not self._settings.accept_loss:
            raise EventsWouldBeLost(
                f"the live store has events that no source has: {describe_missing(missing)}. They came by the listener "
                "jdbc, by calls or by a deletion without --bus, or the bus has forgotten them. Nothing was changed. "
                "With --accept-loss they are lost"
            )
        fresh.engine.dispose()  # a connection would hold what is renamed
        fence.switch()


class _PauseTooLongError(TransientError):
    """The rest couldn't be read while writers waited."""
