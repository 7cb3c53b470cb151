"""The history of a table, and how its schema changed between two snapshots.

Describes changes of a table in words, from the details stored in `modifications`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from typing import Any, Final

from sqlalchemy import Connection, select

from headwater.lineage.questions.answers import Answer, AnswerLimit, LimitReason, micros_of_argument
from headwater.lineage.questions.completeness import complete_until
from headwater.lineage.questions.datasets import Dataset
from headwater.lineage.questions.gaps.model import time_of
from headwater.lineage.questions.name_checks import TableSubject, check_snapshot, resolve_table, subject_limits
from headwater.lineage.rows import tables as t
from headwater.lineage.rows.model import NEVER, NOT_YET
from headwater.lineage.sql.accesses import access_of
from headwater.lineage.sql.key_lookup import select_by_keys
from headwater.lineage.sql.tables import table_of


def describe_changes(kind: str, detail: dict[str, Any]) -> tuple[str, ...]:
    """Return a short sentence for each change."""
    return tuple(_words(kind, detail))


def format_type(type_json: str) -> str:
    """Return a type as people write it, from Spark's type JSON."""
    try:
        return _type(json.loads(type_json))
    except (ValueError, KeyError, TypeError, AttributeError):
        return type_json


def _words(kind: str, detail: dict[str, Any]) -> Iterator[str]:
    if kind in {"CreateTable", "CreateView"}:
        definition = detail.get("table") or detail.get("view") or {}
        columns = ", ".join(
            f"{column['name']} {format_type(column['type'])}" for column in definition.get("columns", [])
        )
        yield f"{'replaced' if detail.get('replaced') else 'made'} with ({columns})"
    elif kind == "AlterTable":
        for change in detail.get("changes", []):
            yield _CHANGES.get(change.get("change", ""), _other)(change)
    elif kind == "AlterView" and detail.get("renamed_to"):
        yield f"renamed to {_name(detail['renamed_to'])}"
    elif kind in {"CreateTag", "DropTag"}:
        yield f"tag {detail.get('tag')}" + _at(detail)
    elif kind in {"CreateBranch", "DropBranch", "BranchMerged", "MainReplaced"}:
        yield f"branch {detail.get('branch')}" + _at(detail)
    elif kind == "CorrectionSwitched":
        wrong = f"{_name(detail.get('wrong_table', {}))}@{detail.get('wrong_snapshot')}"
        moved = f"from {detail.get('previous_snapshot')} to {detail.get('snapshot')}"
        yield f"corrected by {detail.get('correction')}, since {wrong} was wrong: {moved}"


def _at(detail: dict[str, Any]) -> str:
    return "" if detail.get("snapshot") is None else f" at {detail['snapshot']}"


def _path(change: dict[str, Any]) -> str:
    return ".".join(change.get("path", ()))


def _name(table: dict[str, Any]) -> str:
    return ".".join(part for part in (table.get("catalog"), table.get("database"), table.get("table")) if part)


def _other(change: dict[str, Any]) -> str:
    rest = {name: value for name, value in change.items() if name != "change"}
    words = "".join(f" {letter.lower()}" if letter.isupper() else letter for letter in change.get("change", "changed"))
    return f"{words.strip()} {json.dumps(rest, ensure_ascii=False)}" if rest else words.strip()


_CHANGES: Final[dict[str, Callable[[dict[str, Any]], str]]] = {
    "AddColumn": lambda c: f"added column {_path(c)} {format_type(c['type'])}",
    "DropColumn": lambda c: f"dropped column {_path(c)}",
    "RenameColumn": lambda c: f"renamed column {_path(c)} to {c['new_name']}",
    "RetypeColumn": lambda c: f"retyped column {_path(c)} to {format_type(c['type'])}",
    "RecommentColumn": lambda c: f"commented column {_path(c)}",
    "MoveColumn": lambda c: f"moved column {_path(c)}",
    "ChangeNullability": lambda c: f"column {_path(c)} {'may be' if c.get('nullable') else 'is never'} null",
    "ChangeDefault": lambda c: f"default of column {_path(c)} is {c.get('default')}",
    "SetProperty": lambda c: f"set {c['key']} = {c['value']}",
    "RemoveProperty": lambda c: f"removed {c['key']}",
    "SetComment": lambda c: f"commented {c.get('comment')!r}",
    "SetLocation": lambda c: f"moved to {c['location']}",
    "RenameTable": lambda c: f"renamed to {_name(c['table'])}",
    "OtherChange": lambda c: c.get("what") or "changed",
}


def _type(type_json: Any) -> str:
    if isinstance(type_json, str):
        return type_json
    kind = type_json["type"]
    if kind == "array":
        return f"array<{_type(type_json['elementType'])}>"
    if kind == "map":
        return f"map<{_type(type_json['keyType'])}, {_type(type_json['valueType'])}>"
    if kind == "struct":
        fields = ", ".join(f"{field['name']}: {_type(field['type'])}" for field in type_json["fields"])
        return f"struct<{fields}>"
    return str(kind if isinstance(kind, str) else type_json)


APPLIED: Final = "APPLIED"
_OF_COLUMNS: Final = frozenset(
    {
        *("AddColumn", "DropColumn", "RenameColumn", "RetypeColumn"),
        *("MoveColumn", "ChangeNullability", "OtherChange", ""),
    }
)


@dataclass(frozen=True)
class HistoryEntry:
    """A change of a table or a view."""

    at: datetime | None
    kind: str
    """The name of the event: AlterTable, CreateTag …."""
    name: str
    changes: tuple[str, ...]
    """What was done, in words."""
    is_known: bool
    """Whether it is known to have happened: a statement with IF EXISTS may have done nothing."""
    cause: str
    """A statement, or a write that changed the schema."""
    generation: str | None
    branch: str | None
    schema_id: int | None
    produced: int | None
    """The snapshot or version that the change itself created."""
    detail: dict[str, Any]
    """The details of the event that have no field of their own."""


class ColumnChangeKind(str, Enum):
    """What happened to a column between two snapshots."""

    ADDED = "ADDED"
    DROPPED = "DROPPED"
    RETYPED = "RETYPED"
    NULLABILITY = "NULLABILITY"


@dataclass(frozen=True)
class ColumnChange:
    column: str
    did: ColumnChangeKind
    before: str | None
    after: str | None


def history(
    connection: Connection,
    table: str | Dataset,
    *,
    since: datetime | None = None,
    until: datetime | None = None,
    now: datetime | None = None,
) -> Answer[HistoryEntry]:
    """Return all changes of a table, in the order of the format where it has one, else by time."""
    about = resolve_table(connection, table)
    begin = NEVER if since is None else micros_of_argument(since, "since")
    end = NOT_YET if until is None else micros_of_argument(until, "until")
    found = [change for change in load_modifications(connection, about) if begin <= change.time <= end]
    unknown = sum(change.effect != APPLIED for change in found)
    limits = subject_limits(connection, table=about, now=now)
    if unknown:
        limits = (
            *limits,
            AnswerLimit(LimitReason.UNKNOWN_EFFECT, about.label, f"{unknown} of them may have happened, or not"),
        )
    return Answer(tuple(map(_modification_entry, found)), complete_until(connection, now), limits)


def schema_changes(
    connection: Connection, table: str | Dataset, one: int, other: int, *, now: datetime | None = None
) -> Answer[ColumnChange]:
    """Return how the columns changed from one snapshot to another. A renamed column counts as dropped and added."""
    about = resolve_table(connection, table)
    changes_so_far = load_modifications(connection, about)
    sides = [_columns_at(connection, about, snapshot, changes_so_far) for snapshot in (one, other)]
    for snapshot, columns in zip((one, other), sides, strict=True):
        if columns is None:
            check_snapshot(connection, about, snapshot)
    limits = [
        AnswerLimit(LimitReason.UNKNOWN_COLUMNS, f"{about.label}@{snapshot}", "its schema is unknown")
        for snapshot, columns in zip((one, other), sides, strict=True)
        if columns is None
    ]
    before, after = sides
    changes = () if before is None or after is None else tuple(_differences(before, after))
    limits += subject_limits(connection, table=about, now=now)
    return Answer(changes, complete_until(connection, now), tuple(limits))


def load_modifications(connection: Connection, about: TableSubject) -> list[Any]:
    """Load changes in the order of the format where it has one, else by time."""
    row = table_of(t.MODIFICATION).c
    of_keys = select_by_keys(connection, select(table_of(t.MODIFICATION)), row.dataset, about.keys)
    found = [change for change in of_keys if about.holds_at(bytes(change.dataset), change.time)]
    by_time = sorted(found, key=lambda change: (change.time, bytes(change.producer), change.sequence))
    lines: dict[tuple[Any, Any], list[int]] = {}
    for place, change in enumerate(by_time):
        lines.setdefault((change.generation, change.branch), []).append(place)
    for places in lines.values():
        for number in ("schema_id", "produced"):
            _sort_by_number(by_time, [place for place in places if getattr(by_time[place], number) is not None], number)
    return by_time


def _sort_by_number(found: list[Any], places: Sequence[int], number: str) -> None:
    """Sort the changes at these places by their numbers. Repeated numbers tell no order: Iceberg reuses the id of an
    old schema when a table returns to it."""
    numbers = [getattr(found[place], number) for place in places]
    if len(set(numbers)) != len(numbers):
        return
    in_order = sorted((found[place] for place in places), key=lambda change: int(getattr(change, number)))
    for place, change in zip(places, in_order, strict=True):
        found[place] = change


def _modification_entry(row: Any) -> HistoryEntry:
    detail = json.loads(row.detail) if row.detail else {}
    return HistoryEntry(
        at=time_of(row.time),
        kind=row.kind,
        name=".".join(part for part in (row.catalog, row.database_name, row.table_name) if part),
        changes=describe_changes(row.kind, detail),
        is_known=row.effect == APPLIED,
        cause=row.cause,
        generation=row.generation,
        branch=row.branch,
        schema_id=row.schema_id,
        produced=row.produced,
        detail=detail,
    )


def _columns_at(
    connection: Connection, about: TableSubject, snapshot: int, changes_so_far: Sequence[Any]
) -> dict[str, Any] | None:
    """Return the columns of a snapshot: by its schema id, by the version that the change created, or by time."""
    row = access_of(t.WRITE).c
    query = select(row.generation, row.schema_id, row.first).where(row.snapshot == snapshot)
    written = sorted(select_by_keys(connection, query, row.dataset, about.keys), key=lambda row: row.first)
    applied = [change for change in changes_so_far if change.effect == APPLIED]
    for change in reversed(written):
        mine = [one for one in applied if one.generation in {None, change.generation} or change.generation is None]
        of_schema = [one for one in mine if one.schema_id is not None and one.schema_id == change.schema_id]
        chosen = of_schema or _before(mine, snapshot, change.first)
        if (columns := _last_columns(chosen)) is not None:
            return columns
    if not written:
        return _last_columns([one for one in applied if one.produced is not None and one.produced == snapshot])
    return None


def _before(changes_so_far: Sequence[Any], snapshot: int, time: int) -> list[Any]:
    if any(change.produced is not None for change in changes_so_far):
        return [change for change in changes_so_far if change.produced is not None and change.produced <= snapshot]
    return [change for change in changes_so_far if change.time <= time]


def _last_columns(changes_so_far: Sequence[Any]) -> dict[str, Any] | None:
    for modification in reversed(changes_so_far):
        detail = json.loads(modification.detail or "{}")
        table = detail.get("new_table") or (detail.get("table") if modification.kind == "CreateTable" else None)
        if table is not None:
            return {column["name"]: column for column in table.get("columns", [])}
        if any(change.get("change", "") in _OF_COLUMNS for change in detail.get("changes", ())):
            return None  # what came of it wasn't reported, and what was before it holds no more
    return None


def _differences(before: dict[str, Any], after: dict[str, Any]) -> Iterator[ColumnChange]:
    for name, column in before.items():
        if name not in after:
            yield ColumnChange(name, ColumnChangeKind.DROPPED, format_type(column["type"]), None)
            continue
        was, became = format_type(column["type"]), format_type(after[name]["type"])
        if was != became:
            yield ColumnChange(name, ColumnChangeKind.RETYPED, was, became)
        if column.get("nullable", True) != after[name].get("nullable", True):
            words = [_null(field.get("nullable", True)) for field in (column, after[name])]
            yield ColumnChange(name, ColumnChangeKind.NULLABILITY, *words)
    for name, column in after.items():
        if name not in before:
            yield ColumnChange(name, ColumnChangeKind.ADDED, None, format_type(column["type"]))


def _null(nullable: bool) -> str:
    return "NULL" if nullable else "NOT NULL"
