"""`headwater validate`: a job runs again on the snapshots that one of its tables was made from, and is compared."""

from __future__ import annotations

import shlex
import traceback
from argparse import Namespace
from typing import TYPE_CHECKING, Final

from headwater.cli.answers import open_connection
from headwater.cli.commands import command
from headwater.cli.exits import Exit, exit_for
from headwater.cli.flags import Flags, count, is_number
from headwater.cli.output import CommandOutput
from headwater.cli.run import add_properties, once_each, properties_of, table_and_version
from headwater.cli.service import ended_by_sigterm
from headwater.cli.store import add_store
from headwater.errors import ConfigurationError, HeadwaterError, TerminalError

if TYPE_CHECKING:  # SQLAlchemy and pydantic are imported where they are used
    from sqlalchemy import Connection

    from headwater.versions.validation import RepeatedBarrier, ResultComparison, ValidationOutcome, ValidationPlan

_DESCRIPTION: Final = """Run a job again on the same inputs, and compare what it makes with a snapshot that it made.

The lineage of the snapshot says which tables were read at which snapshots: the job reads exactly those again, also if
the tables have grown since. What it writes goes to result tables in a namespace of their own, which are removed at the
end. The real tables aren't changed. The job may be changed or not.

The exit code is 0 if the rows are equal and 1 if they differ. It is 66 if something can't be read as it was, which is
said before the job reads anything, and 70 if the job fails."""


def _arguments(parser: Flags) -> None:
    parser.word(
        "what",
        str,
        "the snapshot that the job made: TABLE@SNAPSHOT; with --aligned JOB or JOB@DATA_VERSION",
        "TABLE@SNAPSHOT",
    )
    parser.switch(
        "aligned", "it is an aligned job, of which one barrier is played again: its newest, unless one is named"
    )
    parser.flag("group", str, None, "the group of the aligned job, if several have a job of its name", "GROUP")
    parser.flag("sink", str, None, "the table of the aligned job that is compared, if it wrote several", "TABLE")
    parser.flag("run", _words, None, "the job and its arguments, as behind `headwater run`", "'JOB.PY ARGUMENT…'")
    parser.flags(
        "key", str, "a column by which rows are compared; without one rows are compared as multisets", "COLUMN"
    )
    parser.flags("ignore", str, "a column that isn't compared, such as a time of loading", "COLUMN")
    parser.switch("keep", "keep the result tables, and say what they are called")
    parser.flag("scratch", str, None, "the namespace of the result tables, else one of a new name", "NAMESPACE")
    parser.flags(
        "pin", table_and_version, "read a table of which lineage knows no version at this one", "TABLE@VERSION"
    )
    parser.flags("allow", str, "let this table or path be read and written as it is now", "TABLE")
    parser.switch(
        "anyway",
        "run although lineage has gaps, or doesn't show all that was read, or the snapshot lacks a column to ignore",
    )
    parser.switch("copy", "begin each result with what was in its table, also where the job adds or replaces all rows")
    parser.flag("samples", count, "10", "how many differing rows are shown of each kind", "N")
    add_properties(parser)


@command(
    _DESCRIPTION,
    "headwater validate lake.dws.daily@8 --run 'jobs/report.py 2026-01-31'",
    "headwater validate lake.dws.daily@8 --run 'jobs/report.py 2026-01-31' --key day --key shop --ignore loaded_at",
    "headwater validate lake.dws.daily@8 --run '-m company.report' -o html > report.html",
    "headwater validate revenue@7 --aligned --run jobs/revenue.py",
    flags=[add_store, _arguments],
    outputs=("text", "json", "html"),
)
def validate(given: Namespace, output: CommandOutput) -> int:
    from headwater.versions.validation import (  # noqa: PLC0415
        JobCommand,
        RepeatedBarrier,
        UnvalidatableError,
        ValidationStatus,
    )
    from headwater.versions.validation import validate as run_validation  # noqa: PLC0415

    if given.run is None:
        raise ConfigurationError("which job made it? Name its script and arguments: --run 'jobs/report.py 2026-01-31'")
    job = JobCommand(
        command=given.run,
        key=given.key,
        ignored=given.ignore,
        ignores_new=given.anyway,
        keep=given.keep,
        scratch=given.scratch,
        samples=int(given.samples),
        configuration=properties_of(given),
    )
    plan: ValidationPlan | RepeatedBarrier | None = None
    try:
        with open_connection(given) as connection:
            plan = _plan(connection, given)
        with ended_by_sigterm():
            outcome = run_validation(plan, job)
    except UnvalidatableError as e:
        if given.output == "json":
            output.record("validation", {"snapshot": e.sink, "verdict": "not run", "problems": list(e.problems)})
        output.error(e)
        return Exit.INPUT_GONE
    except HeadwaterError as e:
        if exit_for(e) is not Exit.FAILED:
            raise
        output.error(e)
        return Exit.CONFIGURATION if plan is None else Exit.JOB_FAILED
    except Exception:  # noqa: BLE001 - else it ends with 1, which says that rows differ
        traceback.print_exc()
        return Exit.JOB_FAILED
    found = outcome.plan or plan
    if not isinstance(found, RepeatedBarrier):
        _give(found, outcome, given, output)
    if outcome.status is ValidationStatus.JOB_FAILED:
        output.error(TerminalError(_failure(outcome)))
        return Exit.JOB_FAILED
    if outcome.comparison is None:
        output.error(TerminalError("; ".join(outcome.problems)))
        return Exit.JOB_FAILED
    return Exit.DONE if outcome.is_equal else Exit.FAILED


def _plan(connection: Connection, given: Namespace) -> ValidationPlan | RepeatedBarrier:
    from headwater.versions.validation import plan_repetition, plan_validation  # noqa: PLC0415

    if not given.aligned:
        if given.group or given.sink:
            raise ConfigurationError("--group and --sink are for aligned jobs: say --aligned, and the job's name")
        return plan_validation(
            connection,
            given.what,
            pins=once_each("--pin", given.pin),
            allowed=given.allow,
            anyway=given.anyway,
            copies=given.copy,
        )
    if given.pin:
        raise ConfigurationError(
            "a job that lineage knows takes --pin; an aligned job reads the snapshots of its data version"
        )
    job, at, number = given.what.rpartition("@")
    if at and not is_number(number):
        raise ConfigurationError(f"{given.what!r} isn't JOB or JOB@DATA_VERSION, such as revenue@7")
    return plan_repetition(
        connection,
        job if at else number,
        int(number) if at else None,
        group=given.group,
        sink=given.sink,
        allowed=given.allow,
    )


def _failure(outcome: ValidationOutcome) -> str:
    words = f"the job ended with the exit code {outcome.exit_code}, so nothing was compared"
    return "; ".join([words, *outcome.problems])


def _give(plan: ValidationPlan, outcome: ValidationOutcome, given: Namespace, output: CommandOutput) -> None:
    from headwater.versions.validation.rendering import as_page, rows_text, verdict_of  # noqa: PLC0415

    if given.output == "html":
        output.answer(as_page(plan, outcome, given.run))
        return
    found = outcome.comparison
    fields: dict[str, object] = {
        "snapshot": plan.label,
        "job": shlex.join(given.run),
        "verdict": "not compared" if found is None else verdict_of(found),
        "compared": rows_text(plan.rows),
        "seconds": outcome.seconds,
    }
    if plan.notes:
        fields["notes"] = list(plan.notes)
    if outcome.kept:
        fields["kept"] = list(outcome.kept)
    output.record("validation", fields, "Validation")
    inputs = [(each.table, each.snapshot) for each in plan.inputs if each.is_recorded]
    output.table("inputs", ("table", "snapshot"), inputs, "What the job reads")
    if found is not None:
        give_comparison(found, output)


def give_comparison(
    found: ResultComparison, output: CommandOutput, sides: tuple[str, str] = ("recorded", "result")
) -> None:
    """Give what was compared, by what the two sides are called."""
    from headwater.versions.validation.rendering import column_note, values_text  # noqa: PLC0415

    one, other = sides
    rows: dict[str, object] = {
        one: found.recorded_rows,
        other: found.result_rows,
        "equal": found.equal,
        f"only {one}": found.only_recorded,
        f"only in the {other}": found.only_result,
        "different": "not known without a key" if found.different is None else found.different,
    }
    if found.repeated_keys:
        rows["keys with several rows"] = found.repeated_keys
    output.record("rows", rows, f"Rows, by {', '.join(found.key)}" if found.key else "Rows, as multisets")
    notes = [(each.name, each.different, column_note(each, other)) for each in found.columns]
    notes += [(each, None, f"missing in the {other}") for each in found.missing_in_result]
    notes += [(each, None, f"only in the {other}") for each in found.missing_in_recorded]
    notes += [(each, None, "ignored") for each in found.ignored]
    said = [each for each in notes if each[1] or each[2]]
    output.table("columns", ("column", "different", "note"), said, "Columns that differ, or are left out")
    if found.is_reordered:
        output.record("order", {"columns": "they stand in another order, which makes no difference"}, "Order")
    if found.samples_different:
        samples = [
            (values_text(each.key), name, here, there)
            for each in found.samples_different
            for name, (here, there) in each.columns.items()
        ]
        output.table("different", ("key", "column", one, other), samples, "Different, for example")
    for name, title, several in (
        (f"only {one}", f"Only {one}, for example", found.samples_only_recorded),
        (f"only in the {other}", f"Only in the {other}, for example", found.samples_only_result),
    ):
        if several:
            texts = [(each.count, values_text(each.values)) for each in several]
            output.table(f"rows {name}", ("times", "row"), texts, title)


def _words(text: str) -> list[str]:
    words = shlex.split(text)
    if not words:
        raise ValueError("it is empty: write the script and its arguments, such as 'jobs/report.py 2026-01-31'")
    return words
