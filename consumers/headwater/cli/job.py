"""`headwater job` and `headwater gap`: jobs, their tables and runs, and what may be missing."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING
from uuid import UUID

from headwater.cli.answers import add_namespace, give, job_of, open_connection
from headwater.cli.commands import command
from headwater.cli.exits import Exit
from headwater.cli.flags import Flags, limit, moment
from headwater.cli.output import CommandOutput, error_text, shown
from headwater.cli.store import add_store

if TYPE_CHECKING:
    from headwater.lineage.questions.gaps import PossibleGap
    from headwater.lineage.questions.runs import FailedStatement, Run

_TIMES = ("first", "last", "last run")
_RUN = ("started", "took", "status", "job", "user", "run")
_FAILURE = ("at", "job", "would have written")
"""What a terminal has room for. Errors stand below."""


@command(
    "List the jobs that are known; the one that was heard of last stands first.",
    "headwater job list",
    "headwater job list --limit 20 -o json",
    flags=[add_store, limit(1000)],
)
def list_jobs(given: Namespace, output: CommandOutput) -> int:
    from headwater.lineage.questions.jobs import jobs  # noqa: PLC0415

    with open_connection(given) as connection:
        answer = jobs(connection, at_most=given.limit)
    give(
        given,
        output,
        "jobs",
        answer,
        columns=("job", "type", "part of", "first", "last"),
        row=lambda each: (each.job, each.job_type, each.parent, each.first, each.last),
    )
    return Exit.DONE


def _job(parser: Flags) -> None:
    parser.word("job", str, "the name of a job: an application, a block, a query, or a step", "JOB")


def _runs(parser: Flags) -> None:
    parser.word("job", str, "the name of a job: an application, a block, a query, or a step", "JOB", "?")
    parser.flag("table", str, None, "only runs that read or wrote this table", "TABLE")
    parser.flag("run", UUID, None, "only this run", "UUID")


@command(
    "List the tables that a job reads and writes; of an application those of its steps too.",
    "headwater job tables orders_etl",
    flags=[add_store, add_namespace, _job, limit(1000)],
)
def tables(given: Namespace, output: CommandOutput) -> int:
    from headwater.lineage.questions.jobs import tables_of  # noqa: PLC0415

    job = job_of(given, given.job)
    assert job is not None  # noqa: S101 - the parser asks for it
    with open_connection(given) as connection:
        answer = tables_of(connection, job)
    give(
        given,
        output,
        "tables",
        answer,
        columns=("does", "table", "by", "runs", *_TIMES),
        row=lambda each: (each.does, each.table, each.job, each.runs, each.first, each.last, each.last_run),
        title=f"Tables of {job}",
    )
    return Exit.DONE


@command(
    """List runs, the newest first: their status, how long they took, and the statements that failed in them.

A run whose end was never reported and that isn't heard of any more is SILENT.""",
    "headwater job runs",
    "headwater job runs orders_etl --limit 5",
    "headwater job runs --table sales.daily -o json",
    flags=[add_store, add_namespace, _runs, limit(20)],
)
def runs(given: Namespace, output: CommandOutput) -> int:
    from headwater.lineage.questions.runs import runs as question  # noqa: PLC0415

    job = job_of(given, given.job)
    with open_connection(given) as connection:
        answer = question(connection, job, table=given.table, run=given.run, at_most=given.limit)
    of = job or given.table
    is_text = given.output == "text"
    columns = _RUN if is_text else (*_RUN, "failed", "error")
    row = _run if is_text else _run_with_error
    give(given, output, "runs", answer, columns=columns, row=row, title=f"Runs of {of}" if of else "")
    failures = [(run, failed) for run in answer for failed in run.failures]
    if failures or not is_text:
        failed_columns = _FAILURE if is_text else (*_FAILURE, "run", "error")
        output.table("failed statements", failed_columns, map(_failure if is_text else _failure_with_error, failures))
    for words in _errors(answer) if is_text else ():
        output.note(error_text(words))
    return Exit.DONE


def _run(run: Run) -> Sequence[object]:
    return (run.started, run.duration, _status(run), run.job, run.user, run.run)


def _run_with_error(run: Run) -> Sequence[object]:
    return (*_run(run), len(run.failures) or None, run.error)


def _errors(runs: Iterable[Run]) -> Iterator[str]:
    """Yield the errors of runs and of their statements. One that both have is that of the statement."""
    for run in runs:
        failures = [(failed.at, failed.job, failed.error) for failed in run.failures]
        of_statements = {error for _, _, error in failures}
        own = [] if run.error is None or run.error in of_statements else [(run.started, run.job, run.error)]
        yield from (f"{job}: {shown(at)} {error}" for at, job, error in (*own, *failures) if error)


def _status(run: Run) -> str:
    if run.status.is_terminal:
        return f"{run.status.value} (inferred)" if run.inferred else run.status.value
    return "RUNNING" if run.alive else "SILENT"


def _failure(of: tuple[Run, FailedStatement]) -> Sequence[object]:
    _, failed = of
    return (failed.at, failed.job, failed.outputs)


def _failure_with_error(of: tuple[Run, FailedStatement]) -> Sequence[object]:
    run, failed = of
    return (*_failure(of), run.run, failed.error)


def _gaps(parser: Flags) -> None:
    parser.flag("job", str, None, "only what this job or its application missed", "NAME")
    parser.flag("table", str, None, "only what is missing of this table, or of what its applications missed", "TABLE")
    parser.flag("since", moment, None, "only gaps that reach beyond this time", "TIME")
    parser.flag("until", moment, None, "only gaps that began before this time", "TIME")


@command(
    "List what may be missing from the store: what was reported as missed, and what is inferred from what is there.",
    "headwater gap list",
    "headwater gap list --table sales.daily --since 7d",
    flags=[add_store, add_namespace, _gaps, limit(1000)],
)
def list_gaps(given: Namespace, output: CommandOutput) -> int:
    from headwater.lineage.questions.completeness import gaps  # noqa: PLC0415
    from headwater.lineage.questions.name_checks import (  # noqa: PLC0415
        check_job,
        job_key,
        resolve_table,
    )

    job = job_of(given, given.job)
    with open_connection(given) as connection:
        if job is not None:
            check_job(connection, job_key(job))
        answer = gaps(
            connection,
            since=given.since,
            until=given.until,
            job=job,
            datasets=None if given.table is None else resolve_table(connection, given.table).keys,
            at_most=given.limit,
        )
    columns = ("from", "to", "what", "detail", "events", "dataset", "job", "application", "producer")
    give(given, output, "gaps", answer, columns=columns, row=_gap, title="What may be missing")
    return Exit.DONE


def _gap(gap: PossibleGap) -> Sequence[object]:
    what = gap.reason or gap.cause.value
    return (
        *(gap.since, gap.until, what, gap.detail, gap.count),
        *(gap.dataset, gap.job, gap.application, gap.producer),
    )
