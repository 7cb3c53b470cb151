"""`headwater rollback`: tables go back to earlier snapshots, with all that was made from them, in Spark."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Generator, Mapping
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Final

from headwater.cli.answers import snapshot_text
from headwater.cli.commands import command
from headwater.cli.data_versions import data_version
from headwater.cli.erasing import add_erasing, erase
from headwater.cli.exits import Exit
from headwater.cli.flags import Flags, limit
from headwater.cli.output import CommandOutput, Size
from headwater.cli.rollback_text import plan_text
from headwater.cli.run import add_properties, properties_of
from headwater.cli.store import add_store, open_given_store
from headwater.config.spark_submit import java_on_standard_error
from headwater.errors import ConfigurationError, TerminalError

if TYPE_CHECKING:  # they are imported where a store is opened
    from headwater.lineage.questions.commit_facts import Amount
    from headwater.lineage.store import Store
    from headwater.versions.rollback import Rollback, RollbackPlan
    from headwater.versions.rollback.session_tables import SessionTables
    from headwater.versions.step_journal import JournalStep

_DRY_RUN: Final = "nothing was done: this was a dry run"
_DRY_RUN_OF_THE_STORE: Final = (
    f"{_DRY_RUN}, and whether snapshots have expired wasn't looked at (--properties-file or --conf lets it)"
)
_COLUMNS: Final = ("name", "table", "snapshot", "state", "made at", "moved at")


def _target(parser: Flags) -> None:
    parser.word("table", str, "where a table goes back to: catalog.database.table@SNAPSHOT", "TABLE@SNAPSHOT", "?")
    parser.switch("chain", "let all that was made from the table go back, too")
    parser.flag("data-version", data_version, None, "a data version to which all tables of its group go", "GROUP@N")
    parser.switch("partial", "go back though some tables or jobs can't")


def _name(parser: Flags) -> None:
    parser.word("name", str, "the name of a roll-back: `headwater rollback list` shows them", "NAME")


@contextmanager
def _tables(given: Namespace, store: Store) -> Generator[SessionTables]:
    """Yield the tables of a Spark session of the command's own. What is done to them is told to the store alone."""
    from headwater.versions.rollback.session_tables import SessionTables  # noqa: PLC0415
    from headwater.versions.spark_tables import command_session  # noqa: PLC0415

    with ExitStack() as held:
        session = command_session(properties_of(given), "headwater rollback")
        with java_on_standard_error():
            spark = held.enter_context(session)
        yield SessionTables(spark, store)


@command(
    """Let a table go back to one of its snapshots; with --chain all that was made from it, too: each table to its
newest snapshot that has nothing of what is rolled back, and of those to ones that belong together.

A plan from the store is shown first: what goes back, what each table loses, what can't go back and why. Each table is
rolled back by one commit of its format, which is refused unless the table is still at the snapshot of the plan. Aligned
jobs go back to the barrier that belongs there; for streams and scripts the plan says what you have to do.

A dry run looks at the tables, and so sees whether snapshots have expired, if it is given Spark properties.
In a dry run the exit code is 0 if all that has anything of what is rolled back can go back, and 1 if not.""",
    "headwater rollback to lake.dws.top10@12 --dry-run",
    "headwater rollback to lake.ods.orders@4 --chain --properties-file spark.conf",
    "headwater rollback to --data-version shop@7 --yes --properties-file spark.conf",
    flags=[add_store, _target, add_erasing, add_properties],
)
def roll_back(given: Namespace, output: CommandOutput) -> int:
    with ExitStack() as held:
        store = held.enter_context(open_given_store(given, readonly=given.dry_run))
        _check_asked(given)
        is_looked_at = bool(properties_of(given)) or not given.dry_run
        tables = held.enter_context(_tables(given, store)) if is_looked_at else None
        plan = _plan(given, store, tables)
        if given.output == "text":
            output.note(plan_text(plan))
        else:
            _give_plan(plan, output)
        problems = len(plan.stuck) + len(plan.stuck_jobs)
        if given.dry_run:
            output.outcome(_DRY_RUN if tables else _DRY_RUN_OF_THE_STORE, {"done": False, "dry_run": True})
            return Exit.DONE if plan.is_whole else Exit.FAILED
        if problems and not given.partial:
            raise TerminalError(
                f"{problems} of what has, or may have, something of what is rolled back can't go back, so nothing was "
                "done: see to it, or give --partial to leave it as it is"
            )

        def work() -> tuple[str, Mapping[str, object]]:
            from headwater.versions.rollback import RollbackRun, begin_rollback  # noqa: PLC0415

            assert tables is not None  # noqa: S101 - of all but dry runs
            name = begin_rollback(store, tables, plan).name
            output.note(f"{name}: `headwater rollback resume {name}` goes on with it if it is interrupted")
            RollbackRun(store, tables, name, _progress(output)).resume()
            text = f"{name} is done; `headwater rollback undo {name}` takes it back while nothing has come since"
            return text, {"name": name}

        question = f"Roll {len(plan.going_back)} tables back, and lose {_commits(plan)} commits?"
        return erase(given, output, question, work, is_nothing=not plan.going_back)


@command(
    """Take a roll-back back: each table gets the snapshot again that it had before, and aligned jobs their checkpoints.

It is refused, with nothing done, if anything has come to one of the tables since, if a job has gone on, or if a former
snapshot has expired.""",
    "headwater rollback undo r-20260301-orders-4f2a --properties-file spark.conf",
    "headwater rollback undo r-20260301-orders-4f2a --dry-run",
    flags=[add_store, _name, add_erasing, add_properties],
)
def undo(given: Namespace, output: CommandOutput) -> int:
    from headwater.versions.rollback import RollbackJournal, RollbackRun  # noqa: PLC0415

    with open_given_store(given, readonly=given.dry_run) as store:
        found = RollbackJournal(store, given.name).load()
        _give(found, output)

        def work() -> tuple[str, Mapping[str, object]]:
            with _tables(given, store) as tables:
                RollbackRun(store, tables, given.name, _progress(output)).undo()
            return f"{given.name} was undone", {"name": given.name}

        return erase(given, output, f"Take {given.name} back?", work)


@command(
    "Go on with a roll-back that was interrupted, or with its undoing. What was done isn't done again.",
    "headwater rollback resume r-20260301-orders-4f2a --properties-file spark.conf",
    flags=[add_store, _name, add_properties],
)
def resume(given: Namespace, output: CommandOutput) -> int:
    from headwater.versions.rollback import RollbackJournal, RollbackRun  # noqa: PLC0415

    with open_given_store(given, readonly=False) as store:
        if RollbackJournal(store, given.name).load().state.is_over:
            output.outcome("there is nothing to do", {"done": True})
            return Exit.DONE
        with _tables(given, store) as tables:
            found = RollbackRun(store, tables, given.name, _progress(output)).resume()
        output.outcome(f"{given.name} is {found.state.value}", {"done": True, "state": found.state})
    return Exit.DONE


@command(
    "List the roll-backs that the store knows, the newest first.",
    "headwater rollback list",
    "headwater rollback list -o json",
    flags=[add_store, limit(100)],
)
def list_rollbacks(given: Namespace, output: CommandOutput) -> int:
    from headwater.versions.rollback import rollbacks_in  # noqa: PLC0415

    with open_given_store(given) as store:
        found = rollbacks_in(store)[: given.limit]
    rows = [
        (each.name, each.source, snapshot_text(each.snapshot), each.state, each.made_at, each.moved_at)
        for each in found
    ]
    output.table("rollbacks", _COLUMNS, rows, "Roll-backs")
    return Exit.DONE


@command(
    "Show a roll-back: its plan, and how far each of its steps is.",
    "headwater rollback show r-20260301-orders-4f2a",
    flags=[add_store, _name],
)
def show(given: Namespace, output: CommandOutput) -> int:
    from headwater.versions.rollback import RollbackJournal  # noqa: PLC0415

    with open_given_store(given) as store:
        found = RollbackJournal(store, given.name).load()
    if given.output == "text":
        output.note(plan_text(found.plan))
    else:
        _give_plan(found.plan, output)
    _give(found, output)
    return Exit.DONE


def _check_asked(given: Namespace) -> None:
    if (given.table is None) == (given.data_version is None):
        raise ConfigurationError("what goes back where? Name a table as TABLE@SNAPSHOT, or --data-version GROUP@N")


def _plan(given: Namespace, store: Store, tables: SessionTables | None) -> RollbackPlan:
    from headwater.versions.aligned import GroupClaims  # noqa: PLC0415
    from headwater.versions.rollback import plan_rollback  # noqa: PLC0415

    asked = given.table
    if given.data_version is not None:
        group, number = given.data_version
        version = GroupClaims(store, group).version(number)
        if version is None:
            raise ConfigurationError(f"there is no data version {number} of {group!r}: headwater version list {group}")
        asked = (group, version)
    with store.engine.connect() as connection:
        problem = None if tables is None else tables.problem
        return plan_rollback(connection, asked, is_chain=given.chain, problem=problem)


def _progress(output: CommandOutput) -> Callable[[JournalStep], None]:
    def note(step: JournalStep) -> None:
        if step.state.value == "DONE":
            output.note(f"  {step.kind.value.lower().replace('_', ' ')} of {step.subject}: done")

    return note


def _commits(plan: RollbackPlan) -> int:
    return sum(table.commits for table in plan.going_back)


def _give(found: Rollback, output: CommandOutput) -> None:
    status = found.status
    fields = (status.name, status.source, snapshot_text(status.snapshot), status.state, status.made_at, status.moved_at)
    output.record("rollback", dict(zip(_COLUMNS, fields, strict=True)), "Roll-back")
    rows = [(step.number, step.kind, step.subject, step.state, step.moved_at) for step in found.steps]
    output.table("steps", ("number", "kind", "subject", "state", "moved at"), rows, "Steps")


def _give_plan(plan: RollbackPlan, output: CommandOutput) -> None:
    fields: dict[str, object] = {
        "asked": plan.asked,
        "chain": plan.is_chain,
        "whole": plan.is_whole,
        "belong together": plan.belong_together,
        "differences": plan.differences,
        "commits": _commits(plan),
        "lost": _amount(plan.lost),
        "complete until": plan.complete_until,
    }
    output.record("plan", fields)
    names = "table verdict format named newest target commits unreported lost jobs problems notes"
    tables = [
        (
            *(table.table, table.verdict, table.format, table.is_source),
            *map(snapshot_text, (table.newest, table.target)),
            *(table.commits, table.unreported, _amount(table.lost), table.jobs, table.problems, table.notes),
        )
        for table in plan.tables
    ]
    output.table("tables", names.split(), tables)
    names = "job kind group writes commits checkpoint keeps moves problems notes"
    jobs = [
        (
            *(job.job, job.kind, job.group, job.writes, job.commits, job.checkpoint, job.keeps, job.moves),
            *(job.problems, job.notes),
        )
        for job in plan.jobs
    ]
    output.table("jobs", names.split(), jobs)
    groups = [(each.group, each.newest, each.target) for each in plan.groups]
    output.table("groups", ("group", "newest", "target"), groups)
    limits = [(each.why, each.about, each.detail) for each in plan.limits]
    output.table("limits", ("why", "about", "detail"), limits)


def _amount(amount: Amount) -> dict[str, object]:
    return {"rows": amount.rows, "bytes": Size(amount.bytes), "uncounted": amount.unknown}
