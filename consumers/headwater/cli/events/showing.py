"""`headwater events cat` and `tail`: events as lines on standard output; losses are reported on standard error.

Which events are shown: by kind, job, table and time.
"""

from __future__ import annotations

import io
import itertools
import os
import re
import sys
from argparse import Namespace
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import TextIO

from headwater.cli.commands import command
from headwater.cli.events.reading import Located, LocatedLoss, LocatedRecord, check_source, follow, read_all, source_of
from headwater.cli.exits import Exit
from headwater.cli.flags import Flags, limit, moment
from headwater.cli.output import CommandOutput, print_words
from headwater.config import unknown
from headwater.events.avro import UnknownEvent
from headwater.events.envelope import Event
from headwater.events.keys import KIND, datasets_in, jobs_in, name_pattern
from headwater.events.kinds import KINDS
from headwater.events.presentation import (
    event_object,
    format_line,
    json_line,
    line_of,
    undecoded_line,
    undecoded_object,
)
from headwater.journal import MissingRecords
from headwater.terminal import printable


@dataclass
class Selection:
    """No condition takes everything; of several all must hold, and of several values of one any."""

    kinds: Collection[str] = ()
    jobs: Collection[re.Pattern[str]] = ()
    tables: Collection[re.Pattern[str]] = ()
    since: datetime | None = None
    until: datetime | None = None
    unreadable: int = 0
    """How many were left out because what can't be read has neither job nor table."""

    def takes(self, found: LocatedRecord) -> bool:
        if not self._takes_kind(found):
            return False
        event = event_in(found)
        time = found.origin.time if event is None else event.time
        if (self.since and time < self.since) or (self.until and time >= self.until):
            return False
        if not self.jobs and not self.tables:
            return True
        if event is None:
            self.unreadable += 1
            return False
        return _any_matches(self.jobs, jobs_in(event)) and _any_matches(self.tables, datasets_in(event))

    def _takes_kind(self, found: LocatedRecord) -> bool:
        """Look at the record's headers first: decoding takes much longer."""
        if not self.kinds:
            return True
        beside = found.origin.headers.get(KIND)
        event = event_in(found) if beside is None else None
        return (beside or (event.kind if event else "")) in self.kinds


def event_in(found: LocatedRecord) -> Event | None:
    """Return the event, or what can be read of one that a newer headwater wrote."""
    content = found.content
    if isinstance(content, UnknownEvent):
        return content.known
    return content if isinstance(content, Event) else None


def _any_matches(patterns: Collection[re.Pattern[str]], names: Iterator[str]) -> bool:
    return not patterns or any(pattern.fullmatch(name) for name in names for pattern in patterns)


_READS = (
    "Nothing is changed by it, and neither writers nor other readers notice it. JSON is one document for each event."
)


def _source(parser: Flags) -> None:
    parser.flag("from", source_of, "log", "log:DIR or spool:DIR; log alone is the user's own log", "SOURCE")
    parser.flags("kind", kind_named, "only events of this kind, such as Committed", "KIND")
    parser.flags("job", name_pattern, "only of this job and its steps, or whose name matches: 'orders_*'", "JOB")
    parser.flags("table", name_pattern, "only with this table: 'lake.sales.*', sales.orders, a dataset's name", "TABLE")


def _times(parser: Flags) -> None:
    written = "2026-03-01, 2026-03-01T12:30 (UTC unless it says otherwise), or how long ago: 90s, 15m, 2h, 7d"
    parser.flag("since", moment, None, f"not before: {written}", "TIME")
    parser.flag("until", moment, None, "only before this time", "TIME")


def _from_start(parser: Flags) -> None:
    parser.switch("from-start", "begin with what is there already")


@command(
    f"Show the events that are there now, oldest first.\n\n{_READS}",
    "headwater events cat",
    "headwater events cat --from log:/var/lib/headwater/log --table sales.daily --since 2h",
    "headwater events cat --from spool:/var/spool/headwater --kind Committed -o json",
    flags=[_source, _times, limit(None)],
    is_stream=True,
)
def cat(given: Namespace, output: CommandOutput) -> int:  # noqa: ARG001 - lines come one by one
    selection = Selection(given.kind, given.job, given.table, given.since, given.until)
    return _show(read_all(check_source(vars(given)["from"])), selection, given)


@command(
    f"Show events as they come, until Ctrl-C.\n\n{_READS}",
    "headwater events tail --from log:/var/lib/headwater/log --kind Committed",
    "headwater events tail --from-start --limit 100 -o json",
    flags=[_source, _from_start, limit(None)],
    is_stream=True,
)
def tail(given: Namespace, output: CommandOutput) -> int:  # noqa: ARG001 - lines come one by one
    source = check_source(vars(given)["from"])
    is_empty = not source.journals()
    if is_empty:
        print_words(f"no event is in {source.directory} yet: what comes is shown, Ctrl-C ends it", sys.stderr)
    # Who was told that nothing is there sees also what comes before the first look.
    found = follow(source, from_start=given.from_start or is_empty)
    return _show(found, Selection(given.kind, given.job, given.table), given)


def kind_named(text: str) -> str:
    """Return a kind that this version knows, whatever its letters' case."""
    known = {kind.lower(): kind for kind in KINDS}
    if text.lower() not in known:
        raise ValueError(unknown("kind", text, KINDS))
    return known[text.lower()]


def _show(found: Iterator[Located], selection: Selection, given: Namespace) -> int:
    screen = Screen(sys.stdout, sys.stderr, as_json=given.output == "json")
    for item in itertools.islice(_select(found, selection, screen), given.limit):
        screen.show(item)
    if selection.unreadable:
        screen.note(f"{selection.unreadable} records can't be read and were left out by --job or --table")
    return Exit.DONE


def _select(found: Iterator[Located], selection: Selection, screen: Screen) -> Iterator[LocatedRecord]:
    """Yield what was asked for; losses are reported, whatever was."""
    for item in found:
        if isinstance(item, LocatedLoss):
            screen.note(f"{item.place}: {_loss(item.lost)}")
        elif selection.takes(item):
            yield item


class Screen:
    """Where lines go. Each is there at once: whoever follows wants to see it now."""

    def __init__(self, out: TextIO, err: TextIO, *, as_json: bool) -> None:
        self._out = out
        self._err = err
        self._as_json = as_json
        self._has_color = out.isatty() and not os.environ.get("NO_COLOR")
        if isinstance(out, io.TextIOWrapper):
            out.reconfigure(errors="backslashreplace")  # an arrow mustn't end a reading where there is no UTF-8

    def show(self, found: LocatedRecord) -> None:
        print(self._line(found), file=self._out, flush=True)

    def note(self, text: str) -> None:
        print(printable(f"headwater: {text}"), file=self._err, flush=True)

    def _line(self, found: LocatedRecord) -> str:
        content, origin = found.content, found.origin
        if self._as_json:
            return json_line(event_object(content) if isinstance(content, Event) else undecoded_object(content, origin))
        line = line_of(content) if isinstance(content, Event) else undecoded_line(content, origin)
        return format_line(line, color=self._has_color)


def _loss(lost: MissingRecords) -> str:
    count = lost.end_offset - lost.first
    what = (
        f"{count:,} records are lost, offsets {lost.first} to {lost.end_offset - 1}" if count else "some bytes are lost"
    )
    where = f" (bytes {lost.start} to {lost.end} of {lost.path})" if lost.end else ""
    return f"{what}: {lost.reason.value}{where}"
