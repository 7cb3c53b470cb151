"""`headwater runs` and `headwater gaps`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING
from uuid import UUID

from headwater.cli.asking.giving import add_job, asked, flags_of, give, job_of, moment, number, output_of, time_text
from headwater.cli.output import Output

if TYPE_CHECKING:
    from headwater.lineage.questions.gaps import Missing
    from headwater.lineage.questions.runs import Failed, Run


def runs(arguments: Sequence[str], output: Output) -> int:
    """Runs, the newest first: how each stands, how long it took, and what failed in it."""
    from headwater.lineage.questions.runs import runs as question  # noqa: PLC0415

    parser = flags_of("runs", str(runs.__doc__))
    add_job(parser)
    parser.flag("table", str, None, "only those that read or wrote this table", "TABLE")
    parser.flag("run", UUID, None, "only this one", "UUID")
    parser.flag("at-most", number, "20", "how many", "NUMBER")
    parser.add_argument("job", nargs="?", help="the name of a job: an application, a block, a query, or a step")
    given = parser.parse_args(arguments)
    with asked(given) as connection:
        job = job_of(given, given.job)
        answer = question(connection, job, table=given.table, run=given.run, at_most=given.at_most)
    output = output_of(given, output)
    columns = ("started", "took", "status", "job", "user", "failed", "run", "error")
    title = f"Runs of {job or given.table}" if job or given.table else "Runs"
    give(output, title, columns, answer, _row)
    failures = [(run, failed) for run in answer for failed in run.failures]
    if failures:
        output.table("Failed statements", ("at", "job", "would have written", "run", "error"), map(_failure, failures))
    return 0


def _row(run: Run) -> Sequence[object]:
    failed = len(run.failures) or None
    return (run.started, run.duration, _status(run), run.job, run.user, failed, run.run, run.error)


def _status(run: Run) -> str:
    """One that has no end and isn't heard of any more is no running one."""
    if run.status.is_terminal:
        return f"{run.status.value} (inferred)" if run.inferred else run.status.value
    return "RUNNING" if run.alive else "SILENT"


def _failure(of: tuple[Run, Failed]) -> Sequence[object]:
    run, failed = of
    return (time_text(failed.at), failed.job, ", ".join(failed.outputs) or None, run.run, failed.error)


def gaps(arguments: Sequence[str], output: Output) -> int:
    """What may be missing from the store: told by those who missed it, and inferred from what is there."""
    from headwater.lineage.questions.about import table_meant  # noqa: PLC0415
    from headwater.lineage.questions.completeness import gaps as question  # noqa: PLC0415

    parser = flags_of("gaps", str(gaps.__doc__))
    add_job(parser)
    parser.flag("job", str, None, "only of this job, or of what its application missed", "NAME")
    parser.flag("table", str, None, "only of this table, or of what its applications missed", "TABLE")
    parser.flag("since", moment, None, "only those that reach behind this time", "TIME")
    parser.flag("until", moment, None, "only those that began before this time", "TIME")
    parser.flag("at-most", number, "1000", "how many", "NUMBER")
    given = parser.parse_args(arguments)
    with asked(given) as connection:
        answer = question(
            connection,
            since=given.since,
            until=given.until,
            job=job_of(given, given.job),
            datasets=None if given.table is None else table_meant(connection, given.table).keys,
            at_most=given.at_most,
        )
    columns = ("from", "to", "what", "detail", "events", "dataset", "job", "application", "producer")
    return give(output_of(given, output), "What may be missing", columns, answer, _gap)


def _gap(gap: Missing) -> Sequence[object]:
    what = gap.reason or gap.cause.value
    return (
        *(gap.since, gap.until, what, gap.detail, gap.count),
        *(gap.dataset, gap.job, gap.application, gap.producer),
    )
