"""`headwater lineage upstream`, `downstream` and `path`: what was made from what."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from headwater.cli.answers import open_connection
from headwater.cli.commands import command
from headwater.cli.exits import Exit
from headwater.cli.flags import Flags, count, limit, moment
from headwater.cli.output import CommandOutput
from headwater.cli.store import add_store
from headwater.errors import ConfigurationError

if TYPE_CHECKING:  # SQLAlchemy is imported where a store is opened
    from sqlalchemy import Connection

    from headwater.lineage.questions.lineage_answers import LineageAnswer
    from headwater.lineage.questions.names import ResolvedName

OUTPUTS: Final = ("text", "json", "dot", "mermaid", "html")
_WHICH: Final = """A table is named by catalog.database.table, database.table, a path or a URI; with @SNAPSHOT behind it
(a number or a tag) one snapshot is meant, with .COLUMN one column."""


def _of(parser: Flags) -> None:
    parser.word("table", str, "TABLE[@SNAPSHOT][.COLUMN]", "TABLE")
    parser.switch("direct", "one step only, as --depth 1")
    parser.flag("depth", count, None, "at most so many steps", "N")
    parser.flag("column", str, None, "a column, where its name would be mistaken for the table's", "COLUMN")
    parser.flag("branch", str, None, "the branch that the snapshot is on", "BRANCH")
    parser.flag("job", str, None, "of tables: only what this job and its steps made", "JOB")


def _add_endpoints(parser: Flags) -> None:
    parser.word("source", str, "where the way begins: TABLE[@SNAPSHOT]", "FROM")
    parser.word("table", str, "where it ends: TABLE[@SNAPSHOT]", "TO")


def _basis(parser: Flags) -> None:
    basis = parser.add_mutually_exclusive_group()
    commit = "of snapshots: what the commit of the snapshot read; a table alone means its newest snapshot"
    basis.add_argument("--commit", dest="basis", action="store_const", const="commit", help=commit)
    state = "of snapshots: what all commits read that are in the table, since the last full overwrite"
    basis.add_argument("--state", dest="basis", action="store_const", const="state", help=state)
    parser.flag("as-of", moment, None, "as it was known at a time: 2026-03-01, 2026-03-01T12:30 or 7d", "TIME")


@command(
    f"Show what a table, a snapshot or a column was made from, through all steps.\n\n{_WHICH}",
    "headwater lineage upstream sales.daily",
    "headwater lineage upstream sales.daily@812 --state",
    "headwater lineage upstream sales.daily.amount --depth 2 -o json",
    "headwater lineage upstream sales.daily -o html > daily.html",
    flags=[add_store, _of, _basis, limit(10_000)],
    outputs=OUTPUTS,
)
def upstream(given: Namespace, output: CommandOutput) -> int:
    return _follow("upstream", given, output)


@command(
    f"Show what was made from a table, a snapshot or a column: what breaks if it changes.\n\n{_WHICH}",
    "headwater lineage downstream raw.orders.amount",
    "headwater lineage downstream raw.orders --direct",
    flags=[add_store, _of, _basis, limit(10_000)],
    outputs=OUTPUTS,
)
def downstream(given: Namespace, output: CommandOutput) -> int:
    return _follow("downstream", given, output)


@command(
    "Show a shortest way by which one table or snapshot comes into another.",
    "headwater lineage path raw.orders sales.daily",
    flags=[add_store, _add_endpoints, _basis],
    outputs=OUTPUTS,
)
def path(given: Namespace, output: CommandOutput) -> int:
    from headwater.lineage.questions.paths import path_between  # noqa: PLC0415

    with open_connection(given) as connection:
        basis = given.basis or "commit"
        answer = path_between(connection, given.source, given.table, basis=basis, as_of=given.as_of)
    output.answer(_render(answer, given.output))
    return Exit.DONE


def _follow(direction: str, given: Namespace, output: CommandOutput) -> int:
    with open_connection(given) as connection:
        answer = _answer(connection, direction, given)
    output.answer(_render(answer, given.output))
    return Exit.DONE


def _render(answer: LineageAnswer[Any], form: str) -> str:
    from headwater.lineage.rendering import as_dot, as_html, as_json, as_mermaid, as_text  # noqa: PLC0415

    forms: Mapping[str, Callable[[LineageAnswer[Any]], str]] = {
        "text": lambda each: f"{as_text(each)}\n",
        "json": lambda each: f"{as_json(each)}\n",
        "dot": as_dot,
        "mermaid": as_mermaid,
        "html": as_html,
    }
    return forms[form](answer)


def _answer(connection: Connection, direction: str, given: Namespace) -> LineageAnswer[Any]:
    from headwater.lineage.questions.names import find, parts_of  # noqa: PLC0415
    from headwater.lineage.questions.tables import downstream_tables, upstream_tables  # noqa: PLC0415

    named = find(connection, given.table)
    column = named.column if given.column is None else parts_of(given.column)
    common: dict[str, Any] = {
        "depth": 1 if given.direct else given.depth,
        "as_of": given.as_of,
        "at_most": given.limit,
    }
    if column:
        return _of_column(connection, direction, named, column, given=given, common=common)
    if named.snapshot is not None or given.basis is not None or given.branch is not None:
        return _of_snapshot(connection, direction, named, given, common)
    ask = upstream_tables if direction == "upstream" else downstream_tables
    return ask(connection, named.dataset, job=given.job, **common)


def _of_snapshot(
    connection: Connection, direction: str, named: ResolvedName, given: Namespace, common: dict[str, Any]
) -> LineageAnswer[Any]:
    from headwater.lineage.questions.snapshots import downstream_snapshots, upstream_snapshots  # noqa: PLC0415
    from headwater.lineage.questions.states import upstream_state  # noqa: PLC0415

    if given.job is not None:
        raise ConfigurationError("--job is for questions about tables: leave the snapshot, --commit and --state out")
    common["branch"] = given.branch
    if direction == "downstream":
        basis = given.basis or "commit"
        return downstream_snapshots(connection, named.dataset, named.snapshot, basis=basis, **common)
    ask = upstream_state if given.basis == "state" else upstream_snapshots
    return ask(connection, named.dataset, named.snapshot, **common)


def _of_column(
    connection: Connection,
    direction: str,
    named: ResolvedName,
    column: tuple[str, ...],
    *,
    given: Namespace,
    common: dict[str, Any],
) -> LineageAnswer[Any]:
    from headwater.lineage.questions.columns import downstream_columns, upstream_columns  # noqa: PLC0415

    if direction == "downstream":
        if named.snapshot is not None:
            raise ConfigurationError("what is made from a column is known of tables: leave the snapshot out")
        return downstream_columns(connection, named.dataset, column, **common)
    basis, snapshot = given.basis or "commit", named.snapshot
    return upstream_columns(
        connection, named.dataset, column, snapshot=snapshot, basis=basis, branch=given.branch, **common
    )
