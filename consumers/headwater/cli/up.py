"""`headwater up`: real servers on this machine, as long as it runs."""

from __future__ import annotations

import signal
import threading
from collections.abc import Generator, Sequence
from contextlib import contextmanager

from headwater.cli.exits import Exit
from headwater.cli.flags import Flags, one_of
from headwater.cli.output import Output
from headwater.local import Kind, Stack

_DEFAULT = (Kind.KAFKA, Kind.POSTGRES)


def main(arguments: Sequence[str], output: Output) -> int:
    """Start real servers on this machine, without Docker and without root, and say where they are. They run, with empty
    disks of their own, until Ctrl-C."""
    parser = Flags("headwater up", str(main.__doc__))
    names = [kind.value for kind in Kind]
    default = " and ".join(kind.value for kind in _DEFAULT)
    parser.add_argument("servers", nargs="*", metavar="SERVER", help=f"{', '.join(names)}; {default} if none is named")
    kinds = _kinds(parser, parser.parse_args(arguments).servers)
    with _until_told() as told:
        output.note(f"starting {', '.join(kind.value for kind in kinds)} …")
        with Stack(kinds) as stack:
            output.record("What another terminal sets to use them", stack.environment)
            output.note("Ctrl-C stops them, and nothing of them is left.")
            stack.wait(told)
    return Exit.DONE


def _kinds(parser: Flags, names: Sequence[str]) -> list[Kind]:
    known = one_of([kind.value for kind in Kind], "server")
    try:
        return [Kind(known(name)) for name in dict.fromkeys(names)] or list(_DEFAULT)
    except ValueError as e:
        parser.error(str(e))


@contextmanager
def _until_told() -> Generator[threading.Event]:
    """Set by Ctrl-C and by SIGTERM. While servers start, either ends that at once."""
    told = threading.Event()

    def tell(number: int, frame: object) -> None:  # noqa: ARG001 - a handler is given both
        told.set()
        raise KeyboardInterrupt

    before = {each: signal.signal(each, tell) for each in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield told
    except KeyboardInterrupt:
        if not told.is_set():
            raise
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
