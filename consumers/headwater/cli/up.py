"""`headwater up`: broker, database and writer on this machine, or real servers alone."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from headwater.cli.exits import Exit
from headwater.cli.flags import Flags, one_of
from headwater.cli.output import Output
from headwater.cli.whole.home import add_home
from headwater.cli.whole.telling import DATABASES
from headwater.cli.whole.up import bring_up, until_told
from headwater.local import Kind, Stack


def main(arguments: Sequence[str], output: Output) -> int:
    """Start Kafka, a database and the writer between them on this machine, without Docker and without root, and say how
    Spark is told and how the store is asked. They run until Ctrl-C, or with --detach until `headwater down`; what they
    have is kept in a directory.

    With names of servers: those alone, with empty disks of their own, until Ctrl-C."""
    parser = Flags("headwater up", str(main.__doc__))
    names = [kind.value for kind in Kind]
    parser.add_argument("servers", nargs="*", metavar="SERVER", help=f"only these: {', '.join(names)}")
    parser.switch("detach", "leave it running")
    parser.add_argument("-d", action="store_true", dest="detach", help="the same")
    add_home(parser)
    parser.flag("database", one_of(DATABASES, "database"), None, "postgres unless the directory has another", "NAME")
    parser.flag("topic", str, "headwater.events", "the topic", "NAME")
    given = parser.parse_args(arguments)
    if not given.servers:
        return bring_up(given, output)
    return _servers(_kinds(parser, given.servers), output)


def _servers(kinds: Sequence[Kind], output: Output) -> int:
    with until_told() as told:
        output.note(f"starting {', '.join(kind.value for kind in kinds)} …")
        with Stack(kinds) as stack:
            output.record("What another terminal sets to use them", stack.environment)
            output.note("Ctrl-C stops them, and nothing of them is left.")
            sys.stdout.flush()
            stack.wait(told)
    return Exit.DONE


def _kinds(parser: Flags, names: Sequence[str]) -> list[Kind]:
    known = one_of([kind.value for kind in Kind], "server")
    try:
        return [Kind(known(name)) for name in dict.fromkeys(names)]
    except ValueError as e:
        parser.error(str(e))
