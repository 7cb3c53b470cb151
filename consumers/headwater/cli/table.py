"""`headwater table`: which tables there are, who reads and writes them, and what was done to them."""

from __future__ import annotations

import re
from argparse import Namespace
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from headwater.cli.answers import A_TABLE, add_table, give, open_connection, snapshot_text
from headwater.cli.commands import command
from headwater.cli.exits import Exit
from headwater.cli.flags import Flags, limit, moment
from headwater.cli.output import CommandOutput, Size, error_text, shown
from headwater.cli.store import add_store

if TYPE_CHECKING:
    from headwater.lineage.questions.history import HistoryEntry
    from headwater.lineage.questions.hop_times import TriggerCost
    from headwater.lineage.questions.lateness import LateHop

_TIMES = ("first", "last", "last run")
_LATE = ("table", "age", "usual", "job", "status", "marks")
_LATE_MORE = ("job", "status", "snapshot", "barrier", "committed", "error", "attempted")
_TIMES_OF_HOP = ("waited for source", "waited for trigger", "ran", "commit took", "statement took")
_COST_OF_HOP = ("commits per day", "files per day", "file bytes", "recommended interval")
_WHERE_TIME_WENT = ("table", "source", "trigger", "run", "commit", "files/day", "each", "aim for")


@command(
    "List the tables that are known, by the names that catalogs have for them.",
    "headwater table list",
    "headwater table list --limit 20 -o json",
    flags=[add_store, limit(1000)],
)
def list_tables(given: Namespace, output: CommandOutput) -> int:
    from headwater.lineage.questions.jobs import tables  # noqa: PLC0415

    with open_connection(given) as connection:
        answer = tables(connection, at_most=given.limit)
    columns = ("table", "place", "first", "last")
    give(
        given,
        output,
        "tables",
        answer,
        columns=columns,
        row=lambda each: (each.table, each.place, each.first, each.last),
    )
    return Exit.DONE


@command(
    "List the jobs that read and write a table.",
    "headwater table jobs lake.sales.daily",
    flags=[add_store, add_table, limit(1000)],
)
def jobs(given: Namespace, output: CommandOutput) -> int:
    from headwater.lineage.questions.jobs import jobs_of  # noqa: PLC0415

    with open_connection(given) as connection:
        answer = jobs_of(connection, given.table)
    give(
        given,
        output,
        "jobs",
        answer,
        columns=("does", "job", "part of", "runs", *_TIMES),
        row=lambda each: (each.does, each.job, each.parent, each.runs, each.first, each.last, each.last_run),
        title=f"Jobs of {given.table}",
    )
    return Exit.DONE


@command(
    "Show who uses a table: the jobs that read it, who runs them, and how many tables are made from what they write.",
    "headwater table uses sales.daily",
    flags=[add_store, add_table, limit(1000)],
)
def uses(given: Namespace, output: CommandOutput) -> int:
    from headwater.lineage.questions.uses import uses as question  # noqa: PLC0415

    with open_connection(given) as connection:
        answer = question(connection, given.table)
    give(
        given,
        output,
        "uses",
        answer,
        columns=("job", "users", "runs", "first", "last", "writes", "downstream", "last run"),
        row=lambda use: (
            *(use.job, use.users, use.runs, use.first),
            *(use.last, use.writes, use.downstream, use.last_run),
        ),
        title=f"Who uses {given.table}",
    )
    return Exit.DONE


@command(
    """Show why a table is late: all that it is made from, who wrote that last, and when.

Of all tables upstream the oldest is marked OLDEST. One that wasn't written for more than twice as long as it usually
takes is overdue. Of each last commit: how long it waited for its source's commit and for the trigger, the run, the
commit itself, the files that this trigger makes in a day, and at which interval they would be of 16 MiB.""",
    "headwater table late sales.weekly",
    flags=[add_store, add_table, limit(1000)],
)
def show_late(given: Namespace, output: CommandOutput) -> int:
    from headwater.lineage.questions.lateness import lateness as question  # noqa: PLC0415

    with open_connection(given) as connection:
        answer = question(connection, given.table, at_most=given.limit)
    answer = replace(answer, rows=tuple(under_what_they_feed(answer.rows)))
    is_text = given.output == "text"
    more = (*_LATE_MORE, *_TIMES_OF_HOP, *_COST_OF_HOP)
    columns, row = (_LATE, _hop_by_depth) if is_text else (("table", "age", "usual", "marks", *more), _hop)
    give(given, output, "upstream", answer, columns=columns, row=row, title=f"What {given.table} waits for")
    known = [_where_time_went(hop) for hop in answer.rows[: given.limit] if hop.times.statement or hop.cost]
    if is_text and known:
        output.table("times", _WHERE_TIME_WENT, known, "Where the time of each last commit went")
    for hop in answer.rows if is_text else ():
        if hop.error is not None:
            words = f"{hop.table}: {shown(hop.attempted or hop.at)} {hop.error}"
            output.note(error_text(words))
    return Exit.DONE


def under_what_they_feed(hops: Sequence[LateHop]) -> Iterator[LateHop]:
    """Yield each table once, in the depth of its shortest way, behind one that is made from it: only so depth can be
    shown as an indent, which is read as "of the line above"."""
    below: dict[str | None, list[LateHop]] = {}
    for hop in hops:
        nearer = [each.table for each in hops if each.depth == hop.depth - 1 and each.table in hop.feeds]
        below.setdefault(nearer[0] if nearer else None, []).append(hop)
    waiting = below.pop(None, [])[::-1]
    while waiting:
        yield (hop := waiting.pop())
        waiting += below.pop(hop.table, [])[::-1]


def _hop(hop: LateHop) -> tuple[object, ...]:
    return (
        *(hop.table, hop.age, hop.usual, _marks(hop), hop.job, _status(hop)),
        *(snapshot_text(hop.snapshot if hop.version is None else hop.version), snapshot_text(hop.barrier), hop.at, hop.error),
        hop.attempted,
        *(hop.times.source, hop.times.trigger, hop.times.run, hop.times.commit, hop.times.statement),
        *_cost(hop.cost),
    )


def _cost(cost: TriggerCost | None) -> tuple[object, ...]:
    if cost is None:
        return (None,) * len(_COST_OF_HOP)
    files = None if cost.files_per_day is None else round(cost.files_per_day, 1)
    return (round(cost.commits_per_day, 1), files, cost.file_bytes, cost.recommended)


def _where_time_went(hop: LateHop) -> tuple[object, ...]:
    times, cost = hop.times, hop.cost
    is_split = times.run is not None or times.statement is None
    files = None if cost is None or cost.files_per_day is None else round(cost.files_per_day)
    size = None if cost is None or cost.file_bytes is None else Size(cost.file_bytes)
    return (
        *(hop.table, times.source, times.trigger),
        *((times.run, times.commit) if is_split else (f"{shown(times.statement)} (both)", None)),
        *(files, size, None if cost is None else cost.recommended),
    )


def _hop_by_depth(hop: LateHop) -> tuple[object, ...]:
    """Return the row of a tree that a terminal has room for: of a step the application is named, as the step is called
    by the table."""
    name = f"{'  ' * hop.depth}{hop.table}"
    return (name, hop.age, hop.usual, hop.parent or hop.job, _status(hop), _marks(hop))


def _marks(hop: LateHop) -> list[str]:
    marks = {"view": hop.is_view, "not written": hop.attempted, "OLDEST": hop.is_oldest, "overdue": hop.is_overdue}
    return [word for word, is_so in marks.items() if is_so]


def _status(hop: LateHop) -> str | None:
    if hop.status is None or hop.status.is_terminal:
        return None if hop.status is None else hop.status.value
    return "RUNNING" if hop.alive else "SILENT"


def _history(parser: Flags) -> None:
    parser.word(
        "snapshots", _range, "two snapshots: what changed of the columns from the one to the other", "A..B", "?"
    )
    parser.flag("since", moment, None, "only what was done since this time", "TIME")
    parser.flag("until", moment, None, "only what was done until this time", "TIME")


@command(
    "Show what was done to a table, in its format's own order; with A..B what changed of its columns from A to B.",
    "headwater table history sales.daily --since 7d",
    "headwater table history sales.daily 3..7",
    flags=[add_store, add_table, _history, limit(1000)],
)
def history(given: Namespace, output: CommandOutput) -> int:
    from headwater.lineage.questions.history import history as question  # noqa: PLC0415
    from headwater.lineage.questions.history import schema_changes  # noqa: PLC0415

    if given.snapshots is None:
        with open_connection(given) as connection:
            answer = question(connection, given.table, since=given.since, until=given.until)
        columns = ("at", "what", "changes", "schema", "made snapshot", "branch", "generation", "note")
        give(given, output, "history", answer, columns=columns, row=_history_row, title=f"History of {given.table}")
        return Exit.DONE
    one, other = given.snapshots
    with open_connection(given) as connection:
        changes = schema_changes(connection, given.table, one, other)
    give(
        given,
        output,
        "columns",
        changes,
        columns=("column", "what", "before", "after"),
        row=lambda each: (each.column, each.did, each.before, each.after),
        title=f"Columns of {given.table} from {one} to {other}",
    )
    return Exit.DONE


def _history_row(each: HistoryEntry) -> Sequence[object]:
    notes = [] if each.is_known else ["may have done nothing"]
    notes += ["by a write"] if each.cause == "WRITE" else []
    made = snapshot_text(each.produced)
    return (each.at, each.kind, list(each.changes), each.schema_id, made, each.branch, each.generation, notes)


def _range(text: str) -> tuple[int, int]:
    found = re.fullmatch(r"(-?\d+)\.\.(-?\d+)", text.strip())
    if found is None:
        raise ValueError(f"{text!r} isn't a range of snapshots: write A..B, such as 3..7")
    return int(found[1]), int(found[2])


def _snapshot(parser: Flags) -> None:
    parser.word("snapshot", str, f"{A_TABLE}, with its snapshot", "TABLE@SNAPSHOT")


@command(
    """Show which checkpoint, and which of its batches, made a snapshot.

A stream that goes on from there reads what that batch hadn't read. A snapshot that no stream made has no batch.""",
    "headwater table checkpoint lake.sales.daily@812",
    flags=[add_store, _snapshot, limit(1000)],
)
def checkpoint(given: Namespace, output: CommandOutput) -> int:
    from headwater.lineage.questions.checkpoints import checkpoints  # noqa: PLC0415

    with open_connection(given) as connection:
        answer = checkpoints(connection, given.snapshot)
    give(
        given,
        output,
        "checkpoints",
        answer,
        columns=("job", "batch", "checkpoint", "query", "barrier", "run", "committed"),
        row=lambda each: (
            *(each.job, each.batch, each.checkpoint, each.query and str(each.query)),
            *(snapshot_text(each.barrier), each.run and str(each.run), each.at),
        ),
        title=f"What made {given.snapshot}",
    )
    return Exit.DONE


@command(
    "Show what a table was called and when, and its generations: how often it was dropped and created again.",
    "headwater table names sales.daily",
    flags=[add_store, add_table, limit(1000)],
)
def names(given: Namespace, output: CommandOutput) -> int:
    from headwater.lineage.questions.generations import aliases, generations  # noqa: PLC0415

    with open_connection(given) as connection:
        called, made = aliases(connection, given.table), generations(connection, given.table)
    rows = [(each.generation, each.format, each.place, each.first, each.last, each.ended) for each in made]
    columns = ("generation", "format", "place", "first", "last", "ended")
    output.table("generations", columns, rows[: given.limit], f"Generations of {given.table}")
    give(
        given,
        output,
        "names",
        called,
        columns=("name", "place", "first", "last", "ended"),
        row=lambda each: (each.name, each.place, each.first, each.last, each.ended),
        title=f"Names of {given.table}",
    )
    return Exit.DONE
