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
    "datasets": Command("headwater.cli.life.datasets:main", "say that several identities are one dataset"),
    "dead-letters": Command("headwater.cli.dead_letters:main", "look after events that could not be stored"),
    "delete-data-lineage": Command(
        "headwater.cli.life.deleting:delete_data_lineage", "delete which snapshots a job read and made"
    ),
    "delete-table-lineage": Command(
        "headwater.cli.life.deleting:delete_table_lineage", "delete which tables a job reads and writes"
    ),
    "demo": Command("headwater.cli.demo:main", "run a small warehouse, and show what is known of it"),
    "doctor": Command("headwater.cli.doctor:main", "examine a Spark configuration, and say what is wrong"),
    "down": Command("headwater.cli.whole.down:main", "stop what `up` left running"),
    "events": Command("headwater.cli.events:main", "show the events of a local log or a spool"),
    "expire": Command("headwater.cli.life.deleting:expire", "let data lineage expire"),
    "gaps": Command("headwater.cli.asking.runs:gaps", "show what may be missing from the store"),
    "history": Command(
        "headwater.cli.asking.tables:history", "show what was done to a table, or what changed between two snapshots"
    ),
    "jobs": Command("headwater.cli.asking.jobs:jobs", "show the jobs of a table"),
    "late": Command("headwater.cli.asking.tables:late", "show why a table is late"),
    "lineage": Command("headwater.cli.lineage:main", "show what tables, snapshots and columns were made from"),
    "names": Command("headwater.cli.asking.tables:names", "show names and lives of a table"),
    "purge": Command("headwater.cli.life.deleting:purge", "remove from the disk what was deleted or has expired"),
    "run": Command("headwater.cli.run:main", "run a PySpark script with headwater in its driver"),
    "runs": Command("headwater.cli.asking.runs:runs", "show runs, how they stand and what failed in them"),
    "spool": Command("headwater.cli.spool:main", "look after what drivers could not deliver"),
    "status": Command("headwater.cli.whole.status:main", "show what `up` has running, and how it is"),
    "store": Command("headwater.cli.storekeeping:main", "make, migrate and measure a lineage store"),
    "tables": Command("headwater.cli.asking.jobs:tables", "show the tables of a job"),
    "up": Command("headwater.cli.up:main", "start broker, database and writer on this machine, without Docker"),
    "uses": Command("headwater.cli.asking.jobs:uses", "show who uses a table"),
    "write": Command("headwater.cli.write:main", "keep a lineage store: events from a bus into it"),
}
