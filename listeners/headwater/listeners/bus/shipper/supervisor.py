"""The driver's side of the shipper: starts it, starts it again, and knows how far it is."""

from __future__ import annotations

import contextlib
import logging
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from headwater.errors import ConfigurationError, PluginError, TransientError
from headwater.events.clock import ProducerClock
from headwater.events.health import Gap, GapReason
from headwater.journal import Journal
from headwater.listeners.bus.durations import DELIVERY_BOUNDS, Backoff, DurationRecorder, RecordAges
from headwater.listeners.bus.listener_creation import ListenerSpec
from headwater.listeners.bus.report import ListenerReport, ListenerState, ProgressSignal
from headwater.listeners.bus.shipper.messages import KIND, Channel, ShipperState, parse_state
from headwater.listeners.bus.shipper.start import LOG_FILE, Orders, describe_import_failure, start_process
from headwater.listeners.threads import DaemonThread

_LOG = logging.getLogger(__name__)
_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 30.0
_STEADY_SECONDS: Final = 60.0
"""One that ran for so long is started again at once."""
_END_SECONDS: Final = 5.0
_LOG_BYTES: Final = 500


class ShipperProcess:
    """Thread-safe; no method raises, or waits longer than it is asked to."""

    def __init__(
        self,
        orders: Orders,
        specs: Sequence[ListenerSpec],
        journal: Journal,
        *,
        clock: ProducerClock,
        record_ages: RecordAges,
        progress: ProgressSignal,
        on_gap: Callable[[Gap], object],
        on_failed: Callable[[str], object],
    ) -> None:
        """`on_failed` is called with each listener that can't be created."""
        self.restarts = 0
        self.shipped = 0
        self.has_looked = threading.Event()
        """Set once what dead drivers had left is delivered, as far as it can be."""
        self._orders = orders
        self._specs = specs
        self._journal = journal
        self._clock = clock
        self._record_ages = record_ages
        self._progress = progress
        self._on_gap = on_gap
        self._on_failed = on_failed
        self._state = ShipperState()
        self._past: dict[str, ListenerReport] = {}
        """What earlier processes of this driver did, by listener."""
        self._acknowledged = {spec.name: 0 for spec in specs}
        self._last_error = ""
        self._process: subprocess.Popen[bytes] | None = None
        self._channel: Channel | None = None
        self._starting = threading.Lock()
        self._is_stopping = threading.Event()
        self._released = threading.Event()
        self._backoff = Backoff(_FIRST_PAUSE, _LONGEST_PAUSE)
        self._is_missing_reported = False
        self._has_spoken = False
        """Whether the process that runs now got so far that it said anything."""
        self._thread = DaemonThread("headwater-shipper", self._run)

    def start(self) -> None:
        self._thread.start()

    @property
    def pid(self) -> int | None:
        """Of the process that runs now."""
        process = self._process
        return None if process is None else process.pid

    @property
    def faults(self) -> tuple[ConfigurationError | PluginError, ...]:
        kinds = {error.__name__: error for error in (ConfigurationError, PluginError)}
        return tuple(kinds.get(kind, PluginError)(words) for kind, words in self._state.faults.values())

    def report(self) -> tuple[ListenerReport, ...]:
        known = {listener.name: listener for listener in self._state.listeners}
        return tuple(self._complete(spec.name, known.get(spec.name)) for spec in self._specs)

    def flushes(self) -> list[ShipperFlush]:
        """Waits for all that is in the spool now. The shipper reports at once from now on."""
        end = self._journal.next_offset
        self._offer("flush", end=end)
        return [ShipperFlush(self, spec.name, end) for spec in self._specs]

    def acknowledged(self, name: str) -> int:
        """The offset before which all is acknowledged by this listener."""
        return self._acknowledged[name]

    def is_stopped(self, name: str) -> bool:
        """Whether waiting for this listener makes no sense now."""
        return next(listener for listener in self.report() if listener.name == name).state.is_stopped

    def stop(self, deadline: float) -> bool:
        """Have it deliver what it can until then, and let go of the spool; whether it has."""
        self._is_stopping.set()
        if self._starting.acquire(timeout=max(0.0, deadline - time.monotonic())):
            self._starting.release()  # a process that is being started shares the spool's lock for a moment
        end = self._journal.next_offset
        if not self._offer("stop", end=end, seconds=max(0.0, deadline - time.monotonic())):
            return self._process is None
        return self._released.wait(max(0.0, deadline - time.monotonic()))

    def leave(self) -> None:
        """After the spool was left: the shipper goes on by itself with what is in it, or ends."""
        self._is_stopping.set()
        if (channel := self._channel) is not None:
            channel.close()

    def forget_in_child(self) -> None:
        """This process was forked from the driver: the channel isn't its own."""
        self._is_stopping.set()
        if (channel := self._channel) is not None:
            channel.forget()

    def _complete(self, name: str, report: ListenerReport | None) -> ListenerReport:
        """Add what earlier processes did, and how far it is behind: the driver knows the end of its spool."""
        now = report or _no_report(name)
        lag = max(0, self._journal.next_offset - self._acknowledged[name])
        if self._process is None and not now.state.is_stopped:
            state = ListenerState.FAILED if self._is_missing_reported else ListenerState.PAUSING
            now = replace(now, state=state, last_error=self._last_error or now.last_error)
        lag_seconds = self._record_ages.of(self._acknowledged[name]) if lag else 0.0
        return _add(self._past.get(name), replace(now, lag=lag, lag_seconds=lag_seconds))

    def _run(self) -> None:
        while not self._is_stopping.is_set():
            began = time.monotonic()
            try:
                with self._starting:
                    if self._is_stopping.is_set():
                        return
                    self._process, self._channel = start_process(self._orders)
            except TransientError as e:
                self._report_missing(e)
            else:
                self._has_spoken = False
                self._serve(self._channel)
                self._channel.close()
                self._note_end(self._process)
            if time.monotonic() - began > _STEADY_SECONDS:
                self._backoff.reset()
            self._is_stopping.wait(self._backoff.next())

    def _serve(self, channel: Channel) -> None:
        for message in channel.receive():
            try:
                self._take(channel, message)
            except Exception as e:  # noqa: BLE001, PERF203 - the next message may be right
                _LOG.warning("what the shipper says can't be read: %s: %s", type(e).__name__, e)

    def _take(self, channel: Channel, message: Mapping[str, Any]) -> None:
        kind = message[KIND]
        self._has_spoken, self._is_missing_reported = True, False
        if kind == "state":
            self._take_state(parse_state(message))
        elif kind == "gap":
            self._on_gap(Gap.model_validate(message["gap"]))
            channel.offer("gap", number=message["number"])
        elif kind == "clock":
            self._clock.observe(int(message["micros"]))
        elif kind == "log":
            logging.getLogger(message["logger"]).log(message["level"], "%s", message["text"])
        elif kind == "released":
            self._released.set()

    def _take_state(self, state: ShipperState) -> None:
        before, self._state = self._state, state
        for name in state.faults.keys() - before.faults.keys():
            self._on_failed(name)
        for name, offset in state.acknowledged.items():
            self._acknowledged[name] = max(self._acknowledged.get(name, 0), offset)
        self.shipped += max(0, state.shipped - before.shipped)
        if state.has_looked:
            self.has_looked.set()
        self._progress.notify()

    def _note_end(self, process: subprocess.Popen[bytes]) -> None:
        """It is gone, or doesn't talk to us any more: then it ends by itself."""
        if self._is_stopping.is_set():
            self._released.set()
            process.wait()  # nobody waits for this thread
            return
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_END_SECONDS)
        self._past = {
            listener.name: _add(self._past.get(listener.name), listener) for listener in self._state.listeners
        }
        self._state = replace(self._state, listeners=(), shipped=0)
        self._process = self._channel = None
        self.restarts += 1
        if not self._has_spoken and (words := describe_import_failure(self._last_words())):
            self._report_missing(TransientError(words))
            return
        self._last_error = f"the shipper, process {process.pid}, {self._describe_end(process)}"
        _LOG.warning("%s: it is started again, nothing is lost", self._last_error)
        self._progress.notify()

    def _describe_end(self, process: subprocess.Popen[bytes]) -> str:
        code = process.returncode
        words = f"ended with code {code}"
        if code is None:
            words = "says nothing any more"
        elif code < 0:
            with contextlib.suppress(ValueError):
                words = f"died of {signal.Signals(-code).name}"
        last = " ".join(self._last_words().split())
        return f"{words} ({last})" if last else words

    def _last_words(self) -> str:
        """Return the end of what the process wrote into its log."""
        with contextlib.suppress(OSError):
            return (self._orders.spool / LOG_FILE).read_bytes()[-_LOG_BYTES:].decode(errors="replace")
        return ""

    def _report_missing(self, error: TransientError) -> None:
        """Once: nothing is published as long as there is no process for it."""
        self._last_error = str(error)
        if self._is_missing_reported:
            return
        self._is_missing_reported = True
        names = ", ".join(spec.name for spec in self._specs)
        detail = (
            f"nothing is sent to {names} while this driver runs, because no process can be had for it: {error}; events "
            f"wait in the spool {self._orders.spool}, which the next driver delivers; "
            f"spark.headwater.{self._specs[0].name}.isolation=thread publishes from the driver itself"
        )
        _LOG.warning("%s", detail)
        self._on_gap(Gap(reason=GapReason.OTHER, detail=detail))
        self._progress.notify()

    def _offer(self, kind: str, **fields: Any) -> bool:
        channel = self._channel
        return channel is not None and channel.offer(kind, **fields)


class ShipperFlush:
    """Waits for one listener of the shipper."""

    def __init__(self, shipper: ShipperProcess, name: str, end: int) -> None:
        self._shipper = shipper
        self._name = name
        self._end = end

    @property
    def is_done(self) -> bool:
        return self._shipper.acknowledged(self._name) >= self._end

    @property
    def is_settled(self) -> bool:
        return self.is_done or self._shipper.is_stopped(self._name)


def _no_report(name: str) -> ListenerReport:
    nothing = DurationRecorder(DELIVERY_BOUNDS).snapshot
    return ListenerReport(
        name=name,
        durable=None,
        state=ListenerState.STARTING,
        received=0,
        acknowledged=0,
        lag=0,
        lag_seconds=0.0,
        missed=0,
        lost=0,
        dead_letters=0,
        received_after=nothing,
        acknowledged_after=nothing,
        failures=0,
        errors={},
        calls=0,
        seconds=0.0,
        longest_call=0.0,
        last_error="",
    )


def _add(past: ListenerReport | None, now: ListenerReport) -> ListenerReport:
    """The counters of both, and all else as it is now."""
    if past is None:
        return now
    errors = {key: past.errors.get(key, 0) + now.errors.get(key, 0) for key in {*past.errors, *now.errors}}
    return replace(
        now,
        durable=past.durable if now.durable is None else now.durable,
        received=past.received + now.received,
        acknowledged=past.acknowledged + now.acknowledged,
        lost=past.lost + now.lost,
        dead_letters=past.dead_letters + now.dead_letters,
        received_after=past.received_after + now.received_after,
        acknowledged_after=past.acknowledged_after + now.acknowledged_after,
        failures=past.failures + now.failures,
        errors=errors,
        calls=past.calls + now.calls,
        seconds=past.seconds + now.seconds,
        longest_call=max(past.longest_call, now.longest_call),
        last_error=now.last_error or past.last_error,
    )
