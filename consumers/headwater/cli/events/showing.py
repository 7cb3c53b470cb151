"""Lines on standard output; what isn't an event, such as a loss, is told on standard error."""

from __future__ import annotations

import io
import os
from typing import TextIO

from headwater.cli.events.reading import FoundLost, FoundRecord
from headwater.events.envelope import Event
from headwater.events.presentation import (
    as_shown,
    event_object,
    json_line,
    line_of,
    stranger_line,
    stranger_object,
)
from headwater.journal import Lost


class Screen:
    """Where lines go. Each is there at once: whoever follows wants to see it now."""

    def __init__(self, out: TextIO, err: TextIO, *, as_json: bool) -> None:
        self._out = out
        self._err = err
        self._as_json = as_json
        self._has_color = out.isatty() and not os.environ.get("NO_COLOR")
        if isinstance(out, io.TextIOWrapper):
            out.reconfigure(errors="backslashreplace")  # an arrow mustn't end a reading where there is no UTF-8

    def show(self, found: FoundRecord) -> None:
        print(self._line(found), file=self._out, flush=True)

    def tell_lost(self, found: FoundLost) -> None:
        self.note(f"{found.place}: {_loss(found.lost)}")

    def note(self, text: str) -> None:
        print(f"headwater: {text}", file=self._err, flush=True)

    def _line(self, found: FoundRecord) -> str:
        content, origin = found.content, found.origin
        if self._as_json:
            return json_line(event_object(content) if isinstance(content, Event) else stranger_object(content, origin))
        line = line_of(content) if isinstance(content, Event) else stranger_line(content, origin)
        return as_shown(line, color=self._has_color)


def _loss(lost: Lost) -> str:
    count = lost.following - lost.first
    what = (
        f"{count:,} records are lost, offsets {lost.first} to {lost.following - 1}" if count else "some bytes are lost"
    )
    where = f" (bytes {lost.start} to {lost.end} of {lost.path})" if lost.end else ""
    return f"{what}: {lost.why.value}{where}"
