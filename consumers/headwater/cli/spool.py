"""`headwater spool`: what drivers left undelivered on this host, and what is to become of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from headwater.cli.exits import Exit
from headwater.cli.flags import Flags, pair
from headwater.cli.output import Output
from headwater.errors import ConfigurationError, HeadwaterError, TransientError
from headwater.listeners.bus import Bus
from headwater.listeners.bus.left import Left, drop_listener, left_in, rename_listener
from headwater.listeners.bus.spool import spool_places
from headwater.listeners.settings import PREFIX, Settings, spool_directory
from headwater.spi import Application

_ACTIONS = {
    "list": "show the spools there are, and which listener hasn't got what",
    "ship": "deliver what dead drivers left, as the next driver would, to the listeners that --conf names",
    "rename": "give what one listener hasn't got to one of another name, which the next driver or `ship` delivers",
    "drop": "let what a listener hasn't got go",
}
_SLICE = 0.5


def main(arguments: Sequence[str], output: Output) -> int:
    """Look after what drivers told and couldn't deliver. Nothing of a driver that runs is changed."""
    epilog = "\n".join(["actions:", *(f"  {name:<10}{text}" for name, text in _ACTIONS.items())])
    parser = Flags("headwater spool", str(main.__doc__), epilog)
    parser.action(_ACTIONS, "what to do")
    parsed = parser.parse_args(arguments)
    return _DO[parsed.action](_parsed(parsed.action, parsed.arguments), output)


def _parsed(action: str, arguments: Sequence[str]) -> Any:
    summary = _ACTIONS[action]
    parser = Flags(f"headwater spool {action}", f"{summary[0].upper()}{summary[1:]}.")
    parser.flag("spool-dir", Path, str(spool_directory()), "where spools are kept, spark.headwater.spool.dir", "DIR")
    if action == "ship":
        text = "a property as the drivers have it, spark.headwater.listeners=kafka say"
        parser.flags("conf", pair, text, "KEY=VALUE")
    if action in {"rename", "drop"}:
        parser.add_argument("name", help="what the listener was called")
    if action == "rename":
        parser.add_argument("new", help="what the one is called that is to get it")
    return parser.parse_args(arguments)


def _list(given: Any, output: Output) -> int:
    rows = [
        (left.directory, left.application, "live" if left.is_live else "left", name, waiting, _note(left, name))
        for left in left_in(_places(given.spool_dir))
        for name, waiting in left.waiting.items()
    ]
    columns = ("spool", "application", "driver", "listener", "waiting", "note")
    output.table("What hasn't been dealt with, in records at most", columns, rows)
    return Exit.DONE


def _note(left: Left, name: str) -> str:
    return "could not be made" if name in left.unmade else ""


def _rename(given: Any, output: Output) -> int:
    def change(left: Left) -> str:
        rename_listener(left.directory, given.name, given.new)
        return f"what {given.name} hadn't got is {given.new}'s now"

    return _change(given, output, change)


def _drop(given: Any, output: Output) -> int:
    def change(left: Left) -> str:
        is_gone = drop_listener(left.directory, given.name)
        return "removed: it was kept for nobody else" if is_gone else f"not kept for {given.name} any more"

    return _change(given, output, change)


def _change(given: Any, output: Output, change: Callable[[Left], str]) -> int:
    """In each spool of a dead driver that is kept for that listener."""
    found = [left for left in left_in(_places(given.spool_dir)) if given.name in left.waiting]
    if not found:
        raise HeadwaterError(f"no spool is kept for {given.name}: `headwater spool list` shows for whom there are")
    held = [left for left in found if left.is_live]
    rows = [(left.directory, change(left)) for left in found if not left.is_live]
    rows += [(left.directory, "left as it is, because its driver runs") for left in held]
    output.table("Spools", ("spool", "what became of it"), rows)
    return Exit.TRY_AGAIN if held else Exit.DONE


def _ship(given: Any, output: Output) -> int:
    conf = {f"{PREFIX}spool.dir": str(given.spool_dir), **dict(given.conf)}
    bus = Bus.open(conf, Application("headwater-spool-ship", "headwater spool ship"))
    if not bus.report().listeners:
        raise ConfigurationError(f"say to whom: --conf {PREFIX}listeners=kafka, and what stands below {PREFIX}kafka.")
    try:
        while (shipped := bus.ship(_SLICE)) is None:
            pass
    finally:
        bus.stop(5)
    for fault in bus.faults:
        raise fault
    waiting = [left for left in left_in(_places(given.spool_dir)) if not left.is_live]
    output.record("Shipped", {"spools": shipped, "left": len(waiting)})
    if waiting:
        raise TransientError(f"{len(waiting)} spools wait for other listeners, or for those that take nothing now")
    return Exit.DONE


def _places(spools: Path) -> list[Path]:
    return list(spool_places(Settings(spool_dir=spools)))


_DO: dict[str, Callable[[Any, Output], int]] = {"list": _list, "ship": _ship, "rename": _rename, "drop": _drop}
