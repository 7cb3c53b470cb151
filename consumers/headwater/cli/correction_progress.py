"""How far a long command of a correction is, on standard error: a line that changes on a terminal, else lines."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, TextIO

from headwater.cli.output import print_words
from headwater.cli.replay_output import CLEAR_LINE, ProgressLines

if TYPE_CHECKING:
    from headwater.consumers.replay.filling import PhaseProgress


class CorrectionProgress:
    """Shows phases one after the other, and says words between. Nothing of it is in an answer of JSON."""

    def __init__(self, output: str, err: TextIO | None = None) -> None:
        self._err = err or sys.stderr
        self._lines = None if output == "json" else ProgressLines(output, self._err)
        self._phase: PhaseProgress | None = None

    def show(self, phase: str, unit: str, done: int, total: int) -> None:
        """Show how far a phase is. It is over when all is done."""
        from headwater.consumers.replay.filling import PhaseProgress  # noqa: PLC0415 - it is for long commands

        if self._phase is None or (self._phase.phase, self._phase.total) != (phase, total):
            self._phase = PhaseProgress(phase, unit, total)
        self._phase.done, self._phase.is_finished = done, done >= total
        if self._lines is not None:
            self._lines.show(self._phase)

    def say(self, text: str) -> None:
        """Say something beside the answer. The line of a phase is shown again below it."""
        if self._err.isatty():
            self._err.write(CLEAR_LINE)
        print_words(text, self._err)
        self._err.flush()
        if self._lines is not None and self._phase is not None and not self._phase.is_finished:
            self._lines.show(self._phase)
