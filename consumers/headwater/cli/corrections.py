"""`headwater correct begin`, `sql`, `run`, `diff`, `abort`, `list` and `show`: corrections carried out on mirrors."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headwater.cli.answers import snapshot_text
from headwater.cli.commands import command
from headwater.cli.correct import add_plan, make_plan, read_commands
from headwater.cli.correction_progress import CorrectionProgress
from headwater.cli.correction_text import plan_text
from headwater.cli.erasing import add_erasing, erase
from headwater.cli.exits import Exit
from headwater.cli.flags import Flags, count
from headwater.cli.output import Age, CommandOutput
from headwater.cli.run import add_properties, properties_of
from headwater.cli.service import ended_by_sigterm
from headwater.cli.store import add_store, open_given_store
from headwater.cli.validate import give_comparison
from headwater.config.spark_submit import java_on_standard_error
from headwater.errors import ConfigurationError

if TYPE_CHECKING:  # SQLAlchemy and Spark are imported where they are used
    from headwater.lineage.store import Store
    from headwater.versions.correction import CorrectionPlan
    from headwater.versions.correction.execution.tables import CorrectionTables
    from headwater.versions.correction.journal import Correction
    from headwater.versions.correction.lag import MirrorLag
    from headwater.versions.validation import ResultComparison

_SIDES = ("production", "mirror")
_LAG_COLUMNS = ("commits behind", "behind")


def _correction(parser: Flags) -> None:
    parser.word("correction", str, "the correction's name, as `headwater correct list` has it", "CORRECTION")


def _begin(parser: Flags) -> None:
    parser.switch("anyway", "begin although tables stay wrong that can't be corrected")
    parser.switch("dry-run", "say what would be made, and make nothing")


def _sql(parser: Flags) -> None:
    _correction(parser)
    parser.word("statement", str, "one statement of Spark SQL, by the names of the tables", "STATEMENT")
    parser.flag("rows", count, "20", "how many rows of its answer are shown", "N")


def add_job_flags(parser: Flags) -> None:
    """Add the flags of commands that run a correction's jobs."""
    text = "a file that says how jobs are run; without it correction.toml here, if there is one"
    parser.flag("commands", Path, None, text, "FILE")
    parser.flags("allow", str, "let jobs write this table or path, which isn't of the chain, as it is", "TABLE")


def _run(parser: Flags) -> None:
    _correction(parser)
    add_job_flags(parser)
    parser.flag("rounds", count, "3", "how often it looks at most for what production made meanwhile", "N")
    parser.switch("dry-run", "say what would run, and run nothing")


def _abort(parser: Flags) -> None:
    _correction(parser)
    parser.flags("dropped", str, "a table of its that was dropped since, and its mirror with it", "TABLE")


def _diff(parser: Flags) -> None:
    _correction(parser)
    parser.word("table", str, "one of its tables; without it all", "TABLE", "?")
    parser.flags(
        "key", str, "a column by which rows are compared; without one they are compared as multisets", "COLUMN"
    )
    parser.flags("ignore", str, "a column that isn't compared, such as a time of loading", "COLUMN")
    parser.flag("samples", count, "10", "how many differing rows are shown of each kind", "N")


@command(
    """Begin a correction: make a mirror of each table that is wrong, where it is corrected. Nobody else sees the
mirrors, and production goes on. The plan is made anew and kept in the store, under the name that is printed.

What can't be carried out is said before anything is made.""",
    "headwater correct begin lake.ods.orders@4 --properties-file spark.conf",
    "headwater correct begin lake.ods.orders@4 --only lake.dws.revenue --dry-run",
    flags=[add_store, add_plan, _begin, add_properties],
)
def begin(given: Namespace, output: CommandOutput) -> int:
    from headwater.versions.correction.execution.corrector import begin_correction  # noqa: PLC0415
    from headwater.versions.correction.execution.stages import obstacles_of  # noqa: PLC0415
    from headwater.versions.correction.execution.streams import is_cut  # noqa: PLC0415

    with open_given_store(given, readonly=given.dry_run) as store:
        with store.engine.connect() as connection:
            plan = make_plan(connection, given)
        if given.dry_run:
            obstacles = obstacles_of(plan, anyway=given.anyway)
            if given.output == "text":
                output.answer(plan_text(plan))
            output.table("obstacles", ("what stands in the way",), [(each,) for each in obstacles], "In the way")
            output.outcome("nothing was done: this was a dry run", {"done": False, "dry_run": True})
            return Exit.FAILED if obstacles else Exit.DONE
        progress = CorrectionProgress(given.output)
        corrector = begin_correction(
            store,
            plan,
            lambda: tables_of(given, "begin"),
            anyway=given.anyway,
            report=progress.say,
            show=progress.show,
        )
        found = corrector.load()
    _give_mirrors(found, output)
    name = found.name
    statement = "INSERT INTO … SELECT … FROM wrong_rows" if is_cut(found) else "UPDATE …"
    output.outcome(
        f'{name} is open: correct the rows by `headwater correct sql {name} "{statement}"`, then `headwater correct '
        f"run {name}`",
        {"correction": name, "done": True},
    )
    return Exit.DONE


@command(
    """Run one statement on the mirrors of a correction, by the names of the tables: the rows of the wrong table are
corrected so. Other tables are read as they are now, and can't be written.

What you change in tables downstream is lost as soon as their jobs run. Where a stream reads the wrong table, its mirror
lacks the wrong rows, and takes INSERT alone: the view wrong_rows has what the wrong snapshot added.""",
    "headwater correct sql c-20260301-orders-4f2a 'UPDATE lake.ods.orders SET price = 5 WHERE id = 3'",
    "headwater correct sql c-20260301-orders-4f2a 'SELECT * FROM lake.ods.orders WHERE price < 0'",
    "headwater correct sql c-20260301-orders-4f2a 'INSERT INTO lake.ods.orders SELECT id, price / 100 FROM wrong_rows'",
    flags=[add_store, _sql, add_properties],
)
def sql(given: Namespace, output: CommandOutput) -> int:
    from headwater.versions.correction.execution.redirects import (  # noqa: PLC0415
        correction,
        marks_of,
        open_mirrors,
    )
    from headwater.versions.correction.execution.statements import prepare_statement  # noqa: PLC0415
    from headwater.versions.correction.journal import CorrectionJournal  # noqa: PLC0415

    with open_given_store(given) as store:
        marks = marks_of(given.correction)
        found = CorrectionJournal(store, given.correction).load()
        open_mirrors(found)  # before Spark is started
        with _session(given, "sql", marks) as spark:
            prepare_statement(spark, found, given.statement)
            with correction(spark, store, given.correction):
                answer = spark.sql(given.statement)
                columns, rows = answer.columns, answer.limit(int(given.rows)).collect()
    if columns:
        output.table("rows", columns, [tuple(row) for row in rows], "Answer")
    output.outcome("the statement was run on the mirrors", {"done": True})
    return Exit.DONE


@command(
    """Run the jobs of a correction on its mirrors, in the plan's order, each in a process of its own. First the mirror
of the wrong table gets what production has added meanwhile. It does so again for what production makes while the jobs
run, until nothing is left.

Run it again at any time: what is done and has nothing new isn't done again, and after a kill it goes on.""",
    "headwater correct run c-20260301-orders-4f2a --properties-file spark.conf",
    "headwater correct run c-20260301-orders-4f2a --dry-run",
    flags=[add_store, _run, add_properties],
)
def run(given: Namespace, output: CommandOutput) -> int:
    from headwater.versions.correction.execution.corrector import Corrector  # noqa: PLC0415
    from headwater.versions.correction.execution.reruns import JobRunner  # noqa: PLC0415

    with open_given_store(given, readonly=given.dry_run) as store, ended_by_sigterm():
        progress = CorrectionProgress(given.output)
        corrector = Corrector(store, given.correction, lambda: tables_of(given, "run"), progress.say, progress.show)
        planner = planner_of(store, given)
        if given.dry_run:
            seen = corrector.preview(planner)
            output.table("jobs", ("jobs", "would run"), seen.stages, "Jobs, in this order")
            output.outcome(
                f"{seen.to_take_over} commits of the source would be taken over; nothing was done: this was a dry run",
                {"done": False, "dry_run": True, "commits": seen.to_take_over},
            )
            return Exit.DONE
        runner = JobRunner(configuration=properties_of(given), allowed=tuple(given.allow))
        result = corrector.run(runner.run, planner, most_rounds=int(given.rounds))
    output.table("ran", ("jobs",), [(each,) for each in result.stages], "Jobs that ran")
    behind = [(table, snapshot_text(head)) for table, head in result.behind.items()]
    output.table("behind", ("table", "newest of production"), behind, "What production has made since")
    left = f"production has written {len(behind)} of the tables since: run it again" if behind else "nothing is left"
    output.outcome(
        f"{result.taken_over} commits of the source were taken over; {left}",
        {"done": True, "commits": result.taken_over, "is_up_to_date": not behind},
    )
    return Exit.DONE


@command(
    """Compare each mirror of a correction with its table: what a switch would change. Nothing is written.

The exit code is 0 if all rows are equal and 1 if any differ.""",
    "headwater correct diff c-20260301-orders-4f2a",
    "headwater correct diff c-20260301-orders-4f2a lake.dws.revenue --key day -o json",
    "headwater correct diff c-20260301-orders-4f2a -o html > correction.html",
    flags=[add_store, _diff, add_properties],
    outputs=("text", "json", "html"),
)
def diff(given: Namespace, output: CommandOutput) -> int:
    from headwater.versions.correction.execution.differences import (  # noqa: PLC0415
        compare_mirrors,
        mirrors_to_compare,
    )
    from headwater.versions.correction.journal import CorrectionJournal  # noqa: PLC0415

    if given.table is None and (given.key or given.ignore):
        raise ConfigurationError("of which table are these columns? Name it behind the correction")
    with open_given_store(given) as store:
        correction = CorrectionJournal(store, given.correction).load()
    mirrors = mirrors_to_compare(correction, given.table)
    with _session(given, "diff") as spark:
        found = compare_mirrors(spark, mirrors, key=given.key, ignored=given.ignore, samples=int(given.samples))
    code = Exit.DONE if all(each.is_equal for each in found.values()) else Exit.FAILED
    if given.output == "html":
        from headwater.versions.validation.rendering import comparisons_page  # noqa: PLC0415

        output.answer(comparisons_page(f"What {given.correction} changes", found, _SIDES))
        return code
    output.table("tables", ("table", *_SIDES, "equal", "verdict"), list(_compared(found)), "Compared")
    if given.table is not None:
        [comparison] = found.values()
        give_comparison(comparison, output, _SIDES)
    return code


@command(
    "End a correction before it is switched: all of its mirrors are removed. Production was never touched.",
    "headwater correct abort c-20260301-orders-4f2a --dry-run",
    "headwater correct abort c-20260301-orders-4f2a --yes",
    flags=[add_store, _abort, add_erasing, add_properties],
)
def abort(given: Namespace, output: CommandOutput) -> int:
    from headwater.versions.correction.execution.corrector import Corrector  # noqa: PLC0415

    with open_given_store(given, readonly=given.dry_run) as store:
        corrector = Corrector(
            store,
            given.correction,
            lambda: tables_of(given, "abort", given.dropped),
            CorrectionProgress(given.output).say,
        )
        found = corrector.load()
        _give_mirrors(found, output)

        def work() -> tuple[str, Mapping[str, object]]:
            corrector.abort()
            return f"{found.name} is aborted, and its mirrors are gone", {}

        question = f"Remove all mirrors of {found.name}, with what was corrected on them?"
        return erase(given, output, question, work, is_nothing=found.state.is_over)


@command(
    "List the corrections that were begun, the newest first.",
    "headwater correct list",
    "headwater correct list -o json",
    flags=[add_store],
)
def list_corrections(given: Namespace, output: CommandOutput) -> int:
    from headwater.versions.correction.journal import CorrectionJournal, corrections_in  # noqa: PLC0415
    from headwater.versions.correction.lag import find_lags, next_command  # noqa: PLC0415

    with open_given_store(given) as store, store.engine.connect() as connection:
        rows = []
        for each in corrections_in(store):
            about = (each.name, each.source, snapshot_text(each.snapshot), each.mode, each.state)
            found = CorrectionJournal(store, each.name).load()
            lags = find_lags(connection, found)
            following = next_command(found, lags)
            rows.append((*about, *_most_behind(lags.values()), following, each.made_at, each.moved_at))
    columns = ("name", "table", "snapshot", "mode", "state", *_LAG_COLUMNS, "next", "begun", "moved")
    output.table("corrections", columns, rows, "Corrections")
    return Exit.DONE


@command(
    "Show a correction: its mirrors, how far production is ahead of them as far as the store knows, and its steps.",
    "headwater correct show c-20260301-orders-4f2a",
    "headwater correct show c-20260301-orders-4f2a -o json",
    flags=[add_store, _correction],
)
def show(given: Namespace, output: CommandOutput) -> int:
    from headwater.versions.correction.journal import CorrectionJournal  # noqa: PLC0415
    from headwater.versions.correction.lag import find_lags, next_command  # noqa: PLC0415
    from headwater.versions.step_journal import StepKind  # noqa: PLC0415

    with open_given_store(given) as store, store.engine.connect() as connection:
        found = CorrectionJournal(store, given.correction).load()
        lags = find_lags(connection, found)
    status = found.status
    fields: dict[str, object] = {
        "name": status.name,
        "table": status.source,
        "snapshot": snapshot_text(status.snapshot),
        "mode": status.mode,
        "state": status.state,
        "begun": status.made_at,
        "moved": status.moved_at,
        "next": next_command(found, lags),
    }
    output.record("correction", fields, "Correction")
    _give_mirrors(found, output)
    rows = [(table, lag.commits, _age(lag), lag.problem) for table, lag in lags.items()]
    output.table("lags", ("table", *_LAG_COLUMNS, "problem"), rows, "How far production is ahead of the mirrors")
    switched = [
        (step.subject, step.state, *map(snapshot_text, (step.detail["expected"], step.detail["snapshot"])))
        for step in found.of(StepKind.SWITCH)
    ]
    output.table("switches", ("table", "state", "from", "to"), switched, "What was switched")
    steps = [
        (step.number, step.kind, step.subject, step.state, step.moved_at, step.detail.get("error"))
        for step in found.steps
    ]
    output.table("steps", ("number", "kind", "subject", "state", "moved", "error"), steps, "Steps")
    return Exit.DONE


def _most_behind(lags: Collection[MirrorLag]) -> tuple[int | None, Age | None]:
    """Return the commits that all mirrors lack, and the longest lag; None for what isn't known of any."""
    commits = [lag.commits for lag in lags]
    behind = [lag.behind for lag in lags if lag.behind is not None]
    known = [each for each in commits if each is not None]
    return (sum(known) if lags and len(known) == len(commits) else None), (_seconds(max(behind)) if behind else None)


def _age(lag: MirrorLag) -> Age | None:
    return None if lag.behind is None else _seconds(lag.behind)


def _seconds(span: timedelta) -> Age:
    return Age(round(span.total_seconds(), 1))


def _give_mirrors(found: Correction, output: CommandOutput) -> None:
    from headwater.versions.correction.execution.redirects import mirrors_of  # noqa: PLC0415

    there = mirrors_of(found)
    rows = []
    for table in found.plan.corrected:
        mirror = there.get(table.table)
        name, expected = (None, None) if mirror is None else (mirror.name, mirror.expected)
        rows.append((table.table, name, snapshot_text(expected)))
    output.table("mirrors", ("table", "mirror", "takes account of"), rows, "Mirrors")


def _compared(found: Mapping[str, ResultComparison]) -> Generator[Sequence[object]]:
    from headwater.versions.validation.rendering import verdict_of  # noqa: PLC0415

    for table, each in found.items():
        yield (table, each.recorded_rows, each.result_rows, each.equal, verdict_of(each, _SIDES))


def planner_of(store: Store, given: Namespace) -> Callable[[Correction], CorrectionPlan]:
    """Return how a correction is planned as things are now."""
    from headwater.versions.correction import plan_correction  # noqa: PLC0415

    commands = read_commands(given.commands)

    def plan(correction: Correction) -> CorrectionPlan:
        about = correction.plan
        with store.engine.connect() as connection:
            return plan_correction(connection, f"{about.source}@{about.snapshot}", mode=about.mode, commands=commands)

    return plan


@contextmanager
def tables_of(given: Namespace, name: str, dropped: Sequence[str] = ()) -> Generator[CorrectionTables]:
    """Open the tables of a correction in a session of the command's own."""
    from headwater.versions.correction.execution.spark_tables import SparkCorrectionTables  # noqa: PLC0415

    with _session(given, name) as spark:
        yield SparkCorrectionTables(spark, dropped)


@contextmanager
def _session(given: Namespace, name: str, marks: Mapping[str, str] | None = None) -> Generator[Any]:
    """Yield a Spark session of the command's own. Its JVM ends with it: jobs in other processes may need what it
    holds, such as an embedded metastore."""
    from headwater.versions.spark_tables import command_session, end_jvm  # noqa: PLC0415

    properties = {**properties_of(given), **(marks or {})}
    with java_on_standard_error():
        try:
            with command_session(properties, f"headwater correct {name}", is_reported=marks is not None) as spark:
                yield spark
        finally:
            end_jvm()
