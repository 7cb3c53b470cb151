"""`headwater version show`, `check`, `align` and `list`: which versions of tables belong together."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from headwater.cli.alignment_sql import from_clause
from headwater.cli.answers import A_TABLE, limit_texts, open_connection, snapshot_text
from headwater.cli.commands import command
from headwater.cli.exits import Exit, exit_for
from headwater.cli.flags import Flags, count, duration, is_number, limit, moment
from headwater.cli.output import CommandOutput
from headwater.cli.store import add_store, open_given_store
from headwater.errors import ConfigurationError, HeadwaterError
from headwater.events.clock import moment_of

if TYPE_CHECKING:  # SQLAlchemy is imported where a store is opened
    from headwater.lineage.questions import Answer
    from headwater.lineage.questions.datasets import Dataset
    from headwater.lineage.store import Store
    from headwater.versions import (
        AlignmentAnswer,
        ConsistencyAnswer,
        ContainedAnswer,
        ContainedVersion,
        SharedAncestor,
        TableAt,
    )
    from headwater.versions.fixed_versions import At

_AT: Final = "TABLE[@SNAPSHOT]"
_INDENT: Final = "  "
_NOTHING_SHARED: Final = "they were made from no table in common, as far as is known"
_VERDICTS: Final = {True: "yes", False: "no", None: "unknown"}
_EXITS: Final = {True: Exit.DONE, False: Exit.FAILED, None: Exit.UNKNOWN}


def _exit_of(error: HeadwaterError) -> int:
    """Return the code of an error. 1 says that versions don't belong together: what isn't known is no such answer."""
    from headwater.versions import NoAlignmentError  # noqa: PLC0415

    code = exit_for(error)
    return Exit.CONFIGURATION if code is Exit.FAILED and not isinstance(error, NoAlignmentError) else code


def _table(parser: Flags) -> None:
    parser.word("table", str, f"{A_TABLE}; without @SNAPSHOT its newest version", _AT)
    parser.flag("branch", str, None, "the branch that the snapshot is on", "BRANCH")


def _tables(parser: Flags) -> None:
    parser.word("tables", str, f"two or more tables: {A_TABLE}; without @SNAPSHOT the newest version", _AT, "+")


def _search(parser: Flags) -> None:
    parser.word("tables", str, f"two or more tables: {A_TABLE}", "TABLE", "+")
    parser.flags("at", str, "a version of another table that they have to go with", "TABLE@SNAPSHOT")
    text = "a data version of aligned jobs that they have to go with"
    parser.flag("data-version", data_version, None, text, "GROUP@N")
    parser.flag("as-of", moment, None, "as it was known at a time: 2026-03-01, 2026-03-01T12:30 or 7d", "TIME")
    parser.flag("look-back", count, "1000", "how many versions of each table are tried", "N")
    text = "only versions that are so much older than the newest at most: 2h, 7d"
    parser.flag("look-back-time", duration, None, text, "DURATION")


def data_version(text: str) -> tuple[str, int]:
    group, _, number = text.rpartition("@")
    if not group or not is_number(number):
        raise ValueError(f"{text!r} is no data version: write GROUP@N; `headwater version list GROUP` shows them")
    return group, int(number)


def _group(parser: Flags) -> None:
    parser.word("group", str, "the name of an alignment group; without one all groups are listed", "GROUP", "?")


@command(
    "Show for each table upstream the versions that are contained in a table at a snapshot.",
    "headwater version show sales.daily@812",
    flags=[add_store, _table],
    exit_of=_exit_of,
)
def show(given: Namespace, output: CommandOutput) -> int:
    from headwater.versions import contained  # noqa: PLC0415

    with open_connection(given) as connection:
        answer = contained(connection, given.table, branch=given.branch)
    rows = [_row(each, depth if given.output == "text" else 0) for each, depth in _in_tree(answer)]
    output.table("contained", _COLUMNS, rows, f"{answer.of.label} contains")
    _give_limits(answer, output)
    return Exit.DONE


@command(
    "Say whether tables belong together at these snapshots: whether each table upstream that they share is in all of "
    "them at the same version.\n\nThe exit code is 0 if they do, 1 if they don't, and 4 if it isn't known; a table "
    "that isn't there, or a store that can't be read, ends with another one.",
    "headwater version check sales.daily@812 sales.top10@77",
    flags=[add_store, _tables, limit(20)],
    exit_of=_exit_of,
)
def check(given: Namespace, output: CommandOutput) -> int:
    from headwater.versions import check as check_tables  # noqa: PLC0415

    with open_connection(given) as connection:
        answer: ConsistencyAnswer = check_tables(connection, given.tables)
    names = [table.label for table in answer.tables]
    verdict: dict[str, object] = {"tables": names, "belong together": _VERDICTS[answer.is_consistent]}
    if answer.is_consistent and not answer.rows:
        verdict["note"] = f"{_NOTHING_SHARED}, so any versions do"
    output.record("verdict", verdict, "Verdict")
    _give_shared(answer.rows, output)
    _give_lacked(answer.rows, output, int(given.limit))
    _give_limits(answer, output)
    return _EXITS[answer.is_consistent]


@command(
    "Find the newest snapshots of several tables that belong together.\n\nWith -o sql the answer is a FROM clause.",
    "headwater version align sales.daily sales.top10",
    "headwater version align sales.daily sales.top10 --at raw.orders@20 -o sql",
    "headwater version align sales.daily sales.top10 --data-version shop@8",
    flags=[add_store, _search],
    outputs=("text", "json", "sql"),
    exit_of=_exit_of,
)
def align(given: Namespace, output: CommandOutput) -> int:
    from headwater.versions import align as align_tables  # noqa: PLC0415

    with open_given_store(given) as store:
        at = _at(given, store)
        with store.engine.connect() as connection:
            answer: AlignmentAnswer = align_tables(
                connection,
                given.tables,
                at=at,
                look_back=int(given.look_back),
                look_back_time=given.look_back_time,
            )
    if given.output == "sql":
        output.answer(from_clause([row.table for row in answer.rows]))
        return Exit.DONE
    rows = [
        (row.table.label, snapshot_text(row.table.snapshot), row.steps_behind, row.newest.label, row.table.made_at)
        for row in answer.rows
    ]
    title = "They belong together" if answer.shared else f"{_NOTHING_SHARED.capitalize()}: the newest of each"
    output.table("aligned", ("table", "snapshot", "behind", "newest", "made at"), rows, title)
    _give_shared(answer.shared, output)
    _give_limits(answer, output)
    return Exit.DONE


def _at(given: Namespace, store: Store) -> At:
    """Return what the versions have to go with, or the time."""
    from headwater.versions.aligned import GroupClaims  # noqa: PLC0415

    if sum(map(bool, (given.at, given.data_version, given.as_of))) > 1:
        raise ConfigurationError("--at, --data-version and --as-of can't be combined: give one of them")
    if given.data_version is None:
        at: At = given.at or given.as_of
        return at
    group, number = given.data_version
    found = GroupClaims(store, group).version(number)
    if found is None:
        raise ConfigurationError(f"there is no data version {number} of {group!r}: headwater version list {group}")
    return found


@command(
    "List the data versions of a group of aligned jobs, newest first: the snapshots that each stands for, which jobs "
    "have it, and which are late.",
    "headwater version list",
    "headwater version list shop",
    flags=[add_store, _group, limit(20)],
    exit_of=_exit_of,
)
def list_versions(given: Namespace, output: CommandOutput) -> int:
    from headwater.versions.aligned import GroupClaims, groups_in  # noqa: PLC0415

    with open_given_store(given) as store:
        if given.group is None:
            groups = [(group.name, group.newest, list(group.tables)) for group in groups_in(store)]
            output.table("groups", ("group", "newest", "tables"), groups, "Groups of aligned jobs")
            return Exit.DONE
        claims = GroupClaims(store, given.group)
        state = claims.state()
        if state is None:
            raise ConfigurationError(
                f"there is no group {given.group!r}, which its first aligned job would make; `headwater version list` "
                "lists those that there are"
            )
        versions, jobs = claims.versions(int(given.limit)), claims.jobs()
    rows = [
        (
            version.number,
            str(version.cut),
            version.claimed_by,
            moment_of(version.claimed_at),
            ", ".join(job.job for job in jobs if (job.done or 0) >= version.number),
            ", ".join(job.job for job in jobs if (job.done or 0) < version.number),
        )
        for version in versions
    ]
    columns = ("number", "cut", "claimed by", "claimed at", "done by", "late")
    output.table("versions", columns, rows, f"Data versions of {given.group}")
    progress = [
        (job.job, job.done, job.running, state.newest - (job.done or 0), moment_of(job.moved_at), job.checkpoint)
        for job in jobs
    ]
    output.table("jobs", ("job", "done", "running", "behind", "moved at", "checkpoint"), progress, "Jobs")
    return Exit.DONE


_COLUMNS: Final = ("table", "read by", "whole", "since", "read at", "job")


def _in_tree(answer: ContainedAnswer) -> Iterator[tuple[ContainedVersion, int]]:
    """Yield what is contained with how deep it is: after each table what that was made from, where it is met first."""
    by_reader: dict[bytes, list[ContainedVersion]] = {}
    for row in answer.rows:
        by_reader.setdefault(row.reader.key, []).append(row)
    waiting = [(each, 0) for each in reversed(by_reader.pop(answer.of.dataset.key, []))]
    while waiting:
        each, depth = waiting.pop()
        yield each, depth
        waiting += [(behind, depth + 1) for behind in reversed(by_reader.pop(each.table.dataset.key, []))]
    yield from ((row, 0) for rows in by_reader.values() for row in rows)


def _row(each: ContainedVersion, depth: int) -> Sequence[object]:
    whole = "yes" if each.is_whole else "no"
    return (
        _INDENT * depth + each.table.label,
        each.reader.label,
        whole,
        snapshot_text(each.since),
        each.read_at,
        each.job,
    )


def _give_shared(shared: Sequence[SharedAncestor], output: CommandOutput) -> None:
    rows = [
        (each.dataset.label, _VERDICTS[each.is_same], table.label, found.table.label, found.reader.label, found.read_at)
        for each in sorted(shared, key=lambda one: one.dataset.label)
        for table, contained in each.contained
        for found in contained
    ]
    columns = ("shared table", "the same", "in", "contained", "read by", "read at")
    output.table("shared", columns, rows, "What they share")


def _give_lacked(shared: Sequence[SharedAncestor], output: CommandOutput, most: int) -> None:
    """Give the commits that make the difference, as many as are wanted of each shared table."""
    rows = [
        (
            one.table.label,
            one.kind,
            one.job,
            one.table.made_at,
            ", ".join(sorted({_place(*each) for each in one.lacking})),
        )
        for each in shared
        for one in (each.lacked or ())[:most]
    ]
    if not rows:
        return
    output.table("lacked", ("commit", "kind", "job", "made at", "lacking in"), rows, "What some of them lack")
    for each in shared:
        if len(each.lacked or ()) > most:
            output.note(f"  {most} of {len(each.lacked or ())} commits of {each.dataset.label}: --limit shows more")


def _place(table: TableAt, reader: Dataset) -> str:
    return table.label if reader.key == table.dataset.key else f"{table.label} (by {reader.label})"


def _give_limits(answer: Answer[object], output: CommandOutput) -> None:
    fields: dict[str, object] = {"complete until": answer.complete_until}
    if limits := list(limit_texts(answer)):
        fields["partial because"] = limits
    output.record("reliability", fields, "How far this goes")
