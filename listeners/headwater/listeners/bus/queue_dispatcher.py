"""Dispatches events to a plain listener from a bounded queue; counts what doesn't fit and reports the number."""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from typing import NamedTuple

from headwater.errors import TerminalError
from headwater.events.envelope import Event
from headwater.listeners.bus.durations import OnceLogger
from headwater.listeners.bus.listener_calls import CallError, ListenerCaller, ServeResult, StopSignal
from headwater.listeners.bus.listener_errors import describe_error
from headwater.listeners.bus.options import BusOptions
from headwater.listeners.bus.report import ListenerMeter, ProgressSignal
from headwater.spi import Listener

_LOG = logging.getLogger(__name__)
_IDLE_SECONDS = 0.1
_CLOSE_SECONDS = 5.0


class _QueuedEvent(NamedTuple):
    missed: int
    """Events dropped right before this one."""
    event: Event
    size: int
    offered: float
    """When it was offered, by the monotonic clock."""


class QueueDispatcher:
    """The queue of a plain listener, across all its instances. `offer` and the methods after it are thread-safe."""

    def __init__(
        self, name: str, options: BusOptions, *, meter: ListenerMeter, stop: StopSignal, progress: ProgressSignal
    ) -> None:
        self.missed = 0
        self._name = name
        self._options = options
        self._meter = meter
        self._stop = stop
        self._call = ListenerCaller(meter, stop)
        self._progress = progress
        self._changed = threading.Condition()
        self._queue: deque[_QueuedEvent] = deque()
        self._current: _QueuedEvent | None = None
        self._size = 0
        self._unreported = 0
        self._is_discarding = False
        self._offered = 0
        self._done = 0
        self._flush_to = self._flushed = 0
        self._flush_by = 0.0
        self._failures = 0
        self._error_log = OnceLogger()

    def offer(self, event: Event, size: int) -> None:
        """Put an event into the queue, or count it as missed if the queue is full; never waits."""
        with self._changed:
            is_full = len(self._queue) >= self._options.queue_count or self._size + size > self._options.queue_bytes
            if self._is_discarding or (is_full and self._queue):
                self._unreported += 1
                self.missed += 1
                return
            self._queue.append(_QueuedEvent(self._unreported, event, size, time.monotonic()))
            self._unreported = 0
            self._size += size
            self._offered += 1
            self._changed.notify()

    @property
    def lag(self) -> int:
        return self._offered - self._done

    @property
    def lag_seconds(self) -> float:
        """How long the oldest queued event has waited."""
        with self._changed:
            waiting = self._current or (self._queue[0] if self._queue else None)
        return 0.0 if waiting is None else time.monotonic() - waiting.offered

    def ask_to_flush(self, timeout: float) -> int:
        """Request a flush of everything offered so far, and return a mark for `is_flushed`."""
        with self._changed:
            self._flush_to = self._offered
            self._flush_by = time.monotonic() + timeout
            self._changed.notify()
            return self._flush_to

    def is_flushed(self, mark: int) -> bool:
        return self._flushed >= mark

    def discard_queue(self) -> None:
        """Drop what waits and what comes, until `serve` is called again."""
        with self._changed:
            self._is_discarding = True
            dropped = sum(entry.missed for entry in self._queue) + len(self._queue)
            self._unreported += dropped
            self.missed += len(self._queue)
            self._done += len(self._queue)
            self._queue.clear()
            self._size = 0

    def serve(self, listener: Listener) -> ServeResult:
        """Dispatch events until the bus stops or the listener is suspended."""
        self._is_discarding = False
        self._failures = 0
        while True:
            waiting = self._next()
            if waiting is None and self._stop.is_begun:
                break
            try:
                if waiting is not None:
                    self._dispatch(listener, waiting)
                self._flush_when_requested(listener)
                if waiting is not None and not self._queue and not self._stop.is_begun:
                    self._stop.pause(self._options.linger_seconds)
            except CallError as e:
                if self._should_suspend(e.cause):
                    self.discard_queue()
                    self._close(listener)
                    return ServeResult.SUSPENDED
        self._close(listener)
        return ServeResult.FINISHED

    def _dispatch(self, listener: Listener, waiting: _QueuedEvent) -> None:
        self._meter.received += 1
        self._meter.received_after.record(time.monotonic() - waiting.offered)
        try:
            if waiting.missed:
                self._call(lambda: listener.on_missed(waiting.missed))
            self._call(lambda: listener.on_event(waiting.event))
        finally:
            self._current = None
            self._done += 1
            self._progress.notify()
        self._meter.acknowledged_after.record(time.monotonic() - waiting.offered)
        self._failures = 0
        if self._meter.errors.clear():
            _LOG.info("listener %s goes on", self._name)

    def _flush_when_requested(self, listener: Listener) -> None:
        mark = self._flush_to
        if self._flushed < mark <= self._done:
            self._flush_to = 0
            self._call(lambda: listener.flush(max(0.0, self._flush_by - time.monotonic())))
            self._flushed = mark
            self._progress.notify()

    def _next(self) -> _QueuedEvent | None:
        with self._changed:
            if self._stop.is_begun and self._stop.left_to_drain <= 0:
                return None
            is_asked = self._flush_to > self._flushed
            if not (self._queue or is_asked or self._stop.is_begun):
                self._changed.wait(_IDLE_SECONDS)
            if not self._queue:
                return None
            waiting = self._current = self._queue.popleft()
            self._size -= waiting.size
            return waiting

    def _should_suspend(self, cause: BaseException) -> bool:
        self._failures += 1
        if self._error_log.is_new(describe_error(cause)):
            _LOG.warning("listener %s failed: %s", self._name, describe_error(cause))
        return isinstance(cause, TerminalError) or self._failures >= self._options.attempts

    def _close(self, listener: Listener) -> None:
        try:
            if self._unreported and not self._is_discarding:
                untold, self._unreported = self._unreported, 0
                self._call(lambda: listener.on_missed(untold))
            self._call(lambda: listener.flush(self._stop.left_to_drain if self._stop.is_begun else 0.0))
        except CallError as e:
            _LOG.warning("flushing listener %s failed: %s", self._name, describe_error(e.cause))
        try:
            self._call(lambda: listener.close(min(_CLOSE_SECONDS, self._stop.left)))
        except CallError as e:
            _LOG.warning("closing listener %s failed: %s", self._name, describe_error(e.cause))
