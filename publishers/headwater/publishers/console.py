"""Events to the console, for looking: one line each, on standard error unless `stream` says otherwise.

A thread of its own writes, so that a reader that doesn't read holds nobody up; what can't be written is counted, and
reported in a line of its own once something can be written again.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from functools import partial
from typing import Literal, TextIO

from headwater.config import Config, read_config, read_usable_config
from headwater.events.envelope import Event
from headwater.events.presentation import event_object, format_line, json_line, line_of
from headwater.publishers.line_writer import LineWriter
from headwater.spi import WRONG_KEY, CheckResult, ListenerContext


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
