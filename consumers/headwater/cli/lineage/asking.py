"""What is asked of the store, and how its answer looks."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Mapping
from contextlib import closing
from typing import Any, Final

from sqlalchemy import Connection

from headwater.cli.store import opened
from headwater.errors import ConfigurationError
from headwater.lineage.forms import as_dot, as_html, as_json, as_mermaid, as_text
from headwater.lineage.questions.columns import downstream_columns, upstream_columns
from headwater.lineage.questions.names import Named, find, parts_of
from headwater.lineage.questions.paths import path_between
from headwater.lineage.questions.snapshots import downstream_snapshots, upstream_snapshots
from headwater.lineage.questions.states import upstream_state
from headwater.lineage.questions.tables import downstream_tables, upstream_tables
from headwater.lineage.questions.versions import Lineage

_SHOWN: Final[Mapping[str, Callable[[Lineage[Any]], str]]] = {
    "text": lambda answer: f"{as_text(answer)}\n",
    "json": lambda answer: f"{as_json(answer)}\n",
    "dot": as_dot,
    "mermaid": as_mermaid,
    "html": as_html,
}


def answer_to(action: str, given: Namespace) -> Lineage[Any]:
    with closing(opened(given)) as store, store.engine.connect() as connection:
        if action == "path":
            basis = given.basis or "commit"
            return path_between(connection, given.source, given.table, basis=basis, as_of=given.as_of)
        named = find(connection, given.table)
        column = named.column if given.column is None else parts_of(given.column)
        if column:
            return _of_column(connection, action, named, column, given)
        if named.snapshot is not None or given.basis is not None or given.branch is not None:
            return _of_snapshot(connection, action, named, given)
        ask = upstream_tables if action == "upstream" else downstream_tables
        return ask(
            connection, named.dataset, depth=_depth(given), job=given.job, as_of=given.as_of, at_most=given.limit
        )


def shown(answer: Lineage[Any], form: str) -> str:
    return _SHOWN[form](answer)


def _of_snapshot(connection: Connection, action: str, named: Named, given: Namespace) -> Lineage[Any]:
    if given.job is not None:
        raise ConfigurationError("--job is for questions about tables: leave the snapshot, --commit and --state out")
    common: dict[str, Any] = {"branch": given.branch, "depth": _depth(given), "as_of": given.as_of}
    if action == "downstream":
        basis = given.basis or "commit"
        return downstream_snapshots(
            connection, named.dataset, named.snapshot, basis=basis, at_most=given.limit, **common
        )
    if given.basis == "state":
        return upstream_state(connection, named.dataset, named.snapshot, **common)
    return upstream_snapshots(connection, named.dataset, named.snapshot, at_most=given.limit, **common)


def _of_column(
    connection: Connection, action: str, named: Named, column: tuple[str, ...], given: Namespace
) -> Lineage[Any]:
    common: dict[str, Any] = {"depth": _depth(given), "as_of": given.as_of, "at_most": given.limit}
    if action == "downstream":
        if named.snapshot is not None:
            raise ConfigurationError("what is made from a column is told of tables: leave the snapshot out")
        return downstream_columns(connection, named.dataset, column, **common)
    basis = given.basis or "commit"
    return upstream_columns(
        connection, named.dataset, column, snapshot=named.snapshot, basis=basis, branch=given.branch, **common
    )


def _depth(given: Namespace) -> int | None:
    depth: int | None = 1 if given.direct else given.depth
    return depth
