"""The page of a table: what it is, where its columns come from, and its neighbours."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from sqlalchemy import Connection

from headwater.lineage.questions.columns import ColumnEdge, adjacent_columns
from headwater.lineage.questions.datasets import Dataset
from headwater.lineage.questions.generations import branches, generations
from headwater.lineage.questions.history import format_type
from headwater.lineage.questions.known_columns import columns_of
from headwater.lineage.questions.lateness import LateHop, lateness
from headwater.lineage.questions.name_checks import resolve_table
from headwater.lineage.questions.table_snapshots import table_snapshots
from headwater.lineage.questions.tables import downstream_tables, upstream_tables
from headwater.lineage.store import Store
from headwater.web.json_form import json_text
from headwater.web.pictures import draw
from headwater.web.settings import QuestionLimits
from headwater.web.views.base import Given, Parameter, View, command_line, value_of

_SNAPSHOTS: Final = 8
_TABLE: Final = Parameter("name", "catalog.database.table, database.table, a path or a URI", is_required=True)


@dataclass
class TableColumn:
    """A column, with the columns one step up and one step down."""

    name: str
    type: str | None = None
    made_from: list[ColumnEdge] = field(default_factory=list)
    makes: list[ColumnEdge] = field(default_factory=list)


class TableView(View):
    """What is known of a table, at one look."""

    path = "table"
    title = "Table"
    summary = "A table: its neighbours, its columns with where they come from, its last snapshots, and how fresh it is."
    template = "table.html"
    parameters = (_TABLE,)

    def page(self, store: Store, given: Given, limits: QuestionLimits) -> Mapping[str, Any]:
        name = value_of(given, "name") or ""
        with store.engine.connect() as connection:
            about = resolve_table(connection, name)
            up = upstream_tables(connection, about.dataset, depth=1, at_most=limits.rows)
            down = downstream_tables(connection, about.dataset, depth=1, at_most=limits.rows)
            snapshots = table_snapshots(connection, about.dataset, at_most=_SNAPSHOTS)
            return {
                "table": about.dataset,
                "upstream": up,
                "downstream": down,
                "picture": draw((up, down), "g"),
                "columns": _columns(connection, about.dataset, limits),
                "snapshots": snapshots,
                "own": _own_hop(connection, about.dataset),
                "generations": generations(connection, about.dataset).rows,
                "branches": branches(connection, about.dataset).rows,
                "answers": (up, down, snapshots),
            }

    def json(self, store: Store, given: Given, limits: QuestionLimits) -> str:
        found = {**self.page(store, given, limits)}
        for name in ("picture", "answers"):
            del found[name]
        return json_text(found)

    def command(self, given: Given) -> str:
        return command_line("lineage", "upstream", value_of(given, "name") or "", "--direct")


def _columns(connection: Connection, dataset: Dataset, limits: QuestionLimits) -> list[TableColumn]:
    """Return the columns in their order; behind them those that only statements name."""
    about = resolve_table(connection, dataset)
    types = columns_of(connection, about).types or {}
    found = {name: TableColumn(name, format_type(kind)) for name, kind in types.items()}
    folded = {name.lower(): name for name in found}

    def column(path: Iterable[str] | None) -> TableColumn | None:
        if path is None:
            return None
        name = next(iter(path))
        return found.setdefault(folded.setdefault(name.lower(), name), TableColumn(name))

    for edge in adjacent_columns(connection, dataset, upward=True, at_most=limits.rows):
        if (one := column(edge.target.path)) is not None:
            one.made_from.append(edge)
    for edge in adjacent_columns(connection, dataset, upward=False, at_most=limits.rows):
        if (one := column(edge.source.path)) is not None:
            one.makes.append(edge)
    return list(found.values())


def _own_hop(connection: Connection, dataset: Dataset) -> LateHop | None:
    return next((hop for hop in lateness(connection, dataset, depth=1) if hop.depth == 0), None)


TABLE: Final = TableView()
