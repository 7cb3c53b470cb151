"""`headwater correct switch`: the mirrors of a correction take their tables' places, or that is taken back."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping
from contextlib import ExitStack, nullcontext
from typing import TYPE_CHECKING

from headwater.cli.answers import snapshot_text
from headwater.cli.commands import command
from headwater.cli.erasing import add_erasing, erase
from headwater.cli.flags import Flags
from headwater.cli.output import CommandOutput
from headwater.cli.run import add_properties, properties_of
from headwater.cli.store import add_store, open_given_store
from headwater.config.spark_submit import java_on_standard_error
from headwater.errors import ConfigurationError

if TYPE_CHECKING:  # SQLAlchemy and Spark are imported where they are used
    from headwater.lineage.store import Store
    from headwater.versions.correction import CorrectionPlan
    from headwater.versions.correction.switching import Switcher, TableSwitch

_COLUMNS = ("table", "now at", "mirror at", "then at")


def _flags(parser: Flags) -> None:
    parser.word("correction", str, "the correction's name, such as c-20260301-orders-4f2a", "CORRECTION")
    parser.switch("back", "take back a switch that was begun and isn't at its end")
    parser.switch("anyway", "switch although jobs run that write the tables")


@command(
    """Put the mirrors of a correction in their tables' places: one commit for each table, the sources first. Readers
see each table change once.

Nothing is done unless each table is still at the snapshot that its mirror takes account of, and no commit of others is
lost: if one comes in between, the switch stops there and says so. Jobs that write the tables have to be stopped before,
since what a job has read before the switch it may still write after it. If the command is killed, run it again: it goes
on.""",
    "headwater correct switch c-20260301-orders-4f2a --dry-run --properties-file spark.conf",
    "headwater correct switch c-20260301-orders-4f2a --yes --properties-file spark.conf",
    "headwater correct switch c-20260301-orders-4f2a --back --yes --properties-file spark.conf",
    flags=[add_store, _flags, add_erasing, add_properties],
)
def switch(given: Namespace, output: CommandOutput) -> int:
    from headwater.versions.correction.journal import CorrectionJournal, CorrectionState  # noqa: PLC0415

    with open_given_store(given, readonly=given.dry_run) as store, ExitStack() as held:
        found = CorrectionJournal(store, given.correction).load()
        if found.state is CorrectionState.SWITCHED and not given.back:
            return erase(given, output, "", lambda: ("", {}), is_nothing=True)
        if given.back and found.state is not CorrectionState.SWITCHING:
            raise ConfigurationError(
                f"{found.name} is {found.state.value}: only a switch that was begun and isn't at its end is taken back"
            )
        if not (given.back or given.anyway or given.dry_run):
            _check_stopped(store, found.plan)
        switcher = _switcher(given, store, held, output)
        if given.back:
            question = f"Give the tables that {found.name} has switched the rows that they had?"
            return erase(given, output, question, lambda: _go_back(switcher))
        planned = switcher.preview()
        _give(planned, output)
        question = f"Put {len(planned)} mirrors of {found.name} in their tables' places?"
        return erase(given, output, question, lambda: _switch(switcher))


def _check_stopped(store: Store, plan: CorrectionPlan) -> None:
    from headwater.versions.correction.switching import running_jobs  # noqa: PLC0415

    with store.engine.connect() as connection:
        running = running_jobs(connection, plan)
    if running:
        raise ConfigurationError(
            f"{', '.join(running)} run now, and may write what they read before the switch: stop them, or wait until "
            "they have ended. With --anyway they are left to themselves"
        )


def _switch(switcher: Switcher) -> tuple[str, Mapping[str, object]]:
    done = switcher.switch()
    switched = [{"table": each.table, "snapshot": snapshot_text(each.snapshot)} for each in done]
    return f"{len(done)} tables are switched, and their mirrors are gone", {"switched": switched}


def _go_back(switcher: Switcher) -> tuple[str, Mapping[str, object]]:
    undone = switcher.go_back()
    tables = [each.table for each in undone]
    return f"{len(tables)} tables have the rows that they had, and the correction is open", {"tables": tables}


def _switcher(given: Namespace, store: Store, held: ExitStack, output: CommandOutput) -> Switcher:
    from headwater.versions.correction.journal import CorrectionJournal, StepKind, StepState  # noqa: PLC0415
    from headwater.versions.correction.switched_tables import SparkSwitchTables  # noqa: PLC0415
    from headwater.versions.correction.switching import Switcher  # noqa: PLC0415
    from headwater.versions.spark_tables import command_session  # noqa: PLC0415

    steps = CorrectionJournal(store, given.correction).load().of(StepKind.MIRROR)
    branches = {step.subject: str(step.detail["branch"]) for step in steps if step.state is StepState.DONE}
    with java_on_standard_error():
        spark = held.enter_context(command_session(properties_of(given), "headwater correct switch"))
    tables = SparkSwitchTables(spark, store, branches)
    return Switcher(store, given.correction, lambda: nullcontext(tables), output.note)


def _give(planned: tuple[TableSwitch, ...], output: CommandOutput) -> None:
    rows = [
        (each.table, *(snapshot_text(number) for number in (each.expected, each.head, each.snapshot)))
        for each in planned
    ]
    output.table("tables", _COLUMNS, rows, "Tables to switch")
