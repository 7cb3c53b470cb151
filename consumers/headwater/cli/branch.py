"""`headwater branch`: branches of tables are made, merged, put in main's place, listed and deleted, in Spark."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Generator, Mapping
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Final

from headwater.cli.answers import give, open_connection, snapshot_text
from headwater.cli.commands import command
from headwater.cli.erasing import add_erasing, erase
from headwater.cli.exits import Exit
from headwater.cli.flags import Flags, is_number, limit, moment
from headwater.cli.output import CommandOutput
from headwater.cli.run import add_properties, properties_of
from headwater.cli.store import add_store, open_given_store
from headwater.config.spark_submit import java_on_standard_error
from headwater.errors import ConfigurationError

if TYPE_CHECKING:  # they are imported where Spark is started
    from headwater.versions.branches import Branch, BranchManager, MainMove, NeededSnapshot

_COLUMNS: Final = ("name", "tag_name", "tagged_snapshot_id", "create_time", "head", "in SQL")
_RECORDED: Final = (*_COLUMNS[:4], "ended", "generation")
_UNRECORDED: Final = (
    "Nobody records that: name a store by --store, or set spark.headwater.enabled and listeners as a job has them."
)


def _table(parser: Flags) -> None:
    parser.word("table", str, "catalog.namespace.table, by a name that Spark has for it", "TABLE")


def _branch(parser: Flags) -> None:
    _table(parser)
    parser.word("name", str, "the name of the branch, without dots", "NAME")


def _tag(parser: Flags) -> None:
    parser.flag("tag", str, None, "the tag of main that it begins at; of a Delta table the number of a version", "TAG")
    parser.switch("dry-run", "look whether it can be done, and do nothing")


def _main(parser: Flags) -> None:
    parser.flag("main", _snapshot, None, "the snapshot that main has to be at: else nothing is done", "SNAPSHOT")


def _recorded(parser: Flags) -> None:
    parser.switch("recorded", "ask the store instead of the table")


def _older(parser: Flags) -> None:
    parser.flag("older-than", moment, None, "the time that is given to the expiry: 7d, 2026-03-01", "TIME")


def _snapshot(text: str) -> int:
    if not is_number(text):
        raise ValueError(f"{text!r} is no snapshot: `headwater branch list` and --dry-run show numbers")
    return int(text)


@contextmanager
def _opened(given: Namespace, command_name: str, *, is_changing: bool = True) -> Generator[BranchManager]:
    """Yield the branches of the table that the flags name, in a Spark session of the command's own."""
    from headwater.versions.branches import BranchManager  # noqa: PLC0415
    from headwater.versions.spark_tables import command_session  # noqa: PLC0415

    with ExitStack() as held:
        is_stored = is_changing and given.store is not None
        store = held.enter_context(open_given_store(given, readonly=False)) if is_stored else None
        session = command_session(properties_of(given), f"headwater branch {command_name}", is_reported=is_changing)
        with java_on_standard_error():
            spark = held.enter_context(session)
        yield BranchManager(spark, given.table, store=store)


@command(
    """Make a branch of a table from a tag of main, in Spark. It is written and read apart from main.

Iceberg, Delta and Paimon have branches; a format that has none is refused. The store of --store gets to know it, or
the listeners that the Spark properties name.""",
    "headwater branch create lake.ods.orders fix --tag eod --properties-file spark.conf",
    "headwater branch create lake.ods.orders fix --tag eod --dry-run",
    flags=[add_store, _branch, _tag, add_properties],
)
def create(given: Namespace, output: CommandOutput) -> int:
    if given.tag is None:
        raise ConfigurationError("from which tag of main? Name it by --tag; of a Delta table the number of a version")
    with _opened(given, "create") as branches:
        made = branches.create(given.name, given.tag, dry_run=given.dry_run)
        name = None if given.dry_run else branches.name_of(made.name)
        output.record("branch", _fields(made, name), "Branch")
        if given.dry_run:
            output.outcome("nothing was done: this was a dry run", {"done": False, "dry_run": True})
        else:
            output.outcome(f"the branch is there: write and read {name}", {"done": True})
            _note_unrecorded(branches, output)
    return Exit.DONE


@command(
    "Delete a branch of a table. Main keeps what was merged into it.",
    "headwater branch delete lake.ods.orders fix --dry-run",
    "headwater branch delete lake.ods.orders fix --yes",
    flags=[add_store, _branch, add_erasing, add_properties],
)
def delete(given: Namespace, output: CommandOutput) -> int:
    with _opened(given, "delete") as branches:
        found = branches.delete(given.name, dry_run=True)
        output.record("branch", _fields(found, branches.name_of(found.name)), "Branch to delete")

        def work() -> tuple[str, Mapping[str, object]]:
            branches.delete(given.name)
            _note_unrecorded(branches, output)
            return "the branch is gone", {}

        return erase(given, output, f"Delete the branch {given.name} of {given.table}?", work)


_WORDS: Final = "What main got since the branch's tag is main's no more. With --main nothing is done if main has moved."


@command(
    f"Let main have the rows of a branch. The branch stays as it is, and is written and read as before.\n\n{_WORDS}",
    "headwater branch merge lake.ods.orders fix --dry-run",
    "headwater branch merge lake.ods.orders fix --main 5137372918190427224 --yes",
    flags=[add_store, _branch, _main, add_erasing, add_properties],
)
def merge(given: Namespace, output: CommandOutput) -> int:
    return _move(given, output, is_replaced=False)


@command(
    "Let main have the rows of a branch, and remove what only main had before, as far as the table's format can."
    f"\n\n{_WORDS}",
    "headwater branch replace-main lake.ods.orders fix --dry-run",
    "headwater branch replace-main lake.ods.orders fix --main 5137372918190427224 --yes",
    flags=[add_store, _branch, _main, add_erasing, add_properties],
)
def replace_main(given: Namespace, output: CommandOutput) -> int:
    return _move(given, output, is_replaced=True)


@command(
    """List the branches of a table, by whomever they were made, as Spark finds them in the table.

With --recorded no Spark is started: the store is asked which branches events told of, also of those that were
dropped.""",
    "headwater branch list lake.ods.orders",
    "headwater branch list lake.ods.orders --recorded -o json",
    flags=[add_store, _table, _recorded, limit(1000), add_properties],
)
def list_branches(given: Namespace, output: CommandOutput) -> int:
    if given.recorded:
        return _list_recorded(given, output)
    with _opened(given, "list", is_changing=False) as branches:
        rows = [tuple(_fields(each, branches.name_of(each.name)).values()) for each in branches.list()]
    output.table("branches", _COLUMNS, rows, f"Branches of {given.table}, besides main")
    return Exit.DONE


@command(
    """Say what an expiry of old snapshots would take from the branches of a table, before you run it.

That is expire_snapshots of Iceberg and Paimon, and VACUUM of Delta, which nothing of headwater can stop. With --store
also what it would take from corrections that are under way, and from aligned jobs. The exit code is 0 if nobody would
lose anything, and 1 if somebody would.""",
    "headwater branch check-expiry lake.ods.orders --older-than 7d --store postgresql://db/lineage",
    "headwater branch check-expiry lake.ods.orders --older-than 2026-03-01 -o json",
    flags=[add_store, _table, _older, add_properties],
)
def check_expiry(given: Namespace, output: CommandOutput) -> int:
    if given.older_than is None:
        raise ConfigurationError("expire what? Say --older-than TIME, as the expiry gets it")
    needed = _needed(given) if given.store is not None else ()
    with _opened(given, "check-expiry", is_changing=False) as branches:
        risks = branches.check_expiry(given.older_than, needed)
    rows = [(each.branch, snapshot_text(each.snapshot), each.consequence) for each in risks]
    output.table("risks", ("branch", "snapshot", "what it would lose"), rows, f"Branches of {given.table} at risk")
    if given.store is None:
        output.note("Corrections and aligned jobs weren't asked what they need: name their store by --store.")
    return Exit.FAILED if risks else Exit.DONE


def _needed(given: Namespace) -> tuple[NeededSnapshot, ...]:
    from headwater.versions.needed_snapshots import needed_snapshots  # noqa: PLC0415

    with open_given_store(given) as store:
        return needed_snapshots(store, given.table)


def _list_recorded(given: Namespace, output: CommandOutput) -> int:
    from headwater.lineage.questions.generations import branches  # noqa: PLC0415

    with open_connection(given) as connection:
        answer = branches(connection, given.table)
    give(
        given,
        output,
        "branches",
        answer,
        columns=_RECORDED,
        row=lambda each: (
            *(each.name, each.tag_name, snapshot_text(each.tagged_snapshot_id), each.create_time, each.ended),
            each.generation,
        ),
        title=f"Branches of {given.table}",
    )
    return Exit.DONE


def _move(given: Namespace, output: CommandOutput, *, is_replaced: bool) -> int:
    with _opened(given, "replace-main" if is_replaced else "merge") as branches:
        planned = branches.merge(given.name, main=given.main, dry_run=True)
        output.record("main", _move_fields(planned), f"Main of {given.table}")

        def work() -> tuple[str, Mapping[str, object]]:
            act = branches.replace_main if is_replaced else branches.merge
            moved = act(given.name, main=planned.previous)
            _note_unrecorded(branches, output)
            text = f"main is at {moved.snapshot}, as the branch {given.name} was"
            return text, {"snapshot": snapshot_text(moved.snapshot)}

        lost = len(planned.lost_snapshots)
        question = f"Let main of {given.table} have the rows of {given.name}, and lose {lost} snapshots of its own?"
        return erase(given, output, question, work, is_nothing=planned.kind.value == "nothing")


def _fields(branch: Branch, name: str | None) -> dict[str, object]:
    values = (
        *(branch.name, branch.tag, snapshot_text(branch.tagged_snapshot), branch.created_at),
        *(snapshot_text(branch.head), name),
    )
    return dict(zip(_COLUMNS, values, strict=True))


def _move_fields(move: MainMove) -> dict[str, object]:
    return {
        "how": move.kind.value,
        "now at": snapshot_text(move.previous),
        "then at": "a new version" if move.snapshot is None else snapshot_text(move.snapshot),
        "snapshots that main loses": [snapshot_text(each) for each in move.lost_snapshots],
        "tags that main loses": list(move.lost_tags),
    }


def _note_unrecorded(branches: BranchManager, output: CommandOutput) -> None:
    if not branches.is_reported:
        output.note(_UNRECORDED)
