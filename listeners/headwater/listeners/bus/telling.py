"""Telling events to a plain listener, out of a bounded queue: what doesn't fit is counted, and told as a number."""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from typing import NamedTuple

from headwater.errors import TerminalError
from headwater.events.envelope import Event
from headwater.listeners.bus.calls import Caller, CallError, Ending, Stop
from headwater.listeners.bus.errors import words_of
from headwater.listeners.bus.news import News
from headwater.listeners.bus.options import BusOptions
from headwater.listeners.bus.report import Meter, Progress
from headwater.spi import Listener

_LOG = logging.getLogger(__name__)
_IDLE = 0.1
_CLOSE_SECONDS = 5.0


class _Waiting(NamedTuple):
    missed: int
    """How many were dropped right before it."""
    event: Event
    size: int
    offered: float
    """When, by the clock that is never set."""


class Telling:
    """A plain listener's queue, over all its instances. `offer` and what follows it is for any thread."""

    def __init__(self, name: str, options: BusOptions, *, meter: Meter, stop: Stop, progress: Progress) -> None:
        self.missed = 0
        self._name = name
        self._options = options
        self._meter = meter
        self._stop = stop
        self._call = Caller(meter, stop)
        self._progress = progress
        self._changed = threading.Condition()
        self._queue: deque[_Waiting] = deque()
        self._in_hand: _Waiting | None = None
        self._size = 0
        self._untold = 0
        self._is_deaf = False
        self._offered = 0
        self._done = 0
        self._flush_to = self._flushed = 0
        self._flush_by = 0.0
        self._failures = 0
        self._news = News()

    def offer(self, event: Event, size: int) -> None:
        """Put an event into the queue, or count it; never waits."""
        with self._changed:
            is_full = len(self._queue) >= self._options.queue_count or self._size + size > self._options.queue_bytes
            if self._is_deaf or (is_full and self._queue):
                self._untold += 1
                self.missed += 1
                return
            self._queue.append(_Waiting(self._untold, event, size, time.monotonic()))
            self._untold = 0
            self._size += size
            self._offered += 1
            self._changed.notify()

    @property
    def lag(self) -> int:
        return self._offered - self._done

    @property
    def lag_seconds(self) -> float:
        """How long the oldest has waited that isn't dealt with."""
        with self._changed:
            waiting = self._in_hand or (self._queue[0] if self._queue else None)
        return 0.0 if waiting is None else time.monotonic() - waiting.offered

    def ask_to_flush(self, timeout: float) -> int:
        """Have everything flushed that was offered so far; `is_flushed` of the answer tells when that is done."""
        with self._changed:
            self._flush_to = self._offered
            self._flush_by = time.monotonic() + timeout
            self._changed.notify()
            return self._flush_to

    def is_flushed(self, mark: int) -> bool:
        return self._flushed >= mark

    def close_ears(self) -> None:
        """Nobody listens until further notice: what waits, and what comes, is missed."""
        with self._changed:
            self._is_deaf = True
            dropped = sum(each.missed for each in self._queue) + len(self._queue)
            self._untold += dropped
            self.missed += len(self._queue)
            self._done += len(self._queue)
            self._queue.clear()
            self._size = 0

    def serve(self, listener: Listener) -> Ending:
        """Tell events until the bus stops or the listener is set aside."""
        self._is_deaf = False
        self._failures = 0
        while True:
            waiting = self._next()
            if waiting is None and self._stop.is_begun:
                break
            try:
                if waiting is not None:
                    self._tell(listener, waiting)
                self._flush_if_asked(listener)
                if waiting is not None and not self._queue and not self._stop.is_begun:
                    self._stop.pause(self._options.linger)
            except CallError as e:
                if self._is_hopeless(e.cause):
                    self.close_ears()
                    self._close(listener)
                    return Ending.ASIDE
        self._close(listener)
        return Ending.OVER

    def _tell(self, listener: Listener, waiting: _Waiting) -> None:
        self._meter.handed += 1
        self._meter.handed_after.note(time.monotonic() - waiting.offered)
        try:
            if waiting.missed:
                self._call(lambda: listener.on_missed(waiting.missed))
            self._call(lambda: listener.on_event(waiting.event))
        finally:
            self._in_hand = None
            self._done += 1
            self._progress.made()
        self._meter.acknowledged_after.note(time.monotonic() - waiting.offered)
        self._failures = 0
        if self._meter.errors.over():
            _LOG.info("listener %s goes on", self._name)

    def _flush_if_asked(self, listener: Listener) -> None:
        mark = self._flush_to
        if self._flushed < mark <= self._done:
            self._flush_to = 0
            self._call(lambda: listener.flush(max(0.0, self._flush_by - time.monotonic())))
            self._flushed = mark
            self._progress.made()

    def _next(self) -> _Waiting | None:
        with self._changed:
            if self._stop.is_begun and self._stop.left_to_drain <= 0:
                return None
            is_asked = self._flush_to > self._flushed
            if not (self._queue or is_asked or self._stop.is_begun):
                self._changed.wait(_IDLE)
            if not self._queue:
                return None
            waiting = self._in_hand = self._queue.popleft()
            self._size -= waiting.size
            return waiting

    def _is_hopeless(self, cause: BaseException) -> bool:
        self._failures += 1
        if self._news.is_news(words_of(cause)):
            _LOG.warning("listener %s failed: %s", self._name, words_of(cause))
        return isinstance(cause, TerminalError) or self._failures >= self._options.attempts

    def _close(self, listener: Listener) -> None:
        try:
            if self._untold and not self._is_deaf:
                untold, self._untold = self._untold, 0
                self._call(lambda: listener.on_missed(untold))
            self._call(lambda: listener.flush(self._stop.left_to_drain if self._stop.is_begun else 0.0))
        except CallError as e:
            _LOG.warning("flushing listener %s failed: %s", self._name, words_of(e.cause))
        try:
            self._call(lambda: listener.close(min(_CLOSE_SECONDS, self._stop.left)))
        except CallError as e:
            _LOG.warning("closing listener %s failed: %s", self._name, words_of(e.cause))
