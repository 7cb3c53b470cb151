"""What Spark reports before capture is ready: kept in the driver's JVM, and read first by the listener that comes."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import datetime, timezone
from importlib import resources
from typing import Any, Final

QUEUE: Final = "headwater"
"""The name of our queue on Spark's listener bus."""
_CLASS: Final = "EarlyEvents"
_MAX_EVENTS: Final = 5_000
"""Of a statement there are about five. Each keeps its plan in the heap."""


class EarlyEvents:
    """For one SparkContext. Where capture is ready in time, nothing of it is ever made.

    One class is compiled for it by itself: those that capture needs take the time that this is there for.
    """

    def __init__(self, spark_context: Any) -> None:
        self._context = spark_context
        self._lock = threading.Lock()
        self._listener: Any = None
        self._is_over = False
        self.dropped = 0
        """So many events found no room. Known when capture has taken over."""
        self.since: datetime | None = None
        """From when on all is kept; None as long as nothing is."""

    def begin(self) -> None:
        """Keep what Spark reports from now on, unless capture has taken over."""
        listener = self._make_listener()
        with self._lock:
            if not self._is_over:
                self._bus().addToQueue(listener, QUEUE)
                self._listener = listener
                self.since = datetime.now(timezone.utc)

    def hand_over(self, read_first: Callable[[Any], None], register: Callable[[], object]) -> bool:
        """Capture takes over: it is registered behind what keeps the events, so no event is missed between the two, and
        told what to read first. False if there is nothing, and never will be. `read_first` gets
        Java's EarlyEvents."""
        with self._lock:
            self._is_over = True
            if self._listener is not None:
                read_first(self._listener)
            register()
        if self._listener is None:
            return False
        self._bus().removeListener(self._listener)
        self.dropped = int(self._listener.dropped())
        self._listener = None
        return True

    def _bus(self) -> Any:
        return self._context._jsc.sc().listenerBus()

    def _make_listener(self) -> Any:
        jvm = self._context._jvm
        compiler = jvm.org.codehaus.janino.SimpleCompiler()
        compiler.setParentClassLoader(jvm.java.lang.Thread.currentThread().getContextClassLoader())
        compiler.cook(_source())
        constructor = compiler.getClassLoader().loadClass(f"headwater.capture.{_CLASS}").getConstructors()[0]
        arguments = self._context._gateway.new_array(jvm.java.lang.Object, 2)
        arguments[0], arguments[1] = self._context._jsc.sc(), _MAX_EVENTS
        return constructor.newInstance(arguments)


def _source() -> str:
    return resources.files("headwater.listeners.capture").joinpath("java").joinpath(f"{_CLASS}.java").read_text("utf-8")
