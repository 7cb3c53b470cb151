"""The table of commands. A command is a function in a module of its own, imported when the command is called."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, cast

from headwater.cli.output import Output


class Main(Protocol):
    """What a command's module offers: it parses its own arguments and returns an exit code."""

    def __call__(self, arguments: Sequence[str], output: Output, /) -> int: ...


@dataclass(frozen=True)
class Command:
    """A command's place (`module:function`) and what it does, in one line."""

    place: str
    summary: str

    def load(self) -> Main:
        module, _, name = self.place.partition(":")
        return cast("Main", getattr(importlib.import_module(module), name))


COMMANDS = {
    "events": Command("headwater.cli.events:main", "show the events of a local log or a spool"),
    "demo": Command("headwater.cli.demo:main", "follow events on their way"),
    "run": Command("headwater.cli.run:main", "run a PySpark script with headwater in its driver"),
    "spool": Command("headwater.cli.spool:main", "look after what drivers could not deliver"),
    "up": Command("headwater.cli.up:main", "start real servers on this machine: Kafka, PostgreSQL, MariaDB"),
}
