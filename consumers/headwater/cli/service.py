"""What a command has that runs for long: a log on standard error, and an end when it is told to.

The log is a line for each thing, for people or as JSON. One that runs for months finishes what it holds at a first
signal, not at a second one; one that runs a job ends with it.

Ending at once does no harm: what isn't finished is read again. It can be the only way, as a thread may be in the midst
of a transaction, which nobody can take it out of.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
import sys
import threading
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any, Final, NoReturn

from headwater.cli.bus import host_and_port
from headwater.cli.exits import Exit
from headwater.cli.flags import Flags, one_of, whole_number
from headwater.terminal import printable, printable_lines

if TYPE_CHECKING:
    from headwater.consumers.health_server import HealthMetrics

_FORMATS: Final = ("text", "json")
_LEVELS: Final = ("debug", "info", "warning", "error")
FIELDS: Final = "headwater"
"""The attribute of a record that holds what it is about, by names: `extra={"headwater": {"events": 5}}`."""


def add_service(parser: Flags, debug: str = "") -> None:
    """Add the flags of a command that runs until it is stopped; `debug` says what its log has at that level."""
    parser.flag("health", host_and_port, None, "serve /live, /ready and /metrics there", "HOST:PORT")
    parser.flag("drain-seconds", whole_number, "30", "how long it may take to end after a SIGTERM", "N")
    add_logging(parser, debug)


def add_logging(parser: Flags, debug: str = "") -> None:
    """Add the flags of a log; `debug` says what it has at that level."""
    parser.flag("log-format", one_of(_FORMATS), "text", "how the log on standard error looks", "{text,json}")
    parser.flag("log-level", one_of(_LEVELS), "info", f"what is in it{debug and f'; debug has {debug}'}", "LEVEL")


def serve_health(metrics: HealthMetrics, address: tuple[str, int] | None) -> AbstractContextManager[object]:
    """Return the server of --health, which serves while its `with` block runs; nothing without that flag."""
    if address is None:
        return nullcontext()
    from headwater.consumers.health_server import HealthServer  # noqa: PLC0415

    return HealthServer(metrics, *address)


@contextmanager
def logging_as(form: str, level: str) -> Generator[None, None, None]:
    """Log in this way until the context ends, then as before: somebody else may use the logger in this process."""
    handler: logging.Handler = logging.StreamHandler()
    handler.setFormatter(_Json() if form == "json" else _Text())
    logger = logging.getLogger("headwater")
    level_before = logger.level
    logger.addHandler(handler)
    logger.setLevel(level.upper())
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level_before)


class _SafeFormatter(logging.Formatter):
    """Hides secrets in what plug-ins and libraries put into their errors, such as the URL of a request."""

    def formatException(self, ei: Any) -> str:  # noqa: N802 - the name is logging's
        from headwater.events.redaction import redact  # noqa: PLC0415 - it imports pydantic

        return str(redact(super().formatException(ei)))


class _Text(_SafeFormatter):
    def format(self, record: logging.LogRecord) -> str:
        fields = getattr(record, FIELDS, {})
        words = "".join(f" {name}={value}" for name, value in fields.items())
        text = printable(f"{_moment(record)} {record.levelname.lower():<7} {record.getMessage()}{words}")
        return f"{text}\n{printable_lines(self.formatException(record.exc_info))}" if record.exc_info else text


class _Json(_SafeFormatter):
    def format(self, record: logging.LogRecord) -> str:
        words = {
            "time": _moment(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **getattr(record, FIELDS, {}),
        }
        if record.exc_info:
            words["error"] = self.formatException(record.exc_info)
        return json.dumps(words, default=str)


def _moment(record: logging.LogRecord) -> str:
    return datetime.fromtimestamp(record.created, timezone.utc).isoformat(timespec="milliseconds")


_LOG: Final = logging.getLogger(__name__)
SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)


class GracefulStop:
    """Handles the signals of one consumer. `finished` says what becomes of what it holds: stored, sent."""

    def __init__(self, stop: Callable[[], None], seconds: float, finished: str) -> None:
        self._stop = stop
        self._rest = f"what isn't {finished} is read again"
        self._finished = finished
        self._seconds = seconds
        self._late = threading.Timer(seconds, self._end_late)
        self._late.daemon = True

    def receive(self, number: signal.Signals) -> None:
        """Stop the consumer, or end the process if it was asked to stop before."""
        if self._late.is_alive():
            _LOG.warning("stopped a second time: it ends at once, and %s", self._rest)
            _end(128 + number)
        _LOG.info("stopping: the events it holds are %s first", self._finished, extra={FIELDS: {"signal": number.name}})
        self._late.start()
        self._stop()

    def cancel(self) -> None:
        """End in one's own time: everything is finished."""
        self._late.cancel()

    def _end_late(self) -> None:
        words = "it isn't done %d seconds after it was stopped: it ends, and %s"
        _LOG.error(words, self._seconds, self._rest)
        _end(Exit.NOT_DRAINED)


def stop_on_signals(stop: Callable[[], None], seconds: int, finished: str) -> None:
    """Let SIGTERM and SIGINT stop what runs in this event loop; end the process if that takes too long."""
    handler, loop = GracefulStop(stop, seconds, finished), asyncio.get_running_loop()
    for each in SIGNALS:
        loop.add_signal_handler(each, handler.receive, each)


@contextmanager
def stopping_on_signals(
    stop: Callable[[], None], finished: str, seconds: float = threading.TIMEOUT_MAX
) -> Generator[None]:
    """Let SIGTERM and SIGINT stop what runs here. `stop` is called in a thread of its own.

    A handler of Python's runs amid whatever the main thread does: it would wait forever for a lock that the main thread
    has just taken, be it the one within an Event that the main thread waits for.
    """
    handler = GracefulStop(stop, seconds, finished)
    received, sent = os.pipe()

    def receive() -> None:
        while number := os.read(received, 1):
            handler.receive(signal.Signals(number[0]))
        os.close(received)

    threading.Thread(target=receive, name="headwater-signals", daemon=True).start()
    before = {each: signal.signal(each, lambda number, _: os.write(sent, bytes([number]))) for each in SIGNALS}
    try:
        yield
    finally:
        for number, previous in before.items():
            signal.signal(number, previous)
        os.close(sent)
        handler.cancel()


@contextmanager
def ended_by_sigterm() -> Generator[None]:
    """Let a SIGTERM end what runs here as Ctrl-C does, so that the process of a job ends too."""
    before = signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _end(status: int) -> NoReturn:
    logging.shutdown()
    os._exit(status)
