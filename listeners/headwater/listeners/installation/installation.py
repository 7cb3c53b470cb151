"""headwater in one SparkContext: what is started with it, and how it ends with it."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any, Final

from headwater.events.envelope import Event
from headwater.events.health import Gap, GapReason
from headwater.lens import consistent
from headwater.listeners.bus import BusOptions, BusReport
from headwater.listeners.capture.driver_listener import exclude_from_capture
from headwater.listeners.capture.early_events import EarlyEvents
from headwater.listeners.hadoop import hadoop_of_context
from headwater.listeners.installation.factories import (
    InstallationFactories,
    InstalledBus,
    InstalledCapture,
    read_configuration,
)
from headwater.listeners.jobs import ApplicationRuns, RunEnd, blocks, read_application_facts
from headwater.listeners.jobs.job_run_tracker import DaemonWorker, JobRunTracker
from headwater.listeners.settings import Settings, read_settings
from headwater.listeners.threads import DaemonThread
from headwater.spi import Application

_LOG = logging.getLogger(__name__)
STOP_SECONDS: Final = 2.0
"""So long at most, in total, somebody waits for an end."""
_PROMPT_SHARE: Final = 0.25
"""After so much of the time that a job waits, what Spark reports begins to be kept: it goes on without us, maybe."""
_RESERVE: Final = 0.1
_DRAIN_SHARE: Final = 0.5
_CLOSE_SECONDS: Final = 0.25
_FLUSH_SHARE: Final = 0.5


@dataclass(frozen=True)
class LateStart:
    """A job that went on before capture was ready."""

    began: datetime
    went_on: datetime
    is_buffered: bool
    """Whether what Spark reports is kept from then on."""


class Installation:
    """headwater at work in a SparkContext. None of its methods raises, or takes longer than it says."""

    def __init__(self, context: Any, factories: InstallationFactories, leave: Callable[[Any], None]) -> None:
        """Use `install`. `leave` takes headwater out of a context."""
        self.context = context
        self._leave = leave
        self._factories = factories
        self._jobs: ApplicationRuns | None = None
        self._bus: InstalledBus | None = None
        self._capture: InstalledCapture | None = None
        self._tracker: JobRunTracker | None = None
        self._consistent: consistent.ConsistentReads | None = None
        self._early = EarlyEvents(context)
        self._began = datetime.now(timezone.utc)
        self._late: LateStart | None = None
        self._is_ready = False
        self._is_installed = True
        self._is_capture_finished = False
        self._has_ended = False
        self._extra = 0.0
        """An end takes so much longer where there is something to hand over."""
        self._worker = DaemonWorker("headwater")

    @property
    def is_active(self) -> bool:
        """Whether what Spark does is being recorded."""
        return self._is_ready and self._is_installed

    @property
    def jobs(self) -> ApplicationRuns | None:
        """The application's jobs and runs; None where it could not be started."""
        return self._jobs

    @property
    def metrics_url(self) -> str | None:
        """Where this driver's metrics are served for Prometheus, if they are."""
        return None if self._bus is None else self._bus.metrics_url

    def report(self) -> BusReport | None:
        """How the spool and each listener are doing; None where it could not be started. Waits for nothing."""
        return None if self._bus is None else self._bus.report()

    def report_event(self, draft: Event) -> None:
        """Report an event of what no statement does, like those that are captured."""
        if self.is_active and self._bus is not None:
            self._bus.emit(draft)

    def flush(self, timeout: float = 10.0) -> bool:
        """Have all reported that happened so far, and dealt with by every listener; False if it isn't by then."""
        deadline = time.monotonic() + timeout
        if not self._is_ready or self._tracker is None or self._bus is None:
            return False
        return self._tracker.emit_all(timeout) and self._bus.flush(max(0.0, deadline - time.monotonic()))

    def uninstall(self) -> None:
        """Nothing of headwater is active in this context any more; the run goes on, and nobody knows how it ends."""
        self._leave(self.context)

    def start(self) -> None:
        """In a thread of its own, so that nothing that hangs can hold up the job for longer than `capture.wait`."""
        configuration = read_configuration(self.context)
        patience = read_settings(configuration)[0].capture_wait
        started = self._worker.submit(lambda: self._start(configuration))
        if not started.wait(_PROMPT_SHARE * patience):
            DaemonThread("headwater-early", self._keep_early_events).start()
            if not started.wait((1 - _PROMPT_SHARE) * patience):
                self._go_on_without(patience)
        if self._tracker is not None:
            blocks.restart_open_blocks(self._tracker)

    def _keep_early_events(self) -> None:
        """On a thread of its own: the worker's is busy with what takes so long."""
        try:
            self._early.begin()
        except Exception as e:  # noqa: BLE001 - it is said that what the job does is missing
            _LOG.warning("what Spark does until headwater is ready can't be kept: %s: %s", type(e).__name__, e)

    def _go_on_without(self, patience: float) -> None:
        """The job isn't held up any longer."""
        now = datetime.now(timezone.utc)
        is_buffered = self._early.since is not None
        self._late = LateStart(self._began, now, is_buffered=is_buffered)
        words = (
            "what it does until then is read later" if is_buffered else "not all that it does until then is recorded"
        )
        _LOG.warning(
            "headwater isn't ready after %g s: the job goes on, and %s (spark.headwater.capture.wait)", patience, words
        )
        self._worker.submit(self._report_late_start)

    def finish_capture(self, timeout: float) -> None:
        """The context ends: report what it did. How the run ends is reported by `end`."""
        self._detach()
        deadline = time.monotonic() + timeout - _RESERVE
        self._worker.call(lambda: self._finish_capture(deadline), timeout)

    def end(self, ending: RunEnd, timeout: float = STOP_SECONDS) -> None:
        """Tell how the run ended, and let go of everything. Whoever comes second waits for the first."""
        self._detach()
        deadline = time.monotonic() + timeout - _RESERVE
        if not self._worker.call(lambda: self._end(ending, deadline), timeout + self._extra) and not self._is_ready:
            words = "the application ended before capture was ready: what it did isn't recorded"
            if self._bus is None:
                _LOG.warning("%s, and as there was no spool yet, not even as a Gap", words)
            else:
                self._emit_gap(words, self._began)
                self._bus.flush(_RESERVE)

    def _detach(self) -> None:
        self._is_installed = False
        if self._consistent is not None:
            self._consistent.close()
        if self._tracker is not None:
            blocks.detach(self._tracker)
            self._tracker.begin_closing()

    def _start(self, configuration: Mapping[str, str]) -> None:
        self._begin_consistent_reads(configuration)
        settings, _ = read_settings(configuration)  # the bus tells the faults
        facts = read_application_facts(self.context, configuration, dict(os.environ))
        connect = hadoop_of_context(self.context) if settings.handover_uri else None
        self._extra = settings.spool_handover_timeout if settings.spool_handover else 0.0
        options = BusOptions(on_thread_start=lambda: exclude_from_capture(self.context), connect=connect)
        bus = self._bus = self._factories.open_bus(configuration, Application(facts.id, facts.name), options=options)
        jobs = self._jobs = ApplicationRuns(facts, settings, bus.emit)
        bus.attribute(jobs.application_job, jobs.application_run)
        jobs.begin()
        self._tracker = JobRunTracker(self.context, jobs, self._drain, bus.dropped, heartbeat=settings.job_heartbeat)
        if self._is_installed:  # before capture: what it reads later knows the blocks that were entered meanwhile
            blocks.attach(self._tracker)
        self._capture = self._start_capture(settings, bus, jobs)
        self._is_ready = True

    def _begin_consistent_reads(self, configuration: Mapping[str, str]) -> None:
        """Where no key asks for them, nothing is installed and nothing is compiled."""
        if not consistent.has_settings(configuration):
            return
        try:
            self._consistent = consistent.begin(self.context, configuration)
        except Exception as e:  # noqa: BLE001 - whatever this Spark is, the job goes on
            _LOG.warning("%s* have no effect: %s: %s", consistent.PREFIX, type(e).__name__, e)

    def _start_capture(self, settings: Settings, bus: InstalledBus, jobs: ApplicationRuns) -> InstalledCapture | None:
        """Without capture the runs are still reported, and that nothing else is."""
        try:
            capture = self._factories.make_capture(self.context, settings, bus, jobs, self._early)
            capture.start()
        except Exception as e:  # noqa: BLE001 - whatever this Spark is, the job goes on
            detail = f"nothing that this application does can be captured: {type(e).__name__}: {e}"
            _LOG.warning("%s", detail)
            self._emit_gap(detail)
            return None
        return capture

    def _drain(self, timeout: float) -> bool:
        try:
            return self._is_ready and (self._capture is None or self._capture.drain(timeout))
        except Exception as e:  # noqa: BLE001 - the JVM may be gone
            _LOG.debug("draining: %s: %s", type(e).__name__, e)
            return False

    def _finish_capture(self, deadline: float) -> None:
        """On our own thread, and what asks the JVM on the tracker's: this one goes on if that one hangs."""
        tracker, capture = self._tracker, self._capture
        if tracker is None or self._is_capture_finished:
            return
        self._is_capture_finished = True
        if not tracker.emit_all(_DRAIN_SHARE * _seconds_left(deadline)):
            detail = (
                "the end came before all that Spark had shown was looked at: of the last statements some may be missing"
            )
            _LOG.warning("%s", detail)
            self._emit_gap(detail)
        if capture is not None:
            tracker.call(lambda: capture.close(_CLOSE_SECONDS), min(_CLOSE_SECONDS, _seconds_left(deadline)))

    def _end(self, ending: RunEnd, deadline: float) -> None:
        if self._has_ended:
            return
        self._has_ended = True
        bus, jobs, tracker = self._bus, self._jobs, self._tracker
        try:
            self._finish_capture(deadline)
            if bus is not None and jobs is not None:
                jobs.finish(ending)
                is_complete = bus.flush(_FLUSH_SHARE * _seconds_left(deadline))
                jobs.close(complete=is_complete, dropped=bus.dropped())
                bus.stop(_seconds_left(deadline))
        finally:
            if tracker is not None:
                tracker.close()
            self._worker.close()

    def _report_late_start(self) -> None:
        """Behind the start, on its thread. Where all was kept, only what no statement did can be missing."""
        late, early, capture = self._late, self._early, self._capture
        if late is None or capture is None:  # that there is no capture at all has been reported
            return
        now = datetime.now(timezone.utc)
        if not late.is_buffered:
            until = early.since or now
            seconds = (until - late.began).total_seconds()
            self._emit_gap(f"what the job did in the first {seconds:.1f} s, before capture saw it", late.began, until)
        if early.dropped:
            detail = f"capture was late, and of what Spark reported until then {early.dropped} events found no room"
            self._emit_gap(detail, early.since, now)
        if capture.sees_outside_commits:
            detail = "capture was late, and what was committed outside of statements until then wasn't seen"
            self._emit_gap(detail, late.went_on, now)

    def _emit_gap(self, detail: str, first: datetime | None = None, last: datetime | None = None) -> None:
        if self._bus is not None and self._jobs is not None:
            gap = Gap(
                job=self._jobs.application_job,
                run=self._jobs.application_run,
                reason=GapReason.CAPTURE_FAILED,
                detail=detail,
                first_time=first,
                last_time=last,
            )
            self._bus.emit(gap)


def _seconds_left(deadline: float) -> float:
    return max(0.0, deadline - time.monotonic())
