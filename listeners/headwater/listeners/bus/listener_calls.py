"""Calls a listener: measures the call, wraps what it raises in CallError, and abandons calls at stop."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from enum import Enum
from typing import TypeVar

from headwater.listeners.bus.report import ListenerMeter

T = TypeVar("T")
_CLOSE_SHARE = 0.25
_LONGEST_CLOSE = 1.0


class ServeResult(Enum):
    """Why serving an instance of a listener ended."""

    FINISHED = "nothing more is to be done"
    SUSPENDED = "it is closed, and another is to be made later"


class CallError(Exception):
    """A listener raised `cause`."""

    def __init__(self, cause: BaseException) -> None:
        super().__init__(str(cause))
        self.cause = cause


class AbandonedCallError(BaseException):
    """A call returned after the bus had stopped; the listener isn't called again."""


class StopSignal:
    """Signals one listener's thread to stop, with a deadline. Part of the time is reserved for `close`."""

    def __init__(self) -> None:
        self.is_given_up = False
        self._event = threading.Event()
        self._deadline = self._drained = float("inf")

    @property
    def is_begun(self) -> bool:
        return self._event.is_set()

    @property
    def left(self) -> float:
        return max(0.0, self._deadline - time.monotonic())

    @property
    def left_to_drain(self) -> float:
        return max(0.0, self._drained - time.monotonic())

    def begin(self, deadline: float) -> None:
        self._deadline = deadline
        self._drained = deadline - min(_LONGEST_CLOSE, _CLOSE_SHARE * max(0.0, deadline - time.monotonic()))
        self._event.set()

    def give_up(self) -> None:
        self.is_given_up = True
        self.begin(time.monotonic())

    def check(self) -> None:
        if self.is_given_up:
            raise AbandonedCallError

    def pause(self, seconds: float) -> None:
        """Wait; when the bus begins to stop, the wait is over, and later ones are no longer than the time there is."""
        if self.is_begun:
            time.sleep(min(seconds, self.left_to_drain))
        else:
            self._event.wait(seconds)


class ListenerCaller:
    """Calls one listener, on one thread."""

    def __init__(self, meter: ListenerMeter, stop: StopSignal) -> None:
        self._meter = meter
        self._stop = stop

    def __call__(self, call: Callable[[], T]) -> T:
        try:
            result = self._meter.measure(call)
        except BaseException as e:
            self._stop.check()
            self._meter.record_failure(e)
            raise CallError(e) from e
        self._stop.check()
        return result
