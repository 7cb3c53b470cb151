"""`headwater correct switch`: the mirrors of a correction take their tables' places, or that is taken back."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Mapping
from contextlib import ExitStack, nullcontext
from typing import TYPE_CHECKING

from headwater.cli.answers import snapshot_text
from headwater.cli.commands import command
from headwater.cli.correct import read_commands
from headwater.cli.correction_progress import CorrectionProgress
from headwater.cli.corrections import add_job_flags, planner_of, tables_of
from headwater.cli.erasing import add_erasing, erase
from headwater.cli.exits import Exit
from headwater.cli.flags import Flags, count
from headwater.cli.output import CommandOutput
from headwater.cli.run import add_properties, properties_of
from headwater.cli.store import add_store, open_given_store
from headwater.config.spark_submit import java_on_standard_error
from headwater.errors import ConfigurationError

if TYPE_CHECKING:  # SQLAlchemy and Spark are imported where they are used
    from headwater.lineage.store import Store
    from headwater.versions.correction import CorrectionPlan
    from headwater.versions.correction.journal import Correction
    from headwater.versions.correction.switching import Switcher, SwitchTables, TableSwitch

_COLUMNS = ("table", "now at", "mirror at", "then at")


def _flags(parser: Flags) -> None:
    parser.word("correction", str, "the correction's name, such as c-20260301-orders-4f2a", "CORRECTION")
    parser.switch("back", "take back a switch that was begun and isn't at its end")
    parser.switch("anyway", "switch although jobs run that write the tables")
    add_job_flags(parser)
    text = "how long it waits for jobs to end, and for aligned jobs to come to the end of a barrier"
    parser.flag("wait", count, "300", text, "SECONDS")


@command(
    """Put the mirrors of a correction in their tables' places: one commit for each table, the sources first. Readers
see each table change once.

Nothing is done unless each table is still at the snapshot that its mirror takes account of, and no commit of others is
lost: if one comes in between, the switch stops there and says so. Jobs that write the tables have to be stopped before,
since what a job has read before the switch it may still write after it: with --yes they are, by the commands of
correction.toml. Aligned jobs needn't: they stop between two barriers, the mirrors get what is left, and they go on
behind the switch. If the command is killed, run it again: it goes on.""",
    "headwater correct switch c-20260301-orders-4f2a --dry-run --properties-file spark.conf",
    "headwater correct switch c-20260301-orders-4f2a --yes --properties-file spark.conf",
    "headwater correct switch c-20260301-orders-4f2a --back --yes --properties-file spark.conf",
    flags=[add_store, _flags, add_erasing, add_properties],
)
def switch(given: Namespace, output: CommandOutput) -> int:
    from headwater.versions.correction.journal import CorrectionJournal, CorrectionState  # noqa: PLC0415
    from headwater.versions.correction.moved_jobs import groups_of_correction  # noqa: PLC0415

    with open_given_store(given, readonly=given.dry_run) as store, ExitStack() as held:
        found = CorrectionJournal(store, given.correction).load()
        if found.state is CorrectionState.SWITCHED and not given.back:
            return erase(given, output, "", lambda: ("", {}), is_nothing=True)
        if given.back and found.state is not CorrectionState.SWITCHING:
            raise ConfigurationError(
                f"{found.name} is {found.state.value}: only a switch that was begun and isn't at its end is taken back"
            )
        if not (given.back or given.anyway or given.dry_run):
            _stop(given, store, found.plan, output)
        if found.state is CorrectionState.OPEN and not given.back and groups_of_correction(found):
            return _switch_behind_fences(given, output, store, found, held)
        switcher = _switcher(given, store, held, output)
        if given.back:
            question = f"Give the tables that {found.name} has switched the rows that they had?"
            return erase(given, output, question, lambda: _go_back(switcher))
        planned = switcher.preview()
        _give(planned, output)
        question = f"Put {len(planned)} mirrors of {found.name} in their tables' places?"
        return erase(given, output, question, lambda: _outcome(switcher.switch(), store, found.name))


def _stop(given: Namespace, store: Store, plan: CorrectionPlan, output: CommandOutput) -> None:
    """Stop the jobs that run, if that is agreed to, or raise an error that names them."""
    from headwater.versions.correction import RerunCommands  # noqa: PLC0415
    from headwater.versions.correction.stopping import stop_jobs  # noqa: PLC0415

    commands = read_commands(given.commands) if given.yes else RerunCommands({})
    seconds = int(given.wait) if given.yes else 0
    stop_jobs(store, plan, commands, seconds=seconds, report=output.note)


def _switch_behind_fences(
    given: Namespace, output: CommandOutput, store: Store, found: Correction, held: ExitStack
) -> Exit:
    from headwater.versions.correction.execution.fenced_switch import FencedSwitch  # noqa: PLC0415
    from headwater.versions.correction.execution.reruns import JobRunner  # noqa: PLC0415
    from headwater.versions.correction.moved_jobs import groups_of_correction  # noqa: PLC0415

    jobs = sorted(job for names in groups_of_correction(found).values() for job in names)
    output.table("aligned jobs", ("job",), [(job,) for job in jobs], "Jobs that stop meanwhile")
    runner = JobRunner(configuration=properties_of(given), allowed=tuple(given.allow))
    fenced = FencedSwitch(
        open_tables=lambda: tables_of(given, "switch"),
        open_switch_tables=lambda: nullcontext(_switch_tables(given, store, held)),
        run_command=runner.run,
        make_plan=planner_of(store, given),
        patience_seconds=float(given.wait),
        report=output.note,
        start_stream=_starter(given, output),
    )
    number = len(found.plan.corrected)
    question = f"Stop {len(jobs)} jobs, and put {number} mirrors of {found.name} in their tables' places?"
    return erase(given, output, question, lambda: _outcome(fenced.switch(store, found.name), store, found.name))


def _outcome(done: tuple[TableSwitch, ...], store: Store, name: str) -> tuple[str, Mapping[str, object]]:
    from headwater.versions.correction.journal import CorrectionJournal  # noqa: PLC0415
    from headwater.versions.correction.switching import streams_behind  # noqa: PLC0415

    fields: dict[str, object] = {
        "switched": [{"table": each.table, "snapshot": snapshot_text(each.snapshot)} for each in done]
    }
    if streams := streams_behind(CorrectionJournal(store, name).load()):
        fields["streams"] = [{"job": job, "checkpoint": place} for job, place in streams.items()]
    return f"{len(done)} tables are switched, and their mirrors are gone", fields


def _go_back(switcher: Switcher) -> tuple[str, Mapping[str, object]]:
    undone = switcher.go_back()
    tables = [each.table for each in undone]
    return f"{len(tables)} tables have the rows that they had, and the correction is open", {"tables": tables}


def _switcher(given: Namespace, store: Store, held: ExitStack, output: CommandOutput) -> Switcher:
    from headwater.versions.correction.switching import Switcher  # noqa: PLC0415

    tables, progress = _switch_tables(given, store, held), CorrectionProgress(given.output)
    starter = _starter(given, output)
    return Switcher(
        store, given.correction, lambda: nullcontext(tables), progress.say, progress.show, start_stream=starter
    )


def _switch_tables(given: Namespace, store: Store, held: ExitStack) -> SwitchTables:
    from headwater.versions.correction.journal import CorrectionJournal  # noqa: PLC0415
    from headwater.versions.correction.switched_tables import SparkSwitchTables  # noqa: PLC0415
    from headwater.versions.spark_tables import command_session  # noqa: PLC0415
    from headwater.versions.step_journal import StepKind, StepState  # noqa: PLC0415

    steps = CorrectionJournal(store, given.correction).load().of(StepKind.MIRROR)
    branches = {step.subject: str(step.detail["branch"]) for step in steps if step.state is StepState.DONE}
    with java_on_standard_error():
        spark = held.enter_context(command_session(properties_of(given), "headwater correct switch"))
    return SparkSwitchTables(spark, store, branches)


def _starter(given: Namespace, output: CommandOutput) -> Callable[[str, str], None]:
    """Return what starts a stream by the user's command."""
    from headwater.versions.correction.stopping import start_stream  # noqa: PLC0415

    return lambda job, checkpoint: start_stream(read_commands(given.commands), job, checkpoint, output.note)


def _give(planned: tuple[TableSwitch, ...], output: CommandOutput) -> None:
    rows = [
        (each.table, *(snapshot_text(number) for number in (each.expected, each.head, each.snapshot)))
        for each in planned
    ]
    output.table("tables", _COLUMNS, rows, "Tables to switch")
