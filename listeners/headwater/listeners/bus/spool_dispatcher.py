"""Dispatches the records of a spool to a durable listener, by the rules of `headwater.spi.DurableListener`."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from headwater.errors import HeadwaterError, TerminalError, TransientError
from headwater.events.clock import wall_micros
from headwater.events.envelope import EventFamily
from headwater.journal import JournalRecord as Kept
from headwater.journal import StorageError
from headwater.listeners.bus.durations import Backoff, DeliveryTimes, OnceLogger, RecordAges
from headwater.listeners.bus.gap_tracker import SpoolCursor, SpoolSource
from headwater.listeners.bus.listener_calls import CallError, ListenerCaller, ServeResult, StopSignal
from headwater.listeners.bus.listener_errors import describe_error
from headwater.listeners.bus.options import BusOptions
from headwater.listeners.bus.report import ListenerMeter, ProgressSignal
from headwater.listeners.bus.spool_reader import InvalidAcknowledgementError, OnLost, OutstandingRecords, SpoolReader
from headwater.spi import DurableListener, RecordBatch, RefusedRecordError, SpoolPosition

_LOG = logging.getLogger(__name__)
_IDLE_SECONDS = 0.1
_SMALL_BATCH = 100
_CLOSE_SECONDS = 5.0
_MICROS_PER_SECOND = 1_000_000
_MOST_REFUSED = 100
"""So many events in a row that are refused for ever are not each event's fault: somebody must see to the target."""
OnRefused = Callable[[str, Kept, str], None]
"""Takes a listener's name, a record that it refuses for ever, and why. A HeadwaterError: it couldn't be kept."""


class SpoolDispatcher:
    """Delivers one spool to one listener, across all its instances. For that listener's thread only."""

    def __init__(
        self,
        name: str,
        source: SpoolSource,
        cursor: SpoolCursor,
        families: frozenset[EventFamily],
        options: BusOptions,
        *,
        meter: ListenerMeter,
        stop: StopSignal,
        progress: ProgressSignal,
        on_lost: OnLost,
        on_refused: OnRefused,
        until: int | None = None,
        record_ages: RecordAges | None = None,
    ) -> None:
        self.acknowledged_offset = cursor.committed
        """Every record before this offset is acknowledged, or isn't meant for this listener."""
        self.oldest_time: int | None = None
        """When the oldest unacknowledged record was appended, in microseconds."""
        self.is_pausing = False
        self.delivery_times = DeliveryTimes(meter.received_after, meter.acknowledged_after)
        self._name = name
        self._source = source
        self._cursor = cursor
        self._options = options
        self._meter = meter
        self._stop = stop
        self._call = ListenerCaller(meter, stop)
        self._progress = progress
        self._until = until
        self._on_refused = on_refused
        self._record_ages = record_ages or RecordAges()
        self._backoff = Backoff(options.first_backoff, options.longest_backoff)
        self._outstanding = OutstandingRecords()
        self._reader = SpoolReader(name, source, cursor, families, options, on_lost=on_lost)
        self._read_errors, self._commit_errors = OnceLogger(), OnceLogger()
        self._failures = 0
        self._refused_in_row = 0  # over all instances
        self._idle_pause = 0.0
        self._commit_at = 0.0

    @property
    def end_offset(self) -> int:
        """The offset after everything that was appended so far."""
        return self._source.next_offset

    @property
    def lag(self) -> int:
        """Unacknowledged records, including those that will be skipped."""
        return max(0, self._source.next_offset - self.acknowledged_offset)

    @property
    def lag_seconds(self) -> float:
        """Age of the oldest of those; accurate to about a second before it is dispatched."""
        oldest = self.oldest_time
        if oldest is not None:
            return max(0.0, (wall_micros() - oldest) / _MICROS_PER_SECOND)
        return self._record_ages.of(self.acknowledged_offset) if self.lag else 0.0

    def serve(self, listener: DurableListener) -> ServeResult:
        """Dispatch until the bus stops, a dead driver's spool ends, or the listener is suspended."""
        self._outstanding = OutstandingRecords()
        self.delivery_times.reset()
        self._cursor.rewind()
        self._failures = 0
        while not self._is_finished():
            try:
                self._step(listener)
            except CallError as e:  # noqa: PERF203 - nothing beside a listener's call
                if not self._should_retry(e.cause):
                    self._close(listener)
                    return ServeResult.SUSPENDED
            except StorageError as e:
                self._wait_for_spool(e)
        self._close(listener)
        return ServeResult.FINISHED

    def end(self) -> None:
        """Commit and close the cursor."""
        self._commit()
        self._cursor.close()

    def _is_finished(self) -> bool:
        if self._stop.is_begun and (
            self._stop.left_to_drain <= 0 or self.acknowledged_offset >= self._source.next_offset
        ):
            return True
        return self._until is not None and self.acknowledged_offset >= self._until

    def _step(self, listener: DurableListener) -> None:
        batch = self._next_batch()
        if batch is not None:
            self._record(self._call(lambda: listener.handle(batch)))
            if len(batch) < _SMALL_BATCH and self._is_at_end and not self._stop.is_begun:
                self._stop.pause(self._options.linger_seconds)
        elif self._outstanding:
            self._flush(listener)
        if time.monotonic() >= self._commit_at:
            self._commit()

    @property
    def _is_at_end(self) -> bool:
        """Whether a batch is small because no more records exist."""
        return self._cursor.position >= self._source.next_offset

    def _flush(self, listener: DurableListener) -> None:
        seconds = self._stop.left_to_drain if self._stop.is_begun else self._options.flush_slice
        began = time.monotonic()
        moved = self._record(self._call(lambda: listener.flush(seconds)))
        took = time.monotonic() - began
        self._idle_pause = 0.0 if moved else max(0.0, min(seconds, self._options.flush_slice) - took)

    def _next_batch(self) -> RecordBatch | None:
        """What is to be handed over next; waits a moment for it where there is nothing else to do."""
        nap, self._idle_pause = (self._idle_pause if self._outstanding else _IDLE_SECONDS), 0.0
        if not self._has_room():
            self._stop.pause(nap)
            return None
        wanted = self._reader.read(self.acknowledged_offset, nap)
        if not wanted:
            self._advance()
            return None
        self._outstanding.add(SpoolPosition(wanted[-1].offset), wanted[0].time, len(wanted), _total_size(wanted))
        self.oldest_time = self._outstanding.oldest_time
        self._meter.received += len(wanted)
        self.delivery_times.start(wanted)
        return self._reader.batch(wanted)

    def _has_room(self) -> bool:
        options, outstanding = self._options, self._outstanding
        return outstanding.count < options.outstanding_count and outstanding.size < options.outstanding_bytes

    def _record(self, answer: SpoolPosition | None) -> bool:
        try:
            moved = self._outstanding.acknowledge(answer)
        except InvalidAcknowledgementError as e:
            self._meter.record_failure(e)
            raise CallError(e) from e
        if moved and answer is not None:
            if self._meter.errors.clear() or self._failures or self.is_pausing:
                _LOG.info("listener %s goes on", self._name)
            self._backoff.reset()
            self._failures = self._refused_in_row = 0
            self.is_pausing = False
            self.acknowledged_offset = max(self.acknowledged_offset, answer + 1)
            self.delivery_times.acknowledge(answer)
            self.oldest_time = self._outstanding.oldest_time
        self._advance()
        return moved

    def _advance(self) -> None:
        """Advance the acknowledged offset where everything that was read is acknowledged or skipped."""
        if not self._outstanding:
            self.acknowledged_offset = max(self.acknowledged_offset, self._cursor.position)
        self._reader.acknowledge(self.acknowledged_offset)
        self._progress.notify()

    def _should_retry(self, cause: BaseException) -> bool:
        """Return whether to retry what isn't acknowledged, after a pause, because the listener raised."""
        end = self._cursor.position
        self._outstanding.reset()
        self.delivery_times.reset()
        self._reader.rewind()
        self._cursor.rewind()
        if isinstance(cause, RefusedRecordError) and self.acknowledged_offset <= cause.position < end:
            self._refused_in_row += 1
            if self._refused_in_row > _MOST_REFUSED:
                return False
            self._put_aside(cause)
            return True
        if isinstance(cause, TransientError):
            self._pause(cause)
            return True
        self._failures += 1
        if isinstance(cause, TerminalError) or self._failures >= self._options.attempts:
            return False
        self._pause(cause)
        return True

    def _put_aside(self, error: RefusedRecordError) -> None:
        """Move a record to the listener's dead letters; where that fails the listener is asked again after a pause."""
        try:
            with self._source.tail(error.position) as tail:
                found = next((record for record in tail.read(1).records if record.offset == error.position), None)
            if found is not None:  # else it is lost, and a Gap says so
                self._on_refused(self._name, found, str(error))
        except HeadwaterError as e:
            _LOG.warning("a dead letter of listener %s can't be kept now, and holds it up: %s", self._name, e)
            self._pause(error)
            return
        self._reader.leave_out(error.position)
        self._failures = 0

    def _pause(self, cause: BaseException) -> None:
        pause = self._backoff.next()
        if not self.is_pausing:
            _LOG.warning("listener %s is retried until it succeeds: %s", self._name, describe_error(cause))
        self.is_pausing = True
        self._commit()
        self._stop.pause(pause)

    def _wait_for_spool(self, error: StorageError) -> None:
        """Wait, because the spool can't be read now."""
        self._meter.errors.record_exception(error)
        if self._read_errors.is_new(str(error)):
            _LOG.warning("listener %s waits for its spool: %s", self._name, error)
        self._stop.pause(self._backoff.next())

    def _close(self, listener: DurableListener) -> None:
        """Close an instance. If it returns True, everything that was read is acknowledged.

        After an error that is what stands before the cursor, so dropped records are dispatched again in any case.
        """
        try:
            is_done = self._call(lambda: listener.close(min(_CLOSE_SECONDS, self._stop.left)))
        except CallError as e:
            _LOG.warning("closing listener %s failed: %s", self._name, describe_error(e.cause))
            is_done = False
        if is_done is True:
            self._outstanding.reset()
            self.delivery_times.acknowledge()
            self._advance()
        self._commit()

    def _commit(self) -> None:
        """Commit the cursor. If that fails, records are dispatched a second time."""
        self._commit_at = time.monotonic() + self._options.commit_interval
        target = min(self.acknowledged_offset, self._cursor.position)
        if target > self._cursor.committed:
            try:
                self._cursor.commit(target)
                self._commit_errors.reset()
            except (StorageError, TerminalError) as e:
                if self._commit_errors.is_new(str(e)):
                    _LOG.warning("the cursor of listener %s can't move now: %s", self._name, e)


def _total_size(records: list[Kept]) -> int:
    return sum(len(record.value) for record in records)
