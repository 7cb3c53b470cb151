"""`headwater spool`: what drivers left undelivered on this host, and what is to become of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from headwater.cli.flags import Flags
from headwater.cli.output import Output
from headwater.cli.spool.arguments import ACTIONS, parse
from headwater.cli.spool.changing import drop, rename
from headwater.cli.spool.shipping import ship
from headwater.cli.spool.status import status
from headwater.cli.spool.verifying import verify

__all__ = ["main"]


def main(arguments: Sequence[str], output: Output) -> int:
    """Look after what drivers told and couldn't deliver. Nothing of a driver that runs is changed."""
    epilog = "\n".join(["actions:", *(f"  {name:<10}{text}" for name, text in ACTIONS.items())])
    parser = Flags("headwater spool", str(main.__doc__), epilog)
    parser.action(ACTIONS, "what to do")
    parsed = parser.parse_args(arguments)
    return _DO[parsed.action](parse(parsed.action, parsed.arguments), output)


_DO: dict[str, Callable[[Any, Output], int]] = {
    "status": status,
    "verify": verify,
    "ship": ship,
    "rename": rename,
    "drop": drop,
}
