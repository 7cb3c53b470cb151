"""`headwater jobs`, `headwater tables`, `headwater uses`."""

from __future__ import annotations

from collections.abc import Sequence

from headwater.cli.asking.giving import add_job, asked, flags_of, give, job_of, output_of
from headwater.cli.output import Output

_TIMES = ("first", "last", "last run")


def jobs(arguments: Sequence[str], output: Output) -> int:
    """The jobs that read and write a table; all jobs, if none is named."""
    from headwater.lineage.questions.jobs import jobs_of  # noqa: PLC0415
    from headwater.lineage.questions.listing import jobs as all_jobs  # noqa: PLC0415

    parser = flags_of("jobs", str(jobs.__doc__))
    parser.add_argument("table", nargs="?", help="catalog.database.table, database.table, a path or a URI")
    given = parser.parse_args(arguments)
    with asked(given) as connection:
        if given.table is None:
            return give(
                output_of(given, output),
                "Jobs",
                ("job", "type", "part of", "first", "last"),
                all_jobs(connection),
                lambda job: (job.job, job.job_type, job.parent, job.first, job.last),
            )
        return give(
            output_of(given, output),
            f"Jobs of {given.table}",
            ("does", "job", "part of", "runs", *_TIMES),
            jobs_of(connection, given.table),
            lambda job: (job.does.value, job.job, job.parent, job.runs, job.first, job.last, job.last_run),
        )


def tables(arguments: Sequence[str], output: Output) -> int:
    """The tables that a job reads and writes, an application's steps included; all tables, if no job is named."""
    from headwater.lineage.questions.jobs import tables_of  # noqa: PLC0415
    from headwater.lineage.questions.listing import tables as all_tables  # noqa: PLC0415

    parser = flags_of("tables", str(tables.__doc__))
    add_job(parser)
    parser.add_argument("job", nargs="?", help="the name of a job")
    given = parser.parse_args(arguments)
    job = job_of(given, given.job)
    with asked(given) as connection:
        if job is None:
            return give(
                output_of(given, output),
                "Tables",
                ("table", "place", "first", "last"),
                all_tables(connection),
                lambda table: (table.table, table.place, table.first, table.last),
            )
        return give(
            output_of(given, output),
            f"Tables of {job}",
            ("does", "table", "by", "runs", *_TIMES),
            tables_of(connection, job),
            lambda table: (
                *(table.does.value, table.table, table.job),
                *(table.runs, table.first, table.last, table.last_run),
            ),
        )


def uses(arguments: Sequence[str], output: Output) -> int:
    """Who uses a table: the jobs that read it, who runs them, and how many tables are made from what they write."""
    from headwater.lineage.questions.uses import uses as question  # noqa: PLC0415

    parser = flags_of("uses", str(uses.__doc__))
    parser.add_argument("table", help="catalog.database.table, database.table, a path or a URI")
    given = parser.parse_args(arguments)
    with asked(given) as connection:
        return give(
            output_of(given, output),
            f"Who uses {given.table}",
            ("job", "users", "runs", "first", "last", "writes", "downstream", "last run"),
            question(connection, given.table),
            lambda use: (
                *(use.job, use.users, use.runs, use.first),
                *(use.last, use.writes, use.downstream, use.last_run),
            ),
        )
