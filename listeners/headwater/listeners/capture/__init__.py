"""Spark → events. The tap listens in the driver's JVM; a thread here turns what it says into events for the bus."""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, Protocol
from uuid import uuid4

from headwater.events import Event, Gap, GapReason, JobName
from headwater.listeners.capture.batch.commits import Commits
from headwater.listeners.capture.batch.omitted import Omitting
from headwater.listeners.capture.quiet import Quiet
from headwater.listeners.capture.register import ignored
from headwater.listeners.capture.scene import Scene
from headwater.listeners.capture.streaming.queries import Attributes
from headwater.listeners.capture.tap import QUEUE, Tap
from headwater.listeners.capture.telling import Teller
from headwater.listeners.settings import Settings

if TYPE_CHECKING:
    from headwater.events.producer import Producer

_LOG = logging.getLogger(__name__)
_AT_ONCE: Final = 100
_WAIT: Final = 1.0
_PAUSES: Final = (0.05, 0.5, 0.0)
"""After an answer that failed; then nobody is asked any more."""


class Jobs(Attributes, Protocol):
    @property
    def application_job(self) -> JobName: ...
    @property
    def application_run(self) -> Any: ...


class Bus(Protocol):
    @property
    def producer(self) -> Producer: ...
    def tell(self, draft: Event) -> object: ...


class Capture:
    """From `start` to `close`, for one SparkContext. Nothing here is ever called on a thread of the user's."""

    def __init__(self, context: Any, settings: Settings, bus: Bus, jobs: Jobs, scene: Scene) -> None:
        self._tap = Tap(context, settings, ignored())
        self._jobs = jobs
        self._tell = bus.tell
        omitting = Omitting(scene)
        commits = Commits(scene, omitting, bus.producer.next_barrier, settings.lineage_repeat)
        self._teller = Teller(scene, commits, omitting, jobs, bus.tell)
        self._marks: dict[str, threading.Event] = {}
        self._own = {"mark": self._marked, "lost": self._lost, "failed": self._failed}
        self._stopped = threading.Event()
        self._quiet = Quiet()
        self._thread = threading.Thread(target=self._run, name="headwater-capture", daemon=True)

    def start(self) -> None:
        self._quiet.begin()
        self._tap.start()
        self._thread.start()
        for part in self._tap.degraded:
            self._gap(GapReason.NOT_EXACT, f"{part.part} isn't there, so some snapshots may not be exact: {part.why}")

    def drain(self, timeout: float) -> bool:
        """Whether all that Spark has shown so far was told within this time."""
        token, mark = uuid4().hex, threading.Event()
        deadline = time.monotonic() + timeout
        self._marks[token] = mark
        try:
            settled = self._tap.settle(token, timeout)
            return mark.wait(max(0.0, deadline - time.monotonic())) and settled
        finally:
            self._marks.pop(token, None)

    def close(self, timeout: float) -> None:
        """Unregister everything, and let the thread end."""
        self._stopped.set()
        try:
            self._tap.stop()
            self._quiet.end()
        except Exception as e:  # noqa: BLE001 - the JVM may be gone, and all that was in it too
            _LOG.debug("the tap can't be taken out of the driver: %s", e)
        self._thread.join(timeout)

    def _run(self) -> None:
        for texts in iter(self._next, None):
            for text in texts:
                self._read_safely(text)

    def _next(self) -> list[str] | None:
        """The next texts; None at the end."""
        for pause in _PAUSES:
            if self._stopped.is_set():
                return None
            try:
                return self._tap.take(_AT_ONCE, _WAIT)
            except Exception as e:  # noqa: BLE001 - the JVM may be gone, in whatever way py4j says that
                _LOG.debug("the driver's JVM doesn't answer: %s", e)
            self._stopped.wait(pause)
        if not self._stopped.is_set():
            detail = "the driver's JVM doesn't answer any more: what its last statements did may be missing"
            self._gap(GapReason.CAPTURE_FAILED, detail)
        return None

    def _read_safely(self, text: str) -> None:
        """Whatever one record does, the next one is read."""
        try:
            self._read(text)
        except Exception:  # noqa: BLE001 - whatever a record holds
            _LOG.exception("a statement couldn't be told")

    def _read(self, text: str) -> None:
        try:
            record: Mapping[str, Any] = json.loads(text)
        except ValueError as e:
            self._gap(GapReason.CAPTURE_FAILED, f"what the tap says can't be read: {e}")
            return
        own = self._own.get(record["kind"])
        if own is None:
            self._teller.record(record)
        else:
            own(record)

    def _marked(self, record: Mapping[str, Any]) -> None:
        mark = self._marks.get(record["token"])
        if mark is not None:
            mark.set()

    def _lost(self, record: Mapping[str, Any]) -> None:
        self._gap(
            GapReason.QUEUE_OVERFLOW,
            f"Spark's queue was full: {record['count']} of its events, of all kinds, didn't come to headwater; a "
            f"larger spark.scheduler.listenerbus.eventqueue.{QUEUE}.capacity gives it more room",
            record["count"],
        )

    def _failed(self, record: Mapping[str, Any]) -> None:
        self._gap(GapReason.CAPTURE_FAILED, "what was seen of some statements can't be read", record["count"])

    def _gap(self, reason: GapReason, detail: str, missed: int | None = None) -> None:
        job, run = self._jobs.application_job, self._jobs.application_run
        self._tell(Gap(reason=reason, detail=detail, missed=missed, job=job, run=run))
