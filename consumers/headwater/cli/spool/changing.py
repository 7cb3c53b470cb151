"""`headwater spool rename` and `drop`: what only somebody can say who knows which listener was meant."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from headwater.cli.exits import Exit
from headwater.cli.output import Output
from headwater.cli.spool.arguments import local_places
from headwater.errors import HeadwaterError
from headwater.listeners.bus.left import drop_listener, rename_listener
from headwater.listeners.bus.listing import Left, Standing, left_in


def rename(given: Any, output: Output) -> int:
    def change(left: Left) -> str:
        rename_listener(left.directory, given.name, given.new)
        return f"what {given.name} hadn't got is {given.new}'s now"

    return _change(given, output, change)


def drop(given: Any, output: Output) -> int:
    def change(left: Left) -> str:
        is_gone = drop_listener(left.directory, given.name)
        return "removed: it was kept for nobody else" if is_gone else f"not kept for {given.name} any more"

    return _change(given, output, change)


def _change(given: Any, output: Output, change: Callable[[Left], str]) -> int:
    """In each spool of a dead driver that is kept for that listener."""
    found = [left for left in left_in(local_places(given)) if given.name in left.waiting]
    if not found:
        raise HeadwaterError(f"no spool is kept for {given.name}: `headwater spool status` shows for whom there are")
    held = [left for left in found if left.is_held]
    rows = [(left.directory, change(left)) for left in found if not left.is_held]
    rows += [(left.directory, _HELD[left.standing]) for left in held]
    output.table("Spools", ("spool", "what became of it"), rows)
    return Exit.TRY_AGAIN if held else Exit.DONE


_HELD = {
    Standing.LIVE: "left as it is, because its driver runs",
    Standing.SHIPPED: "left as it is, because it is being shipped",
}
