"""What `headwater replay` prints: progress on standard error, the outcome as its answer."""

from __future__ import annotations

import json
import time
from datetime import timedelta
from typing import TYPE_CHECKING, Final, TextIO

from headwater.cli.output import Age, CommandOutput, span_text

if TYPE_CHECKING:
    from headwater.consumers.replay.filling import PhaseProgress
    from headwater.consumers.replay.replay import ReplayResult

_LINE_SECONDS: Final = 10.0
"""How often a line is written where there is no terminal."""
CLEAR_LINE: Final = "\r\x1b[K"


class ProgressLines:
    """One line that changes on a terminal; elsewhere lines from time to time, of text or of JSON."""

    def __init__(self, output: str, err: TextIO) -> None:
        """`output` is the form of the command's answer."""
        self._as_json = output == "json"
        self._err = err
        self._is_terminal = err.isatty() and not self._as_json
        self._next = 0.0

    def show(self, progress: PhaseProgress) -> None:
        if not progress.total:
            return
        if self._is_terminal:
            end = "\n" if progress.is_finished else ""
            self._err.write(f"{CLEAR_LINE}{_words(progress)}{end}")
            self._err.flush()
        elif progress.is_finished or time.monotonic() >= self._next:
            self._next = time.monotonic() + _LINE_SECONDS
            print(json.dumps(_fields(progress)) if self._as_json else _words(progress), file=self._err, flush=True)


def _words(progress: PhaseProgress) -> str:
    left = progress.seconds_left
    text = f"{progress.phase}: {progress.done:,} of {progress.total:,} {progress.unit}, {progress.rate:,.0f} a second"
    if progress.is_finished:
        return f"{text}, {span_text(timedelta(seconds=progress.seconds))}"
    return text if left is None else f"{text}, {span_text(timedelta(seconds=left))} left"


def _fields(progress: PhaseProgress) -> dict[str, object]:
    left = progress.seconds_left
    return {
        "phase": progress.phase,
        "unit": progress.unit,
        "done": progress.done,
        "total": progress.total,
        "per_second": round(progress.rate, 1),
        "seconds_left": None if left is None else round(left, 1),
        "finished": progress.is_finished,
    }


def give_result(output: CommandOutput, result: ReplayResult) -> None:
    """Give the outcome."""
    output.table(
        "missing events",
        ("producer", "family", "events", "first", "last"),
        [(str(each.producer), each.family, each.events, each.first, each.last) for each in result.missing],
        "Events that the live store had and no source has",
    )
    fields = {
        "events": result.events,
        "rows copied": result.copied_rows,
        "switched": result.is_switched,
        "writers waited": Age(round(result.pause, 3)) if result.is_switched else None,
    }
    output.record("replay", fields)
