"""`headwater correct plan`: what was made from a wrong snapshot, and how that is corrected."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from headwater.cli.answers import open_connection, snapshot_text
from headwater.cli.commands import command
from headwater.cli.correction_text import plan_text
from headwater.cli.exits import Exit
from headwater.cli.flags import Flags, one_of
from headwater.cli.output import CommandOutput, Size
from headwater.cli.store import add_store

if TYPE_CHECKING:  # SQLAlchemy is imported where a store is opened
    from sqlalchemy import Connection

    from headwater.lineage.questions.commit_facts import Amount
    from headwater.versions.correction import CorrectionPlan, RerunCommands

_MODES = ("full", "incremental")


def add_plan(parser: Flags) -> None:
    """Add the flags of a plan."""
    parser.word("table", str, "the wrong snapshot: catalog.database.table@SNAPSHOT", "TABLE@SNAPSHOT")
    parser.flags("only", str, "correct this table, and those between it and the wrong one", "TABLE")
    text = "full: tables downstream begin empty; incremental: at their last right snapshots"
    parser.flag("mode", one_of(_MODES, "mode"), "full", text, "full|incremental")
    text = "a file that says how jobs are run; without it correction.toml here, if there is one"
    parser.flag("commands", Path, None, text, "FILE")


@command(
    """Plan the correction of everything that was made from a wrong snapshot: which tables are wrong, which jobs make
them again and how, what that costs, and what can't be corrected. It asks the store alone, and changes nothing.

The exit code is 0 if everything that is known to be wrong can be corrected, and 1 if not.""",
    "headwater correct plan lake.ods.orders@4",
    "headwater correct plan lake.ods.orders@4 --mode incremental --only lake.dws.revenue -o json",
    flags=[add_store, add_plan],
)
def plan(given: Namespace, output: CommandOutput) -> int:
    with open_connection(given) as connection:
        found = make_plan(connection, given)
    if given.output == "text":
        output.answer(plan_text(found))
    else:
        _give(found, output)
    return Exit.DONE if found.is_whole else Exit.FAILED


def make_plan(connection: Connection, given: Namespace) -> CorrectionPlan:
    """Return the plan that the flags ask for."""
    from headwater.versions.correction import CorrectionMode, plan_correction  # noqa: PLC0415

    commands, mode = read_commands(given.commands), CorrectionMode(given.mode)
    return plan_correction(connection, given.table, mode=mode, only=given.only, commands=commands)


def read_commands(path: Path | None) -> RerunCommands:
    """Return how jobs are run, as the file says, or `correction.toml` here."""
    from headwater.versions.correction import FILE_NAME, RerunCommands  # noqa: PLC0415

    found = Path(FILE_NAME) if path is None else path
    return RerunCommands({}) if path is None and not found.exists() else RerunCommands.read(found)


def _give(plan: CorrectionPlan, output: CommandOutput) -> None:
    fields: dict[str, object] = {
        "source": plan.source,
        "snapshot": snapshot_text(plan.snapshot),
        "mode": plan.mode,
        "whole": plan.is_whole,
        "left out": plan.left_out,
        "complete until": plan.complete_until,
    }
    output.record("correction", fields)
    names = "table verdict format snapshots newest last_right mirror starts_at made_from in_cycle jobs written"
    tables = [
        (
            *(table.table, table.verdict, table.format, tuple(map(str, table.snapshots))),
            *map(snapshot_text, (table.newest, table.last_right)),
            *(table.mirror, snapshot_text(table.starts_at), table.made_from, table.in_cycle, table.jobs),
            *(_amount(table.written), table.problems, table.notes),
        )
        for table in plan.tables
    ]
    output.table("tables", (*names.split(), "problems", "notes"), tables)
    names = "job kind group reads writes commits runs commands lacks_command read written last_duration checkpoint"
    jobs = [
        (
            *(job.job, job.kind, job.group, job.reads, job.writes, job.commits, job.runs, job.commands),
            *(job.lacks_command, _amount(job.read), _amount(job.written), job.last_duration, job.checkpoint),
            *(job.last_right_batch, job.notes, job.problems, job.is_needed),
        )
        for job in plan.jobs
    ]
    output.table("jobs", (*names.split(), "last_right_batch", "notes", "problems", "needed"), jobs)
    output.record("cost", {"read": _amount(plan.read), "written": _amount(plan.written)})
    limits = [(limit.why, limit.about, limit.detail) for limit in plan.limits]
    output.table("limits", ("why", "about", "detail"), limits)


def _amount(amount: Amount) -> dict[str, object]:
    return {"rows": amount.rows, "bytes": Size(amount.bytes), "uncounted": amount.unknown}
