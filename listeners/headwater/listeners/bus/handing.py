"""Handing the records of a spool over to a durable listener, as `headwater.spi.DurableListener` says it is done."""

from __future__ import annotations

import logging
import time

from headwater.errors import TerminalError, TransientError
from headwater.events.clock import wall_micros
from headwater.events.envelope import Family
from headwater.journal import Cursor, Journal, StorageError
from headwater.journal import Record as Kept
from headwater.listeners.bus.ages import Ages
from headwater.listeners.bus.calls import Caller, CallError, Ending, Stop
from headwater.listeners.bus.durations import Passage
from headwater.listeners.bus.errors import words_of
from headwater.listeners.bus.intake import Intake, OnLost
from headwater.listeners.bus.news import News
from headwater.listeners.bus.options import BusOptions
from headwater.listeners.bus.outstanding import BrokenWordError, Outstanding
from headwater.listeners.bus.pauses import Pauses
from headwater.listeners.bus.report import Meter, Progress
from headwater.spi import Batch, DurableListener, Position

_LOG = logging.getLogger(__name__)
_IDLE = 0.1
_SMALL = 100
_CLOSE_SECONDS = 5.0
_MICROS = 1_000_000


class Handing:
    """One spool's records on their way to one listener, over all its instances. For that listener's thread."""

    def __init__(
        self,
        name: str,
        journal: Journal,
        cursor: Cursor,
        families: frozenset[Family],
        options: BusOptions,
        *,
        meter: Meter,
        stop: Stop,
        progress: Progress,
        on_lost: OnLost,
        until: int | None = None,
        ages: Ages | None = None,
    ) -> None:
        self.dealt = cursor.committed
        """The offset before which every record is dealt with, or none of this listener's business."""
        self.oldest: int | None = None
        """When the oldest record was appended that was handed over and isn't answered for, in microseconds."""
        self.is_pausing = False
        self.passage = Passage(meter.handed_after, meter.acknowledged_after)
        self._name = name
        self._journal = journal
        self._cursor = cursor
        self._options = options
        self._meter = meter
        self._stop = stop
        self._call = Caller(meter, stop)
        self._progress = progress
        self._until = until
        self._ages = ages or Ages()
        self._pauses = Pauses(options.first_pause, options.longest_pause)
        self._outstanding = Outstanding()
        self._intake = Intake(name, journal, cursor, families, options, on_lost=on_lost)
        self._reading, self._committing = News(), News()
        self._failures = 0
        self._nap = 0.0
        self._commit_at = 0.0

    @property
    def told(self) -> int:
        """The offset behind everything that was told so far."""
        return self._journal.next_offset

    @property
    def lag(self) -> int:
        """Records that aren't dealt with, those counted too that will be passed over."""
        return max(0, self._journal.next_offset - self.dealt)

    @property
    def lag_seconds(self) -> float:
        """How old the oldest of those is: to a second or so, where it wasn't handed over yet."""
        oldest = self.oldest
        if oldest is not None:
            return max(0.0, (wall_micros() - oldest) / _MICROS)
        return self._ages.of(self.dealt) if self.lag else 0.0

    def serve(self, listener: DurableListener) -> Ending:
        """Hand over until the bus stops, the end of a dead driver's spool is reached, or the listener is set aside."""
        self._outstanding = Outstanding()
        self.passage.give_up()
        self._cursor.rewind()
        self._failures = 0
        while not self._is_over():
            try:
                self._step(listener)
            except CallError as e:  # noqa: PERF203 - nothing beside a listener's call
                if not self._goes_on(e.cause):
                    self._close(listener)
                    return Ending.ASIDE
            except StorageError as e:
                self._hold(e)
        self._close(listener)
        return Ending.OVER

    def end(self) -> None:
        """Give the cursor up."""
        self._commit()
        self._cursor.close()

    def _is_over(self) -> bool:
        if self._stop.is_begun and (self._stop.left_to_drain <= 0 or self.dealt >= self._journal.next_offset):
            return True
        return self._until is not None and self.dealt >= self._until

    def _step(self, listener: DurableListener) -> None:
        batch = self._next_batch()
        if batch is not None:
            self._note(self._call(lambda: listener.handle(batch)))
            if len(batch) < _SMALL and self._is_at_end and not self._stop.is_begun:
                self._stop.pause(self._options.linger)
        elif self._outstanding:
            self._flush(listener)
        if time.monotonic() >= self._commit_at:
            self._commit()

    @property
    def _is_at_end(self) -> bool:
        """Whether a batch is small because there is no more, and not because of how the journal is read."""
        return self._cursor.position >= self._journal.next_offset

    def _flush(self, listener: DurableListener) -> None:
        seconds = self._stop.left_to_drain if self._stop.is_begun else self._options.flush_slice
        began = time.monotonic()
        moved = self._note(self._call(lambda: listener.flush(seconds)))
        took = time.monotonic() - began
        self._nap = 0.0 if moved else max(0.0, min(seconds, self._options.flush_slice) - took)

    def _next_batch(self) -> Batch | None:
        """What is to be handed over next; waits a moment for it where there is nothing else to do."""
        nap, self._nap = (self._nap if self._outstanding else _IDLE), 0.0
        if not self._has_room():
            self._stop.pause(nap)
            return None
        wanted = self._intake.read(self.dealt, nap)
        if not wanted:
            self._settle()
            return None
        self._outstanding.hand(Position(wanted[-1].offset), wanted[0].time, len(wanted), _size(wanted))
        self.oldest = self._outstanding.oldest
        self._meter.handed += len(wanted)
        self.passage.hand(wanted)
        return self._intake.batch(wanted)

    def _has_room(self) -> bool:
        options, outstanding = self._options, self._outstanding
        return outstanding.count < options.outstanding_count and outstanding.size < options.outstanding_bytes

    def _note(self, answer: Position | None) -> bool:
        try:
            moved = self._outstanding.answered(answer)
        except BrokenWordError as e:
            self._meter.failed(e)
            raise CallError(e) from e
        if moved and answer is not None:
            if self._meter.errors.over() or self._failures or self.is_pausing:
                _LOG.info("listener %s goes on", self._name)
            self._pauses.reset()
            self._failures = 0
            self.is_pausing = False
            self.dealt = max(self.dealt, answer + 1)
            self.passage.answered(answer)
            self.oldest = self._outstanding.oldest
        self._settle()
        return moved

    def _settle(self) -> None:
        """Where all that was read is answered for, or passed over, it is dealt with."""
        if not self._outstanding:
            self.dealt = max(self.dealt, self._cursor.position)
        self._intake.dealt(self.dealt)
        self._progress.made()

    def _goes_on(self, cause: BaseException) -> bool:
        """The listener raised: whether it is tried again, after a pause, with all that is above its last answer."""
        self._outstanding.give_up()
        self.passage.give_up()
        self._intake.give_up()
        self._cursor.rewind()
        if isinstance(cause, TransientError):
            self._pause(cause)
            return True
        self._failures += 1
        if isinstance(cause, TerminalError) or self._failures >= self._options.attempts:
            return False
        self._pause(cause)
        return True

    def _pause(self, cause: BaseException) -> None:
        pause = self._pauses.next()
        if not self.is_pausing:
            _LOG.warning("listener %s is tried again until it goes on: %s", self._name, words_of(cause))
        self.is_pausing = True
        self._commit()
        self._stop.pause(pause)

    def _hold(self, error: StorageError) -> None:
        """The spool can't be read just now: nobody's fault here."""
        self._meter.errors.raised(error)
        if self._reading.is_news(str(error)):
            _LOG.warning("listener %s waits for its spool: %s", self._name, error)
        self._stop.pause(self._pauses.next())

    def _close(self, listener: DurableListener) -> None:
        """Close an instance. If it says so, all that was read is dealt with: after an error that is what stands before
        the cursor, so what one gave up comes again whatever it says."""
        try:
            is_done = self._call(lambda: listener.close(min(_CLOSE_SECONDS, self._stop.left)))
        except CallError as e:
            _LOG.warning("closing listener %s failed: %s", self._name, words_of(e.cause))
            is_done = False
        if is_done is True:
            self._outstanding.give_up()
            self.passage.answered()
            self._settle()
        self._commit()

    def _commit(self) -> None:
        """Move the cursor; what goes wrong costs records that are handed over twice."""
        self._commit_at = time.monotonic() + self._options.commit_interval
        target = min(self.dealt, self._cursor.position)
        if target > self._cursor.committed:
            try:
                self._cursor.commit(target)
                self._committing.over()
            except (StorageError, TerminalError) as e:
                if self._committing.is_news(str(e)):
                    _LOG.warning("the cursor of listener %s can't move now: %s", self._name, e)


def _size(records: list[Kept]) -> int:
    return sum(len(each.value) for each in records)
