"""Events to the console, for looking: one line each, on standard error unless `stream` says otherwise.

A thread of its own writes, so that a reader that doesn't read holds nobody up; what can't be written is counted, and
reported in a line of its own once something can be written again.

Lines to a stream that may be slow, stuck, closed or gone, without anybody waiting for it.
"""

from __future__ import annotations

import io
import os
import select
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from functools import partial
from typing import Final, Literal, TextIO

from headwater.config import Config, read_config, read_usable_config
from headwater.events.envelope import Event
from headwater.events.presentation import event_object, format_line, json_line, line_of
from headwater.spi import WRONG_KEY, CheckResult, ListenerContext

_MAX_QUEUED_LINES: Final = 1000
_MAX_WAIT_SECONDS: Final = 1.0


class LineWriter:
    """A thread, and the lines that wait for it. `stream` and `missed_line` are asked anew for each line.

    The thread is a daemon and holds no lock while it writes: one that is stuck in a full pipe keeps neither the
    interpreter from ending nor others from printing.
    """

    def __init__(self, stream: Callable[[], TextIO | None], missed_line: Callable[[int], str]) -> None:
        self._stream = stream
        self._missed_line = missed_line
        self._changed = threading.Condition()
        self._lines: deque[str | int] = deque()
        """Lines, and numbers of what is missing between them."""
        self._is_writing = False
        self._is_closed = False
        self._lost = 0
        """Lines that went nowhere, of all that were offered."""
        self._unreported = 0
        """How many the next line that can be written is to tell as missed."""
        self._is_torn = False
        self._thread: threading.Thread | None = None

    def write(self, line: str) -> None:
        """Have this written as soon as can be. Where too many wait already it is counted as missed instead."""
        with self._changed:
            if self._is_closed or len(self._lines) >= _MAX_QUEUED_LINES:
                self._lost += 1
                self._count_missed(1)
                return
            self._lines.append(line)
            self._start_thread()
            self._changed.notify_all()

    def count_missed(self, count: int) -> None:
        """Tell that so many events before the next one are missing."""
        with self._changed:
            self._count_missed(count)
            self._start_thread()
            self._changed.notify_all()

    def flush(self, timeout: float) -> bool:
        """Wait until nothing waits; False where that takes longer."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._lines and not self._is_writing, timeout)

    def close(self, timeout: float) -> bool:
        """True if everything that was offered was written."""
        deadline = time.monotonic() + timeout
        done = self.flush(timeout)
        with self._changed:
            self._is_closed = True
            self._lines.clear()
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join(max(0.0, deadline - time.monotonic()))
        return done and not self._lost

    def _count_missed(self, count: int) -> None:
        if self._lines and isinstance(last := self._lines[-1], int):
            self._lines[-1] = last + count
        else:
            self._lines.append(count)

    def _start_thread(self) -> None:
        if self._thread is None and not self._is_closed:
            self._thread = threading.Thread(target=self._write_lines, name="headwater-console", daemon=True)
            self._thread.start()

    def _write_lines(self) -> None:
        while (item := self._next()) is not None:
            if isinstance(item, int):
                self._unreported += item
                is_written = self._write_missed()
            else:
                is_written = self._write_missed() and self._write(item)
            with self._changed:
                self._is_writing = False
                if not is_written and isinstance(item, str):
                    self._lost += 1
                    self._unreported += 1
                self._changed.notify_all()

    def _next(self) -> str | int | None:
        with self._changed:
            self._changed.wait_for(lambda: self._lines or self._is_closed)
            if not self._lines:
                return None
            self._is_writing = True
            return self._lines.popleft()

    def _write_missed(self) -> bool:
        if self._unreported and not self._write(self._missed_line(self._unreported)):
            return False
        self._unreported = 0
        return True

    def _write(self, line: str) -> bool:
        stream = self._stream()
        if stream is None:
            return False
        try:
            write_line(stream, f"\n{line}" if self._is_torn else line)
        except (OSError, ValueError) as e:  # gone; closed
            self._is_torn = self._is_torn or isinstance(e, PartialLineError)
            return False
        self._is_torn = False
        return True


class PartialLineError(OSError):
    """A line was written in part: the next one begins with the end of it."""


def write_line(stream: TextIO, line: str) -> None:
    """Past the stream's buffer where a descriptor is behind it: a stuck write would keep the buffer's lock, and with it
    everybody who prints, and the interpreter at its end. What the stream's encoding lacks is escaped."""
    descriptor = _descriptor_of(stream)
    if descriptor is None:
        stream.write(f"{line}\n")
        stream.flush()
        return
    data = f"{line}\n".encode(stream.encoding, "backslashreplace")
    done = _write_some(descriptor, data)
    try:
        while done < len(data):
            done += _write_some(descriptor, data[done:])
    except OSError as e:
        raise PartialLineError(e.errno, e.strerror) from e


def _write_some(descriptor: int, data: bytes) -> int:
    try:
        return os.write(descriptor, data)
    except BlockingIOError:  # somebody who shares it made it so
        select.select([], [descriptor], [], _MAX_WAIT_SECONDS)
        return 0


def _descriptor_of(stream: TextIO) -> int | None:
    if not isinstance(stream, io.TextIOWrapper):
        return None
    try:
        return stream.fileno()
    except io.UnsupportedOperation:
        return None


class ConsoleConfig(Config):
    """What stands under `spark.headwater.console.`."""

    stream: Literal["stderr", "stdout"] = "stderr"
    """Where lines go: `stderr` or `stdout`."""
    format: Literal["text", "json"] = "text"
    """`text`, or `json`: one object a line, as docs/event-json.md describes it."""
    color: Literal["auto", "always", "never"] = "auto"
    """Colors in text: `always`, `never`, or `auto`: on a terminal, unless NO_COLOR is set."""


class ConsoleFactory:
    """The entry point `console`."""

    def create(self, context: ListenerContext) -> ConsoleListener:
        report = partial(context.report_problem, WRONG_KEY)
        return ConsoleListener(
            read_usable_config(
                ConsoleConfig,
                context.configuration,
                report,
                shown=context.prefix,
            )
        )

    def diagnose(self, context: ListenerContext) -> Iterator[CheckResult]:
        """For `headwater doctor`."""
        from headwater.publishers.checks import check_console  # noqa: PLC0415 - no driver needs it

        config = read_config(ConsoleConfig, context.configuration, shown=context.prefix)
        return check_console(_choose_stream(config), config.stream)


class ConsoleListener:
    """Never raises for the console's sake: who closes the stream, or breaks its pipe, only doesn't see the events."""

    def __init__(self, config: ConsoleConfig | None = None) -> None:
        self._config = config or ConsoleConfig()
        self._writer = LineWriter(self._stream, self._missed_line)

    def on_event(self, event: Event) -> None:
        self._writer.write(self._line(event))

    def on_missed(self, count: int) -> None:
        self._writer.count_missed(count)

    def flush(self, timeout: float) -> None:
        self._writer.flush(timeout)

    def close(self, timeout: float) -> bool:
        return self._writer.close(timeout)

    def _stream(self) -> TextIO | None:
        """Whatever it is at this moment: notebooks and tests put their own there."""
        return _choose_stream(self._config)

    def _line(self, event: Event) -> str:
        if self._config.format == "json":
            return json_line(event_object(event))
        return format_line(line_of(event), color=self._is_colored())

    def _missed_line(self, count: int) -> str:
        if self._config.format == "json":
            return json_line({"kind": None, "missed": str(count)})
        return f"-  {count:,} events were missed here: the console was too slow, or couldn't be written to"

    def _is_colored(self) -> bool:
        if self._config.color != "auto":
            return self._config.color == "always"
        stream = self._stream()
        try:
            return stream is not None and stream.isatty() and not os.environ.get("NO_COLOR")
        except ValueError:  # closed
            return False


def _choose_stream(config: ConsoleConfig) -> TextIO | None:
    return sys.stdout if config.stream == "stdout" else sys.stderr
