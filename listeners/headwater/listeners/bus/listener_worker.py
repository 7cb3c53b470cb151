"""The worker of one listener: a thread that creates, serves, suspends and recreates it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Protocol

from headwater.errors import ConfigurationError, PluginError, TerminalError
from headwater.listeners.bus.durations import Backoff
from headwater.listeners.bus.listener_calls import AbandonedCallError, ServeResult, StopSignal
from headwater.listeners.bus.listener_creation import ListenerFactoryRunner, ListenerInstance
from headwater.listeners.bus.listener_errors import describe_error
from headwater.listeners.bus.options import BusOptions
from headwater.listeners.bus.queue_dispatcher import QueueDispatcher
from headwater.listeners.bus.report import ListenerMeter, ListenerReport, ListenerState, ProgressSignal
from headwater.listeners.bus.spool_dispatcher import SpoolDispatcher
from headwater.listeners.threads import DaemonThread
from headwater.spi import DurableListener, Listener

_LOG = logging.getLogger(__name__)
WorkerCallback = Callable[["ListenerWorker"], None]


class ListenerWorker:
    """The thread of one listener: creates it, dispatches events to it, suspends it and creates it again.

    Until the listener is created for the first time nobody knows whether it is durable, so the worker starts with both
    dispatchers: `spool_dispatcher` reads the spool, if there is one, and `queue_dispatcher` a queue, if the listener
    may be plain. `on_known` is called on this thread once the kind is known, or that the listener can't be created.
    """

    def __init__(
        self,
        factory_runner: ListenerFactoryRunner,
        options: BusOptions,
        *,
        meter: ListenerMeter,
        stop: StopSignal,
        progress: ProgressSignal,
        spool_dispatcher: SpoolDispatcher | None,
        queue_dispatcher: QueueDispatcher | None,
        on_known: WorkerCallback,
    ) -> None:
        self.name = factory_runner.spec.name
        self.families = factory_runner.spec.families
        self.factory_runner = factory_runner
        self.durable: bool | None = None
        self.fault: ConfigurationError | PluginError | None = None
        self.spool_dispatcher = spool_dispatcher
        self.queue_dispatcher = queue_dispatcher
        self._options = options
        self._meter = meter
        self._stop = stop
        self._progress = progress
        self._on_known = on_known
        self._state = ListenerState.STARTING
        self._thread = DaemonThread(f"headwater-{self.name}", self._run)

    def start(self) -> None:
        self._thread.start()

    @property
    def state(self) -> ListenerState:
        spool_dispatcher = self.spool_dispatcher
        is_tried = spool_dispatcher is not None and spool_dispatcher.is_pausing
        is_held_up = self._meter.errors.is_failing and self.lag > 0
        return (
            ListenerState.PAUSING if self._state is ListenerState.RUNNING and (is_tried or is_held_up) else self._state
        )

    @property
    def is_known(self) -> bool:
        """Whether it is known if the listener is durable, plain, or can't be created."""
        return self.durable is not None or self.fault is not None

    @property
    def lag(self) -> int:
        """Events that aren't acknowledged."""
        spool_dispatcher, queue_dispatcher = self.spool_dispatcher, self.queue_dispatcher
        if self.durable is not False and spool_dispatcher is not None:
            return spool_dispatcher.lag
        return 0 if queue_dispatcher is None else queue_dispatcher.lag

    @property
    def acknowledged(self) -> int:
        return self._meter.acknowledged_after.snapshot.count

    @property
    def lag_seconds(self) -> float:
        """Age of the oldest of those, in seconds."""
        spool_dispatcher, queue_dispatcher = self.spool_dispatcher, self.queue_dispatcher
        if self.durable is not False and spool_dispatcher is not None:
            return spool_dispatcher.lag_seconds
        return 0.0 if queue_dispatcher is None else queue_dispatcher.lag_seconds

    @property
    def missed(self) -> int:
        """Events that a plain listener never gets."""
        queue_dispatcher = self.queue_dispatcher
        is_plain = self.durable is False or self.spool_dispatcher is None
        return queue_dispatcher.missed if queue_dispatcher is not None and is_plain else 0

    def begin_stop(self, deadline: float) -> None:
        self._stop.begin(deadline)

    def join(self) -> bool:
        """Wait for the thread until its deadline; abandon it if a call hasn't returned by then."""
        if self._thread.join(self._stop.left):
            return True
        self._stop.give_up()
        self._state = ListenerState.GIVEN_UP
        _LOG.warning("listener %s hasn't returned from a call, and is abandoned", self.name)
        return False

    def release_cursor(self) -> None:
        """Release the cursor for others, even if this thread never returns."""
        if (spool_dispatcher := self.spool_dispatcher) is not None:
            spool_dispatcher.end()

    def report(self) -> ListenerReport:
        meter = self._meter
        return ListenerReport(
            name=self.name,
            durable=self.durable,
            state=self.state,
            received=meter.received,
            acknowledged=self.acknowledged,
            lag=self.lag,
            lag_seconds=self.lag_seconds,
            missed=self.missed,
            lost=0,
            dead_letters=0,
            received_after=meter.received_after.snapshot,
            acknowledged_after=meter.acknowledged_after.snapshot,
            failures=meter.failures,
            errors=meter.errors.counts,
            calls=meter.calls,
            seconds=meter.seconds,
            longest_call=meter.longest,
            last_error=meter.errors.last,
        )

    def _run(self) -> None:
        try:
            self._options.on_thread_start()
        except Exception as e:  # noqa: BLE001 - the listener can do without
            _LOG.debug("the thread of listener %s: %s", self.name, describe_error(e))
        try:
            self._serve_all()
            self._state = ListenerState.FAILED if self._state is ListenerState.FAILED else ListenerState.CLOSED
        except AbandonedCallError:
            self._state = ListenerState.GIVEN_UP
        except Exception as e:  # noqa: BLE001 - logged; nothing else may be harmed by it
            self._state = ListenerState.FAILED
            self._meter.record_failure(e)
            _LOG.exception("the thread of listener %s ended", self.name)
        finally:
            self.release_cursor()
            self._progress.notify()

    def _serve_all(self) -> None:
        made = self._create_first()
        while made is not None:
            self._state = ListenerState.RUNNING
            try:
                ending = self._serve(made.listener)
            finally:
                made.executor.shutdown(wait=False, cancel_futures=True)
            if ending is ServeResult.FINISHED:
                return
            made = self._create_again()

    def _serve(self, listener: Listener | DurableListener) -> ServeResult:
        if self.durable:
            if self.spool_dispatcher is None or not isinstance(listener, DurableListener):
                return self._fail(PluginError(f"{self.name} is durable, and there is no spool to hand it anything of"))
            return self.spool_dispatcher.serve(listener)
        if self.queue_dispatcher is None or not isinstance(listener, Listener):
            key = f"spark.headwater.{self.name}.isolation"
            words = f"{self.name} isn't durable, so it works in the driver only: set {key}=thread"
            return self._fail(PluginError(words))
        return self.queue_dispatcher.serve(listener)

    def _create_first(self) -> ListenerInstance | None:
        """Create the first instance; None if that is impossible, or the bus stops first."""
        pauses = Backoff(self._options.first_backoff, self._options.suspended_seconds)
        while self._stop.left_to_drain > 0:
            try:
                made = self._meter.measure(self.factory_runner.make)
            except (ConfigurationError, PluginError) as e:  # noqa: PERF203 - once
                self._stop.check()
                self._fail(e)
                return None
            except BaseException as e:  # noqa: BLE001 - a plug-in can fail in any way
                self._note_creation_error(e)
                if not isinstance(e, TerminalError):
                    self._stop.pause(pauses.next())
                elif not self._wait_suspended():
                    return None
            else:
                self._stop.check()
                self._learn(durable=isinstance(made.listener, DurableListener))
                return made
        return None

    def _create_again(self) -> ListenerInstance | None:
        """Create the next instance after the suspension; None if the bus stops first."""
        self._state = ListenerState.SUSPENDED
        self._progress.notify()
        _LOG.warning(
            "listener %s is suspended for %g s, then created again: %s",
            self.name,
            self._options.suspended_seconds,
            self._meter.errors.last,
        )
        while self._wait_suspended():
            try:
                made = self._meter.measure(self.factory_runner.make)
            except BaseException as e:  # noqa: BLE001, PERF203 - a plug-in can fail in any way
                self._note_creation_error(e)
            else:
                self._stop.check()
                return made
        return None

    def _wait_suspended(self) -> bool:
        """Wait for the suspension to pass; False once the bus stops."""
        if not self._stop.is_begun:
            self._stop.pause(self._options.suspended_seconds)
        return not self._stop.is_begun

    def _note_creation_error(self, error: BaseException) -> None:
        self._stop.check()
        if describe_error(error) != self._meter.errors.last:
            _LOG.warning("listener %s can't be created now, and is retried: %s", self.name, describe_error(error))
        self._meter.record_failure(error)

    def _fail(self, error: ConfigurationError | PluginError) -> ServeResult:
        self.fault = error
        self._state = ListenerState.FAILED
        self._meter.record_failure(error)
        _LOG.warning("%s", error)
        if self.queue_dispatcher is not None:
            self.queue_dispatcher.discard_queue()
        self._on_known(self)
        return ServeResult.FINISHED

    def _learn(self, *, durable: bool) -> None:
        self.durable = durable
        if durable and self.spool_dispatcher is not None:
            self.queue_dispatcher = None
        self._on_known(self)


def stop_workers(workers: Sequence[ListenerWorker], deadline: float) -> bool:
    """Stop all workers at once; return whether all threads ended."""
    for worker in workers:
        worker.begin_stop(deadline)
    came_back = [worker.join() for worker in workers]
    return all(came_back)


class FlushWait(Protocol):
    """A wait until one listener has acknowledged what was emitted before it began."""

    @property
    def is_done(self) -> bool: ...

    @property
    def is_settled(self) -> bool:
        """Whether it is done, or waiting makes no sense."""
        ...


class WorkerFlush:
    """Waits for a worker of this process."""

    def __init__(self, worker: ListenerWorker, timeout: float) -> None:
        queue_dispatcher, spool_dispatcher = worker.queue_dispatcher, worker.spool_dispatcher
        self._worker = worker
        self._queued = 0 if queue_dispatcher is None else queue_dispatcher.ask_to_flush(timeout)
        self._end = 0 if spool_dispatcher is None else spool_dispatcher.end_offset

    @property
    def is_done(self) -> bool:
        worker = self._worker
        queue_dispatcher, spool_dispatcher = worker.queue_dispatcher, worker.spool_dispatcher
        if worker.durable:
            return spool_dispatcher is not None and spool_dispatcher.acknowledged_offset >= self._end
        return worker.durable is False and queue_dispatcher is not None and queue_dispatcher.is_flushed(self._queued)

    @property
    def is_settled(self) -> bool:
        return self._worker.state.is_stopped or self.is_done


def await_flushes(flushes: Sequence[FlushWait], progress: ProgressSignal, timeout: float) -> bool:
    """Wait until every running listener has acknowledged what was emitted so far."""
    progress.wait_for(lambda: all(flush.is_settled for flush in flushes), max(0.0, timeout))
    return all(flush.is_done for flush in flushes)
