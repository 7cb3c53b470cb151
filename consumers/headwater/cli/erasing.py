"""What every command does that erases or can't be taken back: it shows what it would do, and asks.

`--yes` is a flag and nothing else: no variable and no file can say it.
"""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Callable, Mapping

from headwater.cli.exits import Exit
from headwater.cli.flags import Flags
from headwater.cli.output import CommandOutput
from headwater.errors import ConfigurationError
from headwater.terminal import printable


def add_erasing(parser: Flags) -> None:
    """Add the flags."""
    parser.switch("dry-run", "show what would be done, and do nothing")
    parser.switch("yes", "don't ask; needed where there is no terminal")


def erase(
    given: Namespace,
    output: CommandOutput,
    question: str,
    work: Callable[[], tuple[str, Mapping[str, object]]],
    *,
    is_nothing: bool = False,
) -> Exit:
    """Call `work`, which says what it did, if somebody agrees. `is_nothing` says that there is nothing to agree to."""
    if is_nothing:
        output.outcome("there is nothing to do", {"done": True})
        return Exit.DONE
    if given.dry_run:
        output.outcome("nothing was done: this was a dry run", {"done": False, "dry_run": True})
        return Exit.DONE
    if not given.yes and not _is_agreed(question):
        output.outcome("nothing was done", {"done": False})
        return Exit.FAILED
    text, fields = work()
    output.outcome(text, {"done": True, **fields})
    return Exit.DONE


def _is_agreed(question: str) -> bool:
    if not sys.stdin.isatty():
        raise ConfigurationError(
            f"{question} There is no terminal to ask at: give --yes, or --dry-run to see what it would do"
        )
    # the answer has standard output for itself
    print(f"{printable(question)} [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in {"y", "yes"}
