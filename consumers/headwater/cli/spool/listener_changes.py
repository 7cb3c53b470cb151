"""`headwater spool rename` and `drop`: what only somebody can say who knows which listener was meant."""

from __future__ import annotations

from argparse import Namespace
from typing import Final

from headwater.cli.commands import command
from headwater.cli.erasing import add_erasing, erase
from headwater.cli.exits import Exit
from headwater.cli.flags import Flags
from headwater.cli.output import CommandOutput
from headwater.cli.spool.arguments import add_directory, local_places
from headwater.errors import HeadwaterError
from headwater.listeners.bus.spool_listing import SpoolStatus, SpoolSummary, drop_listener, list_spools, rename_listener

_COLUMNS: Final = ("spool", "what became of it")
_HELD: Final = {
    SpoolStatus.LIVE: "left as it is, because its driver runs",
    SpoolStatus.SHIPPED: "left as it is, because it is being shipped",
}


def _name(parser: Flags) -> None:
    parser.word("name", str, "what the listener was called", "LISTENER")


def _new(parser: Flags) -> None:
    parser.word("new", str, "what the listener is called that is to get it", "NEW")


@command(
    """Give what one listener hasn't got to one of another name: for a name that was misspelt in the configuration.

The next driver with that listener delivers it, or `headwater spool ship`.""",
    "headwater spool rename kafak kafka",
    flags=[add_directory, _name, _new],
)
def rename(given: Namespace, output: CommandOutput) -> int:
    free, held = _spools_waiting_for(given)
    for each in free:
        rename_listener(each.directory, given.name, given.new)
    rows = [(each.directory, f"what {given.name} hadn't got is {given.new}'s now") for each in free]
    output.table("spools", _COLUMNS, rows + [(each.directory, _HELD[each.status]) for each in held])
    return Exit.TRY_AGAIN if held else Exit.DONE


@command(
    "Throw away what a listener hasn't got. A spool that is kept for nobody else is removed.",
    "headwater spool drop kafak --dry-run",
    "headwater spool drop kafak --yes",
    flags=[add_directory, _name, add_erasing],
)
def drop(given: Namespace, output: CommandOutput) -> int:
    free, held = _spools_waiting_for(given)
    waiting = sum(each.waiting[given.name].records or 0 for each in free)
    rows = [(each.directory, each.waiting[given.name].records) for each in free]
    if rows:
        output.table("to drop", ("spool", "waiting"), rows, f"What waits for {given.name}, in records at most")

    def work() -> tuple[str, dict[str, object]]:
        dropped = [(each.directory, _drop_text(each, given.name)) for each in free]
        output.table("spools", _COLUMNS, dropped + [(each.directory, _HELD[each.status]) for each in held])
        return f"dropped what waited in {len(free)} spools", {"dropped": len(free)}

    question = f"Up to {waiting} records in {len(free)} spools will never be delivered to {given.name}: drop them?"
    code = erase(given, output, question, work)
    return Exit.TRY_AGAIN if held and code is Exit.DONE else code


def _drop_text(spool: SpoolSummary, name: str) -> str:
    is_gone = drop_listener(spool.directory, name)
    return "removed: it was kept for nobody else" if is_gone else f"not kept for {name} any more"


def _spools_waiting_for(given: Namespace) -> tuple[list[SpoolSummary], list[SpoolSummary]]:
    """Return the spools that are kept for the listener: those of dead drivers, and those that somebody holds."""
    found = [spool for spool in list_spools(local_places(given)) if given.name in spool.waiting]
    if not found:
        raise HeadwaterError(f"no spool is kept for {given.name}: `headwater spool status` shows for whom there are")
    return [each for each in found if not each.is_held], [each for each in found if each.is_held]
