"""`headwater events`: show the events of a local log, or of a driver's spool, as text or JSON."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterator, Sequence

from headwater.cli.events.arguments import Request, parse
from headwater.cli.events.reading import Found, FoundLost, FoundRecord, follow, read_all
from headwater.cli.events.selection import Selection
from headwater.cli.events.showing import Screen
from headwater.cli.exits import Exit
from headwater.cli.flags import Flags
from headwater.cli.output import OUTPUTS, Output

__all__ = ["main"]

_ACTIONS = {
    "cat": "show everything that is there now, oldest first",
    "tail": "show what comes from now on, until Ctrl-C",
}


def main(arguments: Sequence[str], output: Output) -> int:
    """Show events. Nothing is changed by it: no place is kept, and neither writers nor other readers are disturbed."""
    epilog = "\n".join(["actions:", *(f"  {name:<10}{text}" for name, text in _ACTIONS.items())])
    parser = Flags("headwater events", str(main.__doc__), epilog)
    parser.action(_ACTIONS, "what to do")
    parsed = parser.parse_args(arguments)
    usual = next(name for name, kind in OUTPUTS.items() if isinstance(output, kind))
    request = parse(parsed.action, _ACTIONS[parsed.action], parsed.arguments, usual)
    return _show(request)


def _show(request: Request) -> int:
    screen = Screen(sys.stdout, sys.stderr, as_json=request.as_json)
    source = request.source
    found = follow(source, from_start=request.from_start) if request.follows else read_all(source)
    for item in itertools.islice(_wanted(found, request.selection, screen), request.limit):
        screen.show(item)
    if request.selection.unreadable:
        screen.note(f"{request.selection.unreadable} records can't be read and were left out by --job or --table")
    return Exit.DONE


def _wanted(found: Iterator[Found], selection: Selection, screen: Screen) -> Iterator[FoundRecord]:
    """What was asked for; losses are told, whatever was."""
    for item in found:
        if isinstance(item, FoundLost):
            screen.tell_lost(item)
        elif selection.takes(item):
            yield item
