"""The tree of commands, `headwater NOUN VERB`, and how a command is declared.

The tree knows each command's place and one line about it; the module is imported when the command is called. There a
command is a function that is decorated by `command`, with its description, its examples and what adds its flags.
"""

from __future__ import annotations

import importlib
from argparse import Namespace
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias, cast

from headwater.cli.exits import exit_for
from headwater.cli.flags import Adder, Flags
from headwater.cli.output import OUTPUTS, CommandOutput
from headwater.errors import HeadwaterError

CommandFunction: TypeAlias = Callable[[Namespace, CommandOutput], int]
"""What a command does: it is given its flags and where its answer goes, and returns the exit code."""


@dataclass(frozen=True)
class Command:
    """What a command's module says of it."""

    call: CommandFunction
    description: str
    examples: Sequence[str]
    """Whole command lines, each of which can be parsed."""
    adders: Sequence[Adder] = ()
    outputs: Sequence[str] = tuple(OUTPUTS)
    parser: type[Flags] = Flags
    split: Callable[[Sequence[str]], tuple[Sequence[str], Sequence[str]]] | None = None
    """Tells the command's own flags from what is run by it; the latter is `target` among the flags then."""
    is_stream: bool = False
    """Whether it gives a document for each thing that comes, and no answer that is whole at some time."""
    exit_of: Callable[[HeadwaterError], int] = exit_for
    """Returns the exit code of an error: another one than usual where that is an answer."""


def command(
    description: str,
    *examples: str,
    flags: Sequence[Adder] = (),
    outputs: Sequence[str] = tuple(OUTPUTS),
    parser: type[Flags] = Flags,
    split: Callable[[Sequence[str]], tuple[Sequence[str], Sequence[str]]] | None = None,
    is_stream: bool = False,
    exit_of: Callable[[HeadwaterError], int] = exit_for,
) -> Callable[[CommandFunction], Command]:
    """Declare a function as a command."""
    return lambda call: Command(call, description, examples, flags, outputs, parser, split, is_stream, exit_of)


@dataclass(frozen=True)
class Leaf:
    """A command's place in code (`module:name`), and what it does in one line."""

    place: str
    summary: str

    def load(self) -> Command:
        """Import the module of the command."""
        module, _, name = self.place.partition(":")
        return cast("Command", getattr(importlib.import_module(f"headwater.cli.{module}"), name))


@dataclass(frozen=True)
class Group:
    """Commands of one noun."""

    summary: str
    children: Mapping[str, Group | Leaf] = field(default_factory=dict)
    alone: Leaf | None = None
    """What is called where no command of the group is named."""


CommandNode: TypeAlias = "Group | Leaf"
CommandPath: TypeAlias = tuple[str, ...]
"""The words of a command, without `headwater`."""

TREE: Final = Group(
    "Snapshot-exact lineage for Apache Spark.",
    {
        "run": Leaf("run:run", "run a PySpark script, a server or a main class with headwater in its driver"),
        "doctor": Leaf("doctor:doctor", "examine a Spark configuration and say what is wrong"),
        "demo": Leaf("demo:demo", "run a small warehouse and show what is known of it"),
        "replay": Leaf("replay:replay", "rebuild a store from its events, and switch over to it"),
        "validate": Leaf("validate:validate", "run a job again on the same inputs, and compare what it makes"),
        "reconcile": Leaf("reconcile:reconcile", "find commits in tables' own logs that nobody reported"),
        "web": Leaf("web:web", "serve the page over a store"),
        "search": Leaf("search:search", "find tables, jobs, columns, runs and snapshots"),
        "lineage": Group(
            "what tables, snapshots and columns were made from",
            {
                "upstream": Leaf("lineage.questions:upstream", "show what a table, snapshot or column was made from"),
                "downstream": Leaf("lineage.questions:downstream", "show what was made from it"),
                "path": Leaf("lineage.questions:path", "show how one table comes into another"),
                "delete": Leaf("lineage.deletion:delete", "delete the lineage that a job reported"),
                "expire": Leaf("lineage.deletion:expire", "let old data lineage expire"),
            },
        ),
        "table": Group(
            "who reads and writes tables, and what was done to them",
            {
                "list": Leaf("table:list_tables", "list the tables that are known"),
                "jobs": Leaf("table:jobs", "list the jobs that read and write a table"),
                "uses": Leaf("table:uses", "show who uses a table"),
                "snapshots": Leaf("table_snapshots:snapshots", "list the snapshots of a table and who made them"),
                "late": Leaf("table:show_late", "show why a table is late"),
                "history": Leaf("table:history", "show what was done to a table, or what changed between snapshots"),
                "checkpoint": Leaf("table:checkpoint", "show which checkpoint and batch made a snapshot"),
                "diff": Leaf("table_diff:diff", "compare two versions of a table row by row"),
                "names": Leaf("table:names", "show the names and generations of a table"),
                "unify": Leaf("lineage.deletion:unify", "say that several datasets are one"),
            },
        ),
        "branch": Group(
            "branches of tables, beside main",
            {
                "create": Leaf("branch:create", "make a branch from a tag of main"),
                "list": Leaf("branch:list_branches", "list the branches of a table"),
                "merge": Leaf("branch:merge", "let main have the rows of a branch"),
                "replace-main": Leaf("branch:replace_main", "the same, and remove what only main had"),
                "delete": Leaf("branch:delete", "delete a branch"),
                "check-expiry": Leaf("branch:check_expiry", "say what an expiry of snapshots would take from branches"),
            },
        ),
        "job": Group(
            "the tables and runs of jobs",
            {
                "list": Leaf("job:list_jobs", "list the jobs that are known"),
                "tables": Leaf("job:tables", "list the tables that a job reads and writes"),
                "runs": Leaf("job:runs", "list runs, their status and what failed in them"),
            },
        ),
        "stream": Group(
            "checkpoints of streaming queries",
            {"fork": Leaf("stream:fork", "make a checkpoint that goes on behind one of a query's batches")},
        ),
        "gap": Group(
            "what may be missing from the store", {"list": Leaf("job:list_gaps", "list what may be missing, and why")}
        ),
        "events": Group(
            "the events in a local log or a spool",
            {
                "cat": Leaf("events.showing:cat", "show the events that are there now"),
                "tail": Leaf("events.showing:tail", "show events as they come, until Ctrl-C"),
            },
        ),
        "writer": Group(
            "the process that fills a lineage store",
            {"run": Leaf("writer.command:run", "read events from Kafka or a local log and store them")},
        ),
        "forward": Group(
            "events to other systems, by forwarders",
            {
                "run": Leaf("forward.running:run", "send events from Kafka or a local log to other systems"),
                "status": Leaf("forward.status:status", "show what forwarders do and how far they are"),
                "list": Leaf("forward.status:list_forwarders", "list the forwarders that are installed or configured"),
                "test": Leaf("forward.targets:test", "check that a target is there, with the rights; write nothing"),
                "plan": Leaf("forward.targets:plan", "show what a forwarder would send about a table"),
            },
        ),
        "pipeline": Group(
            "a Spark job that fills a lineage store",
            {"run": Leaf("pipeline:run", "have executors of Spark read events and store them")},
        ),
        "store": Group(
            "lineage stores and their maintenance",
            {
                "init": Leaf("store:init", "make tables and views where there are none"),
                "migrate": Leaf("store:migrate", "bring the tables to the version of this headwater"),
                "status": Leaf("store:status", "show which version is there and what is to be done"),
                "size": Leaf("store:size", "show how large each table is"),
                "compare": Leaf("store_comparison:compare", "compare two stores row by row"),
                "maintain": Leaf("store:maintain", "make the partitions of the next months (PostgreSQL)"),
                "purge": Leaf("lineage.deletion:purge", "remove from the disk what was deleted or has expired"),
            },
        ),
        "lake": Group(
            "lineage stores of Iceberg or Delta tables",
            {
                "compact": Leaf("lake:compact", "make large files of small ones"),
                "expire": Leaf("lake:expire", "remove old snapshots of the tables"),
            },
        ),
        "dead-letter": Group(
            "events that could not be stored or delivered",
            {
                "list": Leaf("dead_letter:list_letters", "list the events that could not be stored or delivered"),
                "show": Leaf("dead_letter:show", "show one of them with its bytes"),
                "retry": Leaf("dead_letter:retry", "try it again"),
                "drop": Leaf("dead_letter:drop", "give them up"),
            },
        ),
        "spool": Group(
            "what drivers could not deliver",
            {
                "status": Leaf("spool.status:status", "list the spools and what waits in them for whom"),
                "verify": Leaf("spool.status:verify", "read spools from end to end and show damage"),
                "ship": Leaf("spool.shipping:ship", "deliver what dead drivers left"),
                "rename": Leaf("spool.listener_changes:rename", "give what waits for one listener to another one"),
                "drop": Leaf("spool.listener_changes:drop", "throw away what waits for a listener"),
            },
        ),
        "dev": Group(
            "broker, database and writer on this machine, without Docker",
            {
                "up": Leaf("dev.up:up", "start them"),
                "status": Leaf("dev.status:status", "show what runs, and how it is"),
                "down": Leaf("dev.down:down", "stop them"),
                "java-home": Leaf("dev.java_home:java_home", "print a JAVA_HOME that the installed Spark starts on"),
            },
        ),
        "archive": Group(
            "every event as it came, kept as long as wanted",
            {
                "run": Leaf("archive:run", "archive the events of Kafka or a local log"),
                "status": Leaf("archive:status", "show what is there, and which offsets"),
                "verify": Leaf(
                    "archive:verify", "read it from end to end and show damage and offsets without a record"
                ),
                "compact": Leaf("archive:compact", "make large files of small ones"),
                "expire": Leaf("archive:expire", "remove old days"),
            },
        ),
        "conformance": Group(
            "how truly a producer of lineage reports",
            {
                "list": Leaf("conformance:list_scenarios", "list the scenarios"),
                "show": Leaf("conformance:show", "show a scenario and what is true of it"),
                "script": Leaf("conformance:script", "write the scenarios as scripts to run with your producer"),
                "listen": Leaf("conformance:listen", "collect the events that a producer sends over HTTP"),
                "judge": Leaf("conformance:judge_events", "judge the events of a producer"),
            },
        ),
        "help": Leaf("help:show_help", "show the help of a command"),
        "version": Group(
            "which versions of tables belong together; alone: the version of headwater",
            {
                "show": Leaf("data_versions:show", "show which versions of other tables a table contains"),
                "check": Leaf("data_versions:check", "say whether tables belong together at these versions"),
                "align": Leaf("data_versions:align", "find the newest versions of tables that belong together"),
                "list": Leaf("data_versions:list_versions", "list the data versions of a group of aligned jobs"),
            },
            alone=Leaf("help:show_version", "show the version of headwater"),
        ),
        "correct": Group(
            "the correction of tables and of all that was made from them",
            {
                "plan": Leaf("correct:plan", "plan how what was made from a wrong snapshot is corrected"),
                "begin": Leaf("corrections:begin", "make the mirrors on which tables are corrected"),
                "sql": Leaf("corrections:sql", "run a statement on the mirrors, to correct the rows"),
                "run": Leaf("corrections:run", "run the jobs on the mirrors"),
                "diff": Leaf("corrections:diff", "compare the mirrors with their tables"),
                "abort": Leaf("corrections:abort", "end a correction, and remove its mirrors"),
                "list": Leaf("corrections:list_corrections", "list the corrections that were begun"),
                "show": Leaf("corrections:show", "show a correction with its mirrors and steps"),
                "switch": Leaf("correct_switch:switch", "put the mirrors in their tables' places"),
            },
        ),
        "rollback": Group(
            "tables that go back to earlier snapshots, with all that was made from them",
            {
                "to": Leaf("rollback:roll_back", "let a table, or a chain of tables, go back to a snapshot"),
                "undo": Leaf("rollback:undo", "take a roll-back back"),
                "resume": Leaf("rollback:resume", "go on with a roll-back that was interrupted"),
                "list": Leaf("rollback:list_rollbacks", "list the roll-backs that the store knows"),
                "show": Leaf("rollback:show", "show the plan and the steps of a roll-back"),
            },
        ),
        "completion": Leaf("help:completion", "print the script by which a shell completes commands and flags"),
    },
)


_MOST_NEAR: Final = 4


def walk(node: CommandNode = TREE, path: CommandPath = ()) -> Iterator[tuple[CommandPath, CommandNode]]:
    """Yield every node of the tree with its words, parents first."""
    yield path, node
    if isinstance(node, Group):
        for word, child in node.children.items():
            yield from walk(child, (*path, word))


def nearest(word: str, path: CommandPath, group: Group) -> list[CommandPath]:
    """Return the commands that an unknown word may mean, the likeliest first: of its own group, then of the tree."""
    from difflib import get_close_matches  # noqa: PLC0415 - needed for a slip of the pen only

    nodes, parts = sorted((each for each, _ in walk() if each), key=len), set(word.split("-"))
    found: list[CommandPath] = [(*path, name) for name in group.children if len(word) > 1 and name.startswith(word)]
    for is_meant in (
        lambda each: each[-1] == word,
        lambda each: f"{each[-1]}s" == word,
        lambda each: len(each) > 1 and parts.issuperset(each),
    ):
        found += filter(is_meant, nodes)
    if not found:
        close = get_close_matches(word, sorted({each[-1] for each in nodes}), n=1)
        found = [each for each in nodes if each[-1] in close]
        found = [each for each in found if each[:-1] == path] or found
    return list(dict.fromkeys(found))[:_MOST_NEAR]
