"""`headwater`: reads what is asked, calls the command, turns errors into exit codes. Nothing heavy is imported here."""

from __future__ import annotations

import os
import sys
from argparse import REMAINDER
from collections.abc import Sequence

from headwater.cli.commands import COMMANDS
from headwater.cli.exits import MEANINGS, Exit, exit_for
from headwater.cli.flags import Flags, no_such, one_of
from headwater.cli.output import OUTPUTS, Output
from headwater.errors import HeadwaterError


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; `arguments` are those of the process unless given. Returns the exit code."""
    parser = build_parser()
    parsed = parser.parse_args(arguments)
    if parsed.version:
        print(f"headwater {installed_version()}")
        return Exit.DONE
    if parsed.command is None:
        parser.print_help()
        return Exit.USAGE
    if parsed.command not in COMMANDS:
        parser.error(no_such("command", parsed.command, COMMANDS))
    return run(parsed.command, parsed.arguments, OUTPUTS[parsed.output]())


def run(name: str, arguments: Sequence[str], output: Output) -> int:
    """Call a command and translate how it ended; errors that headwater didn't raise on purpose keep their traceback."""
    try:
        status = COMMANDS[name].load()(arguments, output)
        sys.stdout.flush()
    except HeadwaterError as error:
        output.error(error)
        return exit_for(error)
    except KeyboardInterrupt:
        return Exit.INTERRUPTED
    except BrokenPipeError:
        _forget_output()
        return Exit.PIPE_CLOSED
    return status


def build_parser() -> Flags:
    """The flags that stand before the command."""
    width = max(map(len, COMMANDS)) + 2
    commands = [f"  {name:<{width}}{command.summary}" for name, command in COMMANDS.items()]
    codes = [f"  {code.value:<10}{meaning}" for code, meaning in MEANINGS.items()]
    epilog = "\n".join(["commands:", *commands, "", "exit codes:", *codes])
    parser = Flags("headwater", "Snapshot-exact lineage for Apache Spark.", epilog)
    parser.add_argument("--version", action="store_true", help="show the version and end")
    parser.flag("output", one_of(OUTPUTS), "text", "how results look", "{text,json}")
    parser.add_argument("command", nargs="?", help="what to do; `headwater <command> --help` tells more")
    parser.add_argument("arguments", nargs=REMAINDER, help="what the command is given")
    return parser


def installed_version() -> str:
    """The version of the installed distribution; a namespace package has no place for `__version__`."""
    from importlib.metadata import version  # noqa: PLC0415 - takes longer to import than everything else here

    return version("headwater")


def _forget_output() -> None:
    """Keep the interpreter from complaining, at its end, about an output that nobody reads any more."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
