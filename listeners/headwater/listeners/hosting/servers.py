"""Servers that run until somebody stops them: by SIGTERM, Ctrl-C or SIGHUP."""

from __future__ import annotations

import os
import select
import signal
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import FrameType
from typing import TYPE_CHECKING, Any, Final, NoReturn, Protocol

from headwater.events.jobs import JobStatus
from headwater.listeners.hosting.driver import Launch, end_of_jvm, host, make_session, run_with_timeout, start_jvm, stop
from headwater.listeners.installation.contexts import contexts
from headwater.listeners.jobs import ENDED, RunEnd

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
_CHECK_SECONDS: Final = 1.0
_STOP_SECONDS: Final = 10.0


class HostedServer(Protocol):
    """One that runs statements for its clients in this driver."""

    @property
    def name(self) -> str:
        """Also the application's, where it has none."""
        ...

    @property
    def defaults(self) -> Mapping[str, str]:
        """Its configuration where nobody says otherwise."""
        ...

    def check(self, jvm: Any) -> None:
        """A HostingError if it can't be had here; before Spark is started."""
        ...

    def start(self, spark: SparkSession) -> str:
        """Listen; the address that clients come to. A HostingError if that can't be."""
        ...

    def stop(self) -> None:
        """Nobody is served any more."""
        ...


def serve(servers: Sequence[HostedServer], launch: Launch, ready: Callable[[str, str], None]) -> NoReturn:
    """Serve until a signal comes, and then stop in order and die of it. `ready` is called with each server's name and
    address when clients can come."""
    host(lambda: _serve(servers, ready), launch)


def _serve(servers: Sequence[HostedServer], ready: Callable[[str, str], None]) -> RunEnd:
    jvm = start_jvm()
    for server in servers:
        server.check(jvm)
    spark = make_session(servers[0].name, {key: text for each in servers for key, text in each.defaults.items()})
    signals = _StopSignals()
    signals.watch()
    running: list[HostedServer] = []
    ending = ENDED
    try:
        for server in servers:
            running.append(server)
            ready(server.name, server.start(spark))
        ending = _wait(signals, spark)
    finally:
        contexts.set_expected_end(ending)
        for server in reversed(running):
            run_with_timeout(_STOP_SECONDS, server.stop)
        stop(spark)
    contexts.exits.final_signal = signals.received
    return ending


def _wait(signals: _StopSignals, spark: SparkSession) -> RunEnd:
    """Until a signal comes, or Spark is gone."""
    context: Any = spark.sparkContext
    process = context._gateway.proc
    while True:
        if signals.wait(_CHECK_SECONDS) is not None:
            return RunEnd(status=JobStatus.KILLED, signal=signals.received)
        if process.poll() is not None:
            died = end_of_jvm(process.returncode)
            return died if died.exit_code else replace(ENDED, exit_code=1)
        if context._jsc.sc().isStopped():
            return replace(ENDED, exit_code=1)


class _StopSignals:
    """The signals that stop a server. The first one is noted only: a second one kills at once."""

    def __init__(self) -> None:
        self.received: signal.Signals | None = None
        self._out, self._in = os.pipe()

    def watch(self) -> None:
        for each in _SIGNALS:
            if signal.getsignal(each) is not signal.SIG_IGN:  # nohup
                signal.signal(each, self._note)

    def wait(self, seconds: float) -> signal.Signals | None:
        """The signal that came; None if none has come so far."""
        if self.received is None:
            select.select([self._out], [], [], seconds)
        return self.received

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.received = signal.Signals(number)
        for each in _SIGNALS:
            if signal.getsignal(each) == self._note:
                signal.signal(each, signal.SIG_DFL)
        os.write(self._in, b"!")
