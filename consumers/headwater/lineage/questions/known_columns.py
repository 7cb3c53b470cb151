"""Which columns a table has or had, by its definitions and by the statements that read and write it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection, select

from headwater.events.clock import moment_of
from headwater.lineage.mapping.commits import SOURCE
from headwater.lineage.questions.history import APPLIED, load_modifications
from headwater.lineage.questions.name_checks import TableSubject, unknown_name
from headwater.lineage.questions.names import UnknownNameError
from headwater.lineage.questions.traversal.column_links import ColumnPath
from headwater.lineage.rows import tables as t
from headwater.lineage.sql.key_lookup import select_by_keys
from headwater.lineage.sql.tables import table_of


@dataclass(frozen=True)
class FormerColumn:
    """A column that a table had."""

    name: str
    at: int
    """When the change was reported that it isn't there after."""
    new_name: str | None = None

    def __str__(self) -> str:
        what = f"is called {self.new_name} since" if self.new_name else "is no column of the table any more since"
        return f"{self.name} {what} {moment_of(self.at):%Y-%m-%d %H:%M:%SZ}: this is what is known of it as it was"


@dataclass
class TableColumns:
    """The columns of a table as its definitions and changes tell them, the oldest first."""

    types: dict[str, str] | None = None
    """The columns now, with their types; None if no definition is known."""
    former: dict[str, FormerColumn] = field(default_factory=dict[str, FormerColumn])
    """By the name in lower case."""

    def define(self, columns: Sequence[Mapping[str, Any]], at: int) -> None:
        before, self.types = self.types or {}, {column["name"]: column["type"] for column in columns}
        for name in before.keys() - self.types.keys():
            self.former.setdefault(name.lower(), FormerColumn(name, at))
        for name in self.types:
            self.former.pop(name.lower(), None)

    def change(self, change: Mapping[str, Any], at: int) -> None:
        name, kind = ".".join(change.get("path") or ()), change.get("change")
        if kind == "AddColumn":
            self.former.pop(name.lower(), None)
        elif kind in {"DropColumn", "RenameColumn"} and len(change["path"]) == 1:
            self.former[name.lower()] = FormerColumn(name, at, change.get("new_name"))


def columns_of(connection: Connection, about: TableSubject) -> TableColumns:
    """Return the columns of a table by all changes of it that are known to have happened."""
    found = TableColumns()
    for row in load_modifications(connection, about):
        if row.effect != APPLIED or not row.detail:
            continue
        detail = json.loads(row.detail)
        if found.types is None and (before := detail.get("table")) and row.kind == "AlterTable":
            found.define(before.get("columns", ()), row.time)
        for change in detail.get("changes", ()):
            found.change(change, row.time)
        is_made = row.kind in {"CreateTable", "CreateView"}
        after = (
            (detail.get("table") or detail.get("view"))
            if is_made
            else detail.get("new_table") or detail.get("new_view")
        )
        if after and after.get("columns"):
            found.define(after["columns"], row.time)
    return found


def check_column(connection: Connection, about: TableSubject, path: ColumnPath, *, has_lineage: bool) -> str | None:
    """Return a note about a column that the table had and has no more. Raise an error about one that was never seen.

    `has_lineage` says that a statement names the column. A table of which no column is known may have any.
    """
    columns = columns_of(connection, about)
    name = path[0].lower()
    if name in columns.former:
        return str(columns.former[name])
    types = columns.types or {}
    found = next((candidate for candidate in types if candidate.lower() == name), None)
    if found is not None:
        _check_field(about, path, types[found], has_lineage=has_lineage)
        return None
    if has_lineage:
        return None
    used = set(_columns_used(connection, about))
    if any(name_used.lower() == name for name_used in used):
        return None
    known = {*types, *used, *(column.name for column in columns.former.values())}
    if not known:
        return "no column of it is known, so whether it has this one isn't known either"
    raise unknown_name("column", ".".join(path), known, f"it knows {_list_text(sorted(known))}", of=about.label)


def _list_text(names: Sequence[str]) -> str:
    return ", ".join(names[:10]) + (f" and {len(names) - 10} more" if len(names) > 10 else "")


def _check_field(about: TableSubject, path: ColumnPath, type_json: str, *, has_lineage: bool) -> None:
    """Follow a path into structs. What is behind an array or a map has no name to check."""
    kind: Any = json.loads(type_json)
    for part in () if has_lineage else path[1:]:
        if not isinstance(kind, dict) or kind.get("type") != "struct":
            return
        fields = {field["name"]: field["type"] for field in kind["fields"]}
        kind = next((inner for name, inner in fields.items() if name.lower() == part.lower()), None)
        if kind is None:
            raise _unknown_field(about, path, part, fields)


def _unknown_field(about: TableSubject, path: ColumnPath, part: str, fields: Mapping[str, Any]) -> UnknownNameError:
    of = ".".join((about.label, *path[: path.index(part)]))
    return unknown_name("field", part, fields, f"it knows {_list_text(list(fields))}", of=of)


def _columns_used(connection: Connection, about: TableSubject) -> Iterator[str]:
    """Yield the columns that statements read or wrote: of a table that was made before headwater nothing else is
    known."""
    row = table_of(t.JOB_LINEAGE_TABLE).c
    sides = select(row.fingerprint, row.side, row.position, row.detail)
    places: dict[tuple[bytes, bool, int], None] = {}
    for side in select_by_keys(connection, sides, row.dataset, about.keys):
        places[bytes(side.fingerprint), side.side == SOURCE, side.position] = None
        yield from (column["name"] for column in json.loads(side.detail or "{}").get("columns", ()))
    link = table_of(t.JOB_LINEAGE_COLUMN).c
    links = select(link.fingerprint, link.output, link.input, link.source, link.target)
    for edge in select_by_keys(connection, links, link.fingerprint, {fingerprint for fingerprint, *_ in places}):
        fingerprint = bytes(edge.fingerprint)
        if (fingerprint, True, edge.input) in places and edge.source:
            yield json.loads(edge.source)[0]
        if (fingerprint, False, edge.output) in places and edge.target:
            yield json.loads(edge.target)[0]
