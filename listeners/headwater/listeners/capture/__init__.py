"""Spark → events. The tap listens in the driver's JVM; a thread here turns what it says into events for the bus."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, Protocol
from uuid import uuid4

from headwater.events import Event, Gap, GapReason, JobName
from headwater.listeners.capture.batch.commits import Commits
from headwater.listeners.capture.register import ignored
from headwater.listeners.capture.scene import Scene
from headwater.listeners.capture.tap import Tap
from headwater.listeners.capture.telling import Attributes, Teller
from headwater.listeners.settings import Settings

if TYPE_CHECKING:
    from headwater.events.producer import Producer

_LOG = logging.getLogger(__name__)
_AT_ONCE: Final = 100
_WAIT: Final = 1.0


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
        commits = Commits(scene, bus.producer.next_barrier, settings.lineage_repeat)
        self._teller = Teller(scene, commits, jobs, bus.tell)
        self._marks: dict[str, threading.Event] = {}
        self._stopped = threading.Event()
        self._lost = 0
        self._thread = threading.Thread(target=self._run, name="headwater-capture", daemon=True)

    def start(self) -> None:
        self._tap.start()
        self._thread.start()
        for part in self._tap.degraded:
            self._gap(GapReason.NOT_EXACT, f"{part.part} isn't there, so some snapshots may not be exact: {part.why}")

    def drain(self, timeout: float) -> bool:
        """Whether all that Spark has shown so far was told within this time."""
        token, mark = uuid4().hex, threading.Event()
        self._marks[token] = mark
        try:
            settled = self._tap.settle(token, timeout)
            return mark.wait(timeout) and settled
        finally:
            self._marks.pop(token, None)

    def close(self, timeout: float) -> None:
        """Unregister everything, and let the thread end."""
        self._stopped.set()
        self._tap.stop()
        self._thread.join(timeout)

    def _run(self) -> None:
        while not self._stopped.is_set():
            try:
                texts = self._tap.take(_AT_ONCE, _WAIT)
                self._count_losses()
            except Exception as e:  # noqa: BLE001 - the JVM may be gone, in whatever way py4j says that
                if not self._stopped.is_set():
                    _LOG.debug("the driver's JVM doesn't answer any more: %s", e)
                return
            for text in texts:
                self._read_safely(text)

    def _read_safely(self, text: str) -> None:
        """Whatever one record does, the next one is read."""
        try:
            self._read(text)
        except Exception:
            _LOG.exception("a statement couldn't be told")

    def _read(self, text: str) -> None:
        try:
            record: Mapping[str, Any] = json.loads(text)
        except ValueError as e:
            self._gap(GapReason.CAPTURE_FAILED, f"what the tap says can't be read: {e}")
            return
        if record["kind"] == "mark":
            mark = self._marks.get(record["token"])
            if mark is not None:
                mark.set()
            return
        self._teller.record(record)

    def _count_losses(self) -> None:
        """What Spark dropped before it came to us, told as it grows."""
        lost = self._tap.dropped_by_spark()
        if lost > self._lost:
            self._gap(
                GapReason.QUEUE_OVERFLOW,
                f"Spark's queue was full: {lost - self._lost} of its events didn't come to headwater; a larger "
                "spark.scheduler.listenerbus.eventqueue.capacity gives it more room",
                lost - self._lost,
            )
            self._lost = lost

    def _gap(self, reason: GapReason, detail: str, missed: int | None = None) -> None:
        job, run = self._jobs.application_job, self._jobs.application_run
        self._tell(Gap(reason=reason, detail=detail, missed=missed, job=job, run=run))
