"""headwater in one SparkContext: what is started with it, and how it ends with it."""

from __future__ import annotations

import logging
import os
import time
from typing import Any, Final

from headwater.events.health import Gap, GapReason
from headwater.listeners.bus import BusOptions, BusReport
from headwater.listeners.capture.tap import disown
from headwater.listeners.hadoop import of_context
from headwater.listeners.installation.parts import BusPart, CapturePart, Parts
from headwater.listeners.jobs import Ending, Jobs, application_facts, blocks
from headwater.listeners.jobs.desk import Desk
from headwater.listeners.jobs.worker import Worker
from headwater.listeners.settings import Settings, read_settings
from headwater.spi import Application

_LOG = logging.getLogger(__name__)
START_SECONDS: Final = 10.0
"""A start that takes longer, on a disk that doesn't answer say, goes on without anybody waiting for it."""
STOP_SECONDS: Final = 2.0
"""So long at most, in total, somebody waits for an end."""
_RESERVE: Final = 0.1
_DRAIN_SHARE: Final = 0.5
_CLOSE_SECONDS: Final = 0.25
_FLUSH_SHARE: Final = 0.5


class Installation:
    """headwater at work in a SparkContext. None of its methods raises, or takes longer than it says."""

    def __init__(self, context: Any, parts: Parts) -> None:
        """Use `install`."""
        self.context = context
        self._parts = parts
        self._jobs: Jobs | None = None
        self._bus: BusPart | None = None
        self._capture: CapturePart | None = None
        self._desk: Desk | None = None
        self._is_wanted = True
        self._is_resting = False
        self._is_over = False
        self._extra = 0.0
        """An end takes so much longer where there is something to hand over."""
        self._worker = Worker("headwater")

    @property
    def is_active(self) -> bool:
        """Whether what Spark does is being told."""
        return self._desk is not None and self._is_wanted

    @property
    def jobs(self) -> Jobs | None:
        """The application's jobs and runs; None where it could not be started."""
        return self._jobs

    @property
    def metrics_url(self) -> str | None:
        """Where this driver's metrics are served for Prometheus, if they are."""
        return None if self._bus is None else self._bus.metrics_url

    def report(self) -> BusReport | None:
        """How the spool and each listener are doing; None where it could not be started. Waits for nothing."""
        return None if self._bus is None else self._bus.report()

    def flush(self, timeout: float = 10.0) -> bool:
        """Have all told that happened so far, and dealt with by every listener; False if it isn't by then."""
        deadline = time.monotonic() + timeout
        if self._desk is None or self._bus is None:
            return False
        return self._desk.settle(timeout) and self._bus.flush(max(0.0, deadline - time.monotonic()))

    def uninstall(self) -> None:
        """Nothing of headwater is active in this context any more; the run goes on, and nobody knows how it ends."""
        from headwater.listeners.installation.contexts import uninstall  # noqa: PLC0415 - they know each other

        uninstall(self.context)

    def start(self, timeout: float = START_SECONDS) -> None:
        """In a thread of its own, so that nothing that hangs can hold up the job."""
        if not self._worker.call(self._start, timeout):
            _LOG.warning(
                "headwater isn't ready after %g s: the job goes on, and what it does until then isn't told", timeout
            )
        elif self._desk is not None:
            blocks.begin_open_blocks(self._desk)

    def rest(self, timeout: float) -> None:
        """The context ends: tell what it did. How the run ends is told by `end`."""
        self._leave()
        deadline = time.monotonic() + timeout - _RESERVE
        self._worker.call(lambda: self._rest(deadline), timeout)

    def end(self, ending: Ending, timeout: float = STOP_SECONDS) -> None:
        """Tell how the run ended, and let go of everything. Whoever comes second waits for the first."""
        self._leave()
        deadline = time.monotonic() + timeout - _RESERVE
        self._worker.call(lambda: self._end(ending, deadline), timeout + self._extra)

    def _leave(self) -> None:
        self._is_wanted = False
        if self._desk is not None:
            blocks.unserve(self._desk)
            self._desk.hurry()

    def _start(self) -> None:
        configuration = dict(self.context._conf.getAll())
        settings, _ = read_settings(configuration)  # the bus tells the faults
        facts = application_facts(self.context, configuration, dict(os.environ))
        connect = of_context(self.context) if settings.handover_uri else None
        self._extra = settings.spool_handover_timeout if settings.spool_handover else 0.0
        options = BusOptions(enter=lambda: disown(self.context), connect=connect)
        bus = self._bus = self._parts.open_bus(configuration, Application(facts.id, facts.name), options=options)
        jobs = self._jobs = Jobs(facts, settings, bus.tell)
        bus.attribute(jobs.application_job, jobs.application_run)
        jobs.begin()
        self._capture = self._started_capture(settings, bus, jobs)
        self._desk = Desk(self.context, jobs, self._drain, bus.dropped, heartbeat=settings.job_heartbeat)
        if self._is_wanted:
            blocks.serve(self._desk)

    def _started_capture(self, settings: Settings, bus: BusPart, jobs: Jobs) -> CapturePart | None:
        """Without capture the runs are still told, and that nothing else is."""
        try:
            capture = self._parts.make_capture(self.context, settings, bus, jobs)
            capture.start()
        except Exception as e:  # noqa: BLE001 - whatever this Spark is, the job goes on
            detail = f"nothing that this application does can be captured: {type(e).__name__}: {e}"
            _LOG.warning("%s", detail)
            self._tell_gap(detail)
            return None
        return capture

    def _drain(self, timeout: float) -> bool:
        try:
            return self._capture is None or self._capture.drain(timeout)
        except Exception as e:  # noqa: BLE001 - the JVM may be gone
            _LOG.debug("draining: %s: %s", type(e).__name__, e)
            return False

    def _rest(self, deadline: float) -> None:
        """On our own thread, and what asks the JVM on the desk's: this one goes on if that one hangs."""
        desk, capture = self._desk, self._capture
        if desk is None or self._is_resting:
            return
        self._is_resting = True
        if not desk.settle(_DRAIN_SHARE * _left(deadline)):
            detail = (
                "the end came before all that Spark had shown was looked at: of the last statements some may be missing"
            )
            _LOG.warning("%s", detail)
            self._tell_gap(detail)
        if capture is not None:
            desk.call(lambda: capture.close(_CLOSE_SECONDS), min(_CLOSE_SECONDS, _left(deadline)))

    def _end(self, ending: Ending, deadline: float) -> None:
        if self._is_over:
            return
        self._is_over = True
        bus, jobs, desk = self._bus, self._jobs, self._desk
        try:
            self._rest(deadline)
            if bus is not None and jobs is not None:
                jobs.finish(ending)
                is_complete = bus.flush(_FLUSH_SHARE * _left(deadline))
                jobs.close(complete=is_complete, dropped=bus.dropped())
                bus.stop(_left(deadline))
        finally:
            if desk is not None:
                desk.close()
            self._worker.close()

    def _tell_gap(self, detail: str) -> None:
        if self._bus is not None and self._jobs is not None:
            jobs = self._jobs
            gap = Gap(
                job=jobs.application_job, run=jobs.application_run, reason=GapReason.CAPTURE_FAILED, detail=detail
            )
            self._bus.tell(gap)


def _left(deadline: float) -> float:
    return max(0.0, deadline - time.monotonic())
