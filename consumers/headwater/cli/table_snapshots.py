"""`headwater table snapshots`: the snapshots of a table, and the commits that made them."""

from __future__ import annotations

from argparse import Namespace
from typing import TYPE_CHECKING, Final

from headwater.cli.answers import add_table, give, open_connection, snapshot_text
from headwater.cli.commands import command
from headwater.cli.exits import Exit
from headwater.cli.flags import Flags, limit, moment
from headwater.cli.output import CommandOutput, Size
from headwater.cli.store import add_store

if TYPE_CHECKING:
    from headwater.lineage.questions.table_snapshots import TableSnapshot

_SHOWN: Final = ("snapshot", "committed", "kind", "job", "rows", "made from", "marks")
_MORE: Final = ("parent", "branch", "generation", "part of", "run", "bytes", "files", "tags")


def _snapshots(parser: Flags) -> None:
    parser.flag("branch", str, None, "only those of this branch", "BRANCH")
    parser.flag("until", moment, None, "only those that were committed until this time", "TIME")


@command(
    "List the snapshots of a table, newest first: who made each, when, how many rows it wrote, and what it was made "
    "from.",
    "headwater table snapshots sales.daily",
    "headwater table snapshots sales.daily --until 7d --limit 5 -o json",
    flags=[add_store, add_table, _snapshots, limit(50)],
)
def snapshots(given: Namespace, output: CommandOutput) -> int:
    from headwater.lineage.questions.table_snapshots import table_snapshots  # noqa: PLC0415

    with open_connection(given) as connection:
        answer = table_snapshots(connection, given.table, branch=given.branch, until=given.until, at_most=given.limit)
    is_text = given.output == "text"
    columns = _SHOWN if is_text else (*_SHOWN, *_MORE)
    give(
        given,
        output,
        "snapshots",
        answer,
        columns=columns,
        row=lambda each: _row(each)[: len(columns)],
        title=f"Snapshots of {given.table}",
    )
    return Exit.DONE


def _row(each: TableSnapshot) -> tuple[object, ...]:
    number = snapshot_text(each.snapshot) or each.version
    sources = [source.label for source in each.sources]
    return (
        *(number, each.at, each.kind, each.job, each.rows, sources, _marks(each)),
        *(snapshot_text(each.parent), each.branch, each.generation, each.parent_job, each.run),
        *(None if each.bytes is None else Size(each.bytes), each.files, each.tags),
    )


def _marks(each: TableSnapshot) -> list[str]:
    """Return what is to be seen at once: another branch than main, tags, a move of main, all rows replaced."""
    marks = [] if each.is_main else [f"branch {each.branch or '?'}"]
    marks += [f"tag {tag}" for tag in each.tags]
    return [*marks, *(["only points to it"] if each.is_pointer else []), *(["all rows anew"] if each.restarts else [])]
