"""A whole replay: fills fresh tables, compares them with the live ones, catches up, and switches over.

Interrupted anywhere before the switch-over, it leaves the live store as it was, and begun again it goes on.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from sqlalchemy import Connection, Engine

from headwater.consumers.replay import preparation
from headwater.consumers.replay.filling import BulkReaderMaker, Filler, ends_now, ends_until
from headwater.consumers.replay.preparation import CopiedStore, EventsWouldBeLost, LiveState, ReplaySettings
from headwater.consumers.replay.progress import PhaseProgress, ProgressListener
from headwater.consumers.replay.ranges import Positions, RangeSource
from headwater.errors import ConfigurationError, TransientError
from headwater.lineage.bulk.positions import select_offsets
from headwater.lineage.maintenance.purge import purge
from headwater.lineage.replacement.areas import Area, create_area, drop_area
from headwater.lineage.replacement.arrivals import MissingEvents, describe_missing, missing_in
from headwater.lineage.replacement.comparison import (
    StoreComparison,
    compare_stores,
    explain_by_lag,
    explain_by_later_events,
)
from headwater.lineage.replacement.copying import copy_store, count_rows, snapshot
from headwater.lineage.replacement.state import read_state, replay_lock, write_state
from headwater.lineage.replacement.switching import Fence, make_view_indexes, switch_over_for
from headwater.lineage.sql.errors import StoreBusyError
from headwater.lineage.store import Store, StoreOptions, open_store
from headwater.lineage.store.migrations import HISTORY, MigrationHistory

_TRIES: Final = 20
"""How often a switch-over is tried, if somebody uses the tables for too long each time."""
_TRY_AGAIN_SECONDS: Final = 1.0
_LONGEST_WAIT: Final = 5.0
_LAG_SECONDS: Final = 10.0
"""How long a live store that is behind the fresh tables may take to come up to them, before both are compared."""
_ROUNDS: Final = 5
_FEW_EVENTS: Final = 100
_COPIED: Final = "copied"


@dataclass
class ReplayResult:
    """What a replay did."""

    events: int = 0
    copied_rows: int = 0
    comparison: StoreComparison | None = None
    """None for a new store, which there is nothing to compare with."""
    missing: list[MissingEvents] = field(default_factory=list)
    """Events that the live store has and the sources don't."""
    is_switched: bool = False
    pause: float = 0.0
    """Seconds for which writers of the live store had to wait."""


Agreement: TypeAlias = Callable[[ReplayResult], bool]
"""Asks somebody whether to switch over, though rows differ."""


class Replay:
    """One replay into one store."""

    def __init__(
        self,
        options: StoreOptions,
        sources: Sequence[RangeSource],
        settings: ReplaySettings,
        listener: ProgressListener,
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
        self._listener = listener
        self._copied = copied
        self._history = history
        self._live_state = LiveState({}, is_new=False)
        self._result = ReplayResult()

    def run(self, agrees: Agreement) -> ReplayResult:
        """Replay. `agrees` is asked before a switch-over if rows differ."""
        with preparation.live_engine(self._options, self._history) as live, replay_lock(live, self._options.target):
            switch_over_for(self._options).recover()
            if not self._settings.verify:
                preparation.check_former(self._options)
            with create_area(self._options, Area.FRESH) as fresh:
                filler = self._prepare(live, fresh)
                self._fill(fresh, filler)
                is_wanted = self._live_state.is_new or self._compare(live, fresh, filler, agrees)
                if is_wanted and not self._settings.verify:
                    make_view_indexes(self._options, fresh.engine)
                    self._switch(fresh, filler)
            self._result.events = filler.events
            if self._settings.verify:
                drop_area(self._options, Area.FRESH)
            elif self._result.is_switched and self._live_state.is_new:
                drop_area(self._options, Area.FORMER)
        return self._result

    def _prepare(self, live: Engine, fresh: Store) -> Filler:
        settings = self._settings
        addresses = [*([self._copied.address] if self._copied else []), *(each.address for each in self._sources)]
        self._live_state = preparation.read_live_state(live, settings)
        preparation.check_same_sources(fresh, addresses, settings)
        options = self._options.beside(Area.FRESH.value)
        filler = Filler(fresh, options, settings.pipeline, self._listener, self._make_bulk_reader)
        start = dict(filler.positions())
        for where, at in (self._copied.offsets(settings.pipeline.group) if self._copied else {}).items():
            start[where] = max(start.get(where, 0), at)
        known = self._live_state.offsets
        preparation.check_coverage(fresh.bulk, self._sources, start, known, accept_loss=settings.accept_loss)
        return filler

    def _fill(self, fresh: Store, filler: Filler) -> None:
        """Read the sources up to where the live store is, and a new store's up to their ends."""
        if self._copied is not None and read_state(fresh.engine).get(_COPIED) is None:
            self._copy(fresh, self._copied)
        for source in self._sources:
            filler.read_much(source, self._target(source, self._live_state.offsets), f"reading {source.address}")
        if self._settings.purge:
            purge(fresh.engine)

    def _target(self, source: RangeSource, known: Positions) -> Positions:
        """Return the offsets up to which a source is read: not beyond those of the live store, so that both can be
        compared; of a new store up to the end."""
        if self._live_state.is_new or self._settings.until is not None:
            return ends_until(source, self._settings.until)
        ends, _ = ends_now(source)
        return {where: min(end, known.get(where, 0)) for where, end in ends.items()}

    def _compare(self, live: Engine, fresh: Store, filler: Filler, agrees: Agreement) -> bool:
        """Compare the live store of one moment with fresh tables that have the same offsets. Return whether to
        switch."""
        self._approach(live, filler)
        group, result = self._settings.pipeline.group, self._result
        with snapshot(live) as before:
            known = select_offsets(before, group)
            for source in self._sources:
                filler.read(source, self._target(source, known), f"catching up {source.address}")
            with snapshot(fresh.engine) as after:
                ahead = sum(max(0, at - known.get(where, 0)) for where, at in select_offsets(after, group).items())
                comparison = self._compare_rows(before, after)
        comparison.live_behind = ahead
        self._explain(fresh, filler, comparison)
        result.comparison, result.events = comparison, filler.events
        result.missing = missing_in(comparison.differences)
        self._refuse_loss(result.missing)
        return not comparison.differing or self._settings.verify or agrees(result)

    def _compare_rows(self, live: Connection, fresh: Connection) -> StoreComparison:
        progress = PhaseProgress("comparing", "rows", count_rows(live))

        def report(done: int) -> None:
            progress.done = done
            self._listener.show(progress)

        report(0)
        found = compare_stores(live, fresh, report=report)
        progress.is_finished = True
        self._listener.show(progress)
        return found

    def _approach(self, live: Engine, filler: Filler) -> None:
        """Come near to the live store before its snapshot is taken, which should be short. One that is behind gets some
        time: an earlier run may have read more than it."""
        deadline = time.monotonic() + _LAG_SECONDS
        while True:
            with live.connect() as connection:
                known = select_offsets(connection, self._settings.pipeline.group)
            mine = filler.positions()
            targets = [self._target(source, known) for source in self._sources]
            left = sum(max(0, end - mine.get(where, 0)) for each in targets for where, end in each.items())
            if left > self._settings.pipeline.batch:
                for source, target in zip(self._sources, targets, strict=True):
                    filler.read(source, target, f"catching up {source.address}")
                continue
            is_behind = any(at > known.get(where, 0) for where, at in mine.items())
            if not is_behind or time.monotonic() > deadline:
                return
            time.sleep(0.1)

    def _explain(self, fresh: Store, filler: Filler, comparison: StoreComparison) -> None:
        """Leave out the differences that come of events that one of the stores has and the other one not yet."""
        if comparison.differing and comparison.live_behind:
            comparison.leave(explain_by_lag(comparison.differences))
        elif comparison.differing:
            self._catch_up(filler)
            with fresh.engine.connect() as connection:
                comparison.leave(explain_by_later_events(connection, comparison.differences))

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
        self._result.missing = fence.missing_events()
        self._refuse_loss(self._result.missing)
        fresh.engine.dispose()  # a connection would hold what is renamed
        fence.switch()

    def _refuse_loss(self, missing: Sequence[MissingEvents]) -> None:
        if missing and not self._settings.accept_loss and not self._settings.verify:
            raise EventsWouldBeLost(
                f"the live store has events that no source has: {describe_missing(missing)}. They came by the listener "
                "jdbc, by calls or by a deletion without --bus, or the bus has forgotten them. Nothing was changed. "
                "With --accept-loss they are lost"
            )

    def _copy(self, fresh: Store, copied: CopiedStore) -> None:
        """Copy the rows of another store."""
        with open_store(copied.options, readonly=True) as store, snapshot(store.engine) as rows:
            progress = PhaseProgress(f"copying {copied.address}", "rows", count_rows(rows))

            def report(done: int) -> None:
                progress.done = done
                self._listener.show(progress)

            self._result.copied_rows = copy_store(rows, fresh.bulk, report)
            progress.is_finished = True
            self._listener.show(progress)
        write_state(fresh.engine, {_COPIED: "yes"})


class _PauseTooLongError(TransientError):
    """The rest couldn't be read while writers waited."""
