"""`headwater lineage`: what a table, snapshot or column was made from, what was made from it, and ways between."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from headwater.cli.exits import Exit
from headwater.cli.flags import Flags
from headwater.cli.lineage.arguments import ACTIONS, parse
from headwater.cli.output import OUTPUTS, Output

__all__ = ["main"]


def main(arguments: Sequence[str], output: Output) -> int:
    """Follow lineage in a store, up or down. Nothing is changed by it."""
    epilog = "\n".join(["actions:", *(f"  {name:<12}{text}" for name, text in ACTIONS.items())])
    parser = Flags("headwater lineage", str(main.__doc__), epilog)
    parser.action(ACTIONS, "what to do")
    parsed = parser.parse_args(arguments)
    usual = next(name for name, kind in OUTPUTS.items() if isinstance(output, kind))
    given = parse(parsed.action, parsed.arguments, usual)
    from headwater.cli.lineage.asking import answer_to, shown  # noqa: PLC0415 - it imports SQLAlchemy, and --help needs none

    sys.stdout.write(shown(answer_to(parsed.action, given), given.format))
    return Exit.DONE
