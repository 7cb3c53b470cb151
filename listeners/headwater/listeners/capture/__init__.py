"""Spark → events: a listener in the driver's JVM writes records, and a thread here translates them into events."""

from __future__ import annotations

import logging
import re
import threading
import time
from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Protocol
from uuid import uuid4

from headwater.events import Event
from headwater.events.health import GapReason
from headwater.listeners.capture.command_registry import ignored_commands
from headwater.listeners.capture.context import CaptureContext
from headwater.listeners.capture.driver_listener import DriverListener
from headwater.listeners.capture.early_events import EarlyEvents
from headwater.listeners.capture.jvm import DegradedPart, Py4jLogFilter
from headwater.listeners.capture.pipeline import EventPipeline, Jobs
from headwater.listeners.capture.plan_cache import ALL
from headwater.listeners.capture.records import InvalidRecord, MarkRecord, parse_record
from headwater.listeners.settings import Settings
from headwater.listeners.spark_versions import untested

if TYPE_CHECKING:
    from headwater.events.producer import Producer

_LOG = logging.getLogger(__name__)
_MAX_RECORDS: Final = 100
_WAIT_SECONDS: Final = 1.0
_WAITING_SHARE: Final = 0.5
"""How much of the time to close may go to what waited for something."""
_PAUSES: Final = (0.05, 0.5, 0.0)
"""After an answer that failed; then nobody is asked any more."""


class EventSink(Protocol):
    @property
    def producer(self) -> Producer: ...
    def emit(self, draft: Event) -> object: ...


class Capture:
    """From `start` to `close`, for one SparkContext. Nothing here is ever called on a thread of the user's."""

    def __init__(
        self,
        spark_context: Any,
        settings: Settings,
        bus: EventSink,
        jobs: Jobs,
        context: CaptureContext,
        *,
        early: EarlyEvents | None = None,
    ) -> None:
        self._early = early
        context.posts_vain_creations = _spark_version(spark_context) >= (4, 1)
        if said := untested(str(spark_context.version)):
            _LOG.warning("Spark %s: whatever of it doesn't fit will be named, and be a Gap", said)
        self._listener = DriverListener(spark_context, settings, ignored_commands())
        context.degraded = tuple(degraded.part for degraded in self._listener.degraded)
        self._pipeline = EventPipeline(context, jobs, bus.producer.next_barrier, bus.emit, settings)
        self._forgotten: list[str] = []
        self._marks: dict[str, threading.Event] = {}
        self._stopped = threading.Event()
        self._log_filter = Py4jLogFilter()
        self._thread = threading.Thread(target=self._run, name="headwater-capture", daemon=True)

    @property
    def sees_outside_commits(self) -> bool:
        """Whether it sees what is committed to tables where no statement does it."""
        return self._listener.sees_outside_commits

    def start(self) -> None:
        self._log_filter.begin()
        self._listener.start(self._early)
        self._listener.record_start()
        self._report_degraded(self._listener.degraded)
        self._thread.start()

    def drain(self, timeout: float) -> bool:
        """Whether all that Spark has shown so far was reported within this time."""
        token, mark = uuid4().hex, threading.Event()
        deadline = time.monotonic() + timeout
        self._marks[token] = mark
        try:
            settled = self._listener.settle(token, timeout)
            return mark.wait(max(0.0, deadline - time.monotonic())) and settled
        finally:
            self._marks.pop(token, None)

    def close(self, timeout: float) -> None:
        """Report what waited for something, unregister everything, and let the thread end."""
        deadline = time.monotonic() + timeout
        self._report_waiting(timeout)
        self._stopped.set()
        try:
            self._listener.stop()
            self._log_filter.end()
        except Exception as e:  # noqa: BLE001 - the JVM may be gone, and all that was in it too
            _LOG.debug("the SQL listener can't be removed from the driver: %s", e)
        self._thread.join(max(0.0, deadline - time.monotonic()))
        if not self._listener.are_classes_archived:
            _LOG.info("the end came before all classes were compiled and kept: the next driver compiles the rest")

    def _report_waiting(self, timeout: float) -> None:
        try:
            if self._listener.end_waiting():
                self.drain(_WAITING_SHARE * timeout)
        except Exception as e:  # noqa: BLE001 - the JVM may be gone
            _LOG.debug("what waited in the driver is lost: %s", e)

    def _run(self) -> None:
        self._keep_classes_safely(self._listener.keep_begun_classes)
        self._report_self_test()
        for texts in iter(self._take_records, None):
            for text in texts:
                self._process_safely(text)

    def _report_self_test(self) -> None:
        """Before any statement: it takes the JVM some time to look, for which the job doesn't wait."""
        try:
            self._report_degraded(self._listener.finish_self_test())
        except Exception as e:  # noqa: BLE001 - the JVM may be gone, in whatever way py4j says that
            _LOG.debug("the self-test can't be finished: %s", e)
        # Beside the records, which don't wait for the seconds that it takes to compile what wasn't needed so far.
        keep = partial(self._keep_classes_safely, self._listener.keep_classes)
        threading.Thread(target=keep, name="headwater-classes", daemon=True).start()

    def _keep_classes_safely(self, keep: Callable[[], None]) -> None:
        try:
            keep()
        except Exception as e:  # noqa: BLE001 - the JVM may be gone, in whatever way py4j says that
            _LOG.debug("class files can't be kept: %s", e)

    def _report_degraded(self, parts: Iterable[DegradedPart]) -> None:
        for part in parts:
            self._pipeline.emit_gap(GapReason.NOT_EXACT, str(part))

    def _take_records(self) -> list[str] | None:
        """The next texts; None at the end."""
        for pause in _PAUSES:
            if self._stopped.is_set():
                return None
            self._forgotten += self._pipeline.take_forgotten()
            try:
                texts = self._listener.take(_MAX_RECORDS, _WAIT_SECONDS, self._forgotten)
            except Exception as e:  # noqa: BLE001 - the JVM may be gone, in whatever way py4j says that
                _LOG.debug("the driver's JVM doesn't answer: %s", e)
                self._forgotten = [ALL]
            else:
                self._forgotten = []
                return texts
            self._stopped.wait(pause)
        if not self._stopped.is_set():
            detail = "the driver's JVM doesn't answer any more: what its last statements did may be missing"
            self._pipeline.emit_gap(GapReason.CAPTURE_FAILED, detail)
        return None

    def _process_safely(self, text: str) -> None:
        """Whatever one record does, the next one is read."""
        try:
            record = parse_record(text)
            if isinstance(record, InvalidRecord):
                self._forgotten = [ALL]
            if not isinstance(record, MarkRecord):
                self._pipeline.process(record)
            elif (mark := self._marks.get(record.token)) is not None:
                mark.set()
        except Exception:  # noqa: BLE001 - whatever a record holds
            _LOG.exception("a statement couldn't be reported")


def _spark_version(spark_context: Any) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", str(spark_context.version))[:2])
