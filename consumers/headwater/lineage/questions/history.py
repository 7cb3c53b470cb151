"""The history of a table's schema, and what changed of it between two snapshots."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from typing import Any, Final

from sqlalchemy import Connection, select

from headwater.events.clock import micros_of
from headwater.lineage.questions.about import About, limits_of, table_meant
from headwater.lineage.questions.answers import Answer, Limit, Why
from headwater.lineage.questions.changes import in_words, type_text
from headwater.lineage.questions.completeness import complete_until
from headwater.lineage.questions.datasets import Dataset
from headwater.lineage.questions.gaps.missing import when
from headwater.lineage.rows import tables as t
from headwater.lineage.sql.among import among
from headwater.lineage.sql.tables import table_of

APPLIED: Final = "APPLIED"
_OF_COLUMNS: Final = frozenset(
    {
        *("AddColumn", "DropColumn", "RenameColumn", "RetypeColumn"),
        *("MoveColumn", "ChangeNullability", "OtherChange", ""),
    }
)


@dataclass(frozen=True)
class Modified:
    """Something was done to a table, or a view."""

    at: datetime | None
    kind: str
    """As the event is called: AlterTable, CreateTag …"""
    name: str
    changes: tuple[str, ...]
    """What was done, in words."""
    is_known: bool
    """Whether it is known to have happened: an IF EXISTS may have done nothing."""
    cause: str
    """A statement, or a write that changed the schema."""
    life: str | None
    branch: str | None
    schema_id: int | None
    produced: int | None
    """The snapshot or version that this made by itself."""
    detail: dict[str, Any]
    """The event, as far as it isn't in the other fields."""


class Did(str, Enum):
    """What happened to a column between two snapshots."""

    ADDED = "ADDED"
    DROPPED = "DROPPED"
    RETYPED = "RETYPED"
    NULLABILITY = "NULLABILITY"


@dataclass(frozen=True)
class ColumnChange:
    column: str
    did: Did
    before: str | None
    after: str | None


def history(
    connection: Connection,
    table: str | Dataset,
    *,
    since: datetime | None = None,
    until: datetime | None = None,
    now: datetime | None = None,
) -> Answer[Modified]:
    """All that was done to it, in the format's own order before time."""
    about = table_meant(connection, table)
    found = [
        each
        for each in _modifications(connection, about)
        if (since is None or each.time >= micros_of(since)) and (until is None or each.time <= micros_of(until))
    ]
    unknown = sum(each.effect != APPLIED for each in found)
    limits = limits_of(connection, table=about, now=now)
    if unknown:
        limits = (*limits, Limit(Why.UNKNOWN_EFFECT, about.label, f"{unknown} of them may have happened, or not"))
    return Answer(tuple(map(_modified, found)), complete_until(connection, now), limits)


def schema_changes(
    connection: Connection, table: str | Dataset, one: int, other: int, *, now: datetime | None = None
) -> Answer[ColumnChange]:
    """What changed of the columns from one snapshot to another. A column that was renamed was dropped and added."""
    about = table_meant(connection, table)
    told = _modifications(connection, about)
    sides = [_columns_at(connection, about, snapshot, told) for snapshot in (one, other)]
    limits = [
        Limit(Why.UNKNOWN_COLUMNS, f"{about.label}@{snapshot}", "no schema of it was told")
        for snapshot, columns in zip((one, other), sides, strict=True)
        if columns is None
    ]
    before, after = sides
    changes = () if before is None or after is None else tuple(_differences(before, after))
    limits += limits_of(connection, table=about, now=now)
    return Answer(changes, complete_until(connection, now), tuple(limits))


def _modifications(connection: Connection, about: About) -> list[Any]:
    """In the format's own order, as far as it has one, else in that of time."""
    row = table_of(t.MODIFICATION).c
    found = list(among(connection, select(table_of(t.MODIFICATION)), row.dataset, about.keys))
    by_time = sorted(found, key=lambda each: (each.time, bytes(each.producer), each.sequence))
    lines: dict[tuple[Any, Any], list[int]] = {}
    for place, each in enumerate(by_time):
        lines.setdefault((each.life, each.branch), []).append(place)
    for places in lines.values():
        for number in ("schema_id", "produced"):
            _ordered(by_time, [place for place in places if getattr(by_time[place], number) is not None], number)
    return by_time


def _ordered(found: list[Any], places: Sequence[int], number: str) -> None:
    """Puts those at these places in the order of their numbers. A number that comes twice says nothing of an order:
    Iceberg takes up an old schema's where a table comes back to it."""
    numbers = [getattr(found[place], number) for place in places]
    if len(set(numbers)) != len(numbers):
        return
    in_order = sorted((found[place] for place in places), key=lambda each: int(getattr(each, number)))
    for place, each in zip(places, in_order, strict=True):
        found[place] = each


def _modified(row: Any) -> Modified:
    detail = json.loads(row.detail) if row.detail else {}
    return Modified(
        at=when(row.time),
        kind=row.kind,
        name=".".join(part for part in (row.catalog, row.database_name, row.table_name) if part),
        changes=in_words(row.kind, detail),
        is_known=row.effect == APPLIED,
        cause=row.cause,
        life=row.life,
        branch=row.branch,
        schema_id=row.schema_id,
        produced=row.produced,
        detail=detail,
    )


def _columns_at(connection: Connection, about: About, snapshot: int, told: Sequence[Any]) -> dict[str, Any] | None:
    """The columns of a snapshot: by its own schema id, by the version that the change itself made, or by time."""
    row = table_of(t.WRITE).c
    wanted = select(row.life, row.schema_id, row.first).where(row.snapshot == snapshot)
    written = sorted(among(connection, wanted, row.dataset, about.keys), key=lambda each: each.first)
    applied = [each for each in told if each.effect == APPLIED]
    for each in reversed(written):
        mine = [one for one in applied if one.life in {None, each.life} or each.life is None]
        of_schema = [one for one in mine if one.schema_id is not None and one.schema_id == each.schema_id]
        chosen = of_schema or _before(mine, snapshot, each.first)
        if (columns := _last_columns(chosen)) is not None:
            return columns
    if not written:
        return _last_columns([one for one in applied if one.produced is not None and one.produced == snapshot])
    return None


def _before(told: Sequence[Any], snapshot: int, time: int) -> list[Any]:
    if any(each.produced is not None for each in told):
        return [each for each in told if each.produced is not None and each.produced <= snapshot]
    return [each for each in told if each.time <= time]


def _last_columns(told: Sequence[Any]) -> dict[str, Any] | None:
    for each in reversed(told):
        detail = json.loads(each.detail or "{}")
        table = detail.get("new_table") or (detail.get("table") if each.kind == "CreateTable" else None)
        if table is not None:
            return {column["name"]: column for column in table.get("columns", [])}
        if any(change.get("change", "") in _OF_COLUMNS for change in detail.get("changes", ())):
            return None  # what came of it wasn't told, and what was before it holds no more
    return None


def _differences(before: dict[str, Any], after: dict[str, Any]) -> Iterator[ColumnChange]:
    for name, column in before.items():
        if name not in after:
            yield ColumnChange(name, Did.DROPPED, type_text(column["type"]), None)
            continue
        was, became = type_text(column["type"]), type_text(after[name]["type"])
        if was != became:
            yield ColumnChange(name, Did.RETYPED, was, became)
        if column.get("nullable", True) != after[name].get("nullable", True):
            words = [_null(each.get("nullable", True)) for each in (column, after[name])]
            yield ColumnChange(name, Did.NULLABILITY, *words)
    for name, column in after.items():
        if name not in before:
            yield ColumnChange(name, Did.ADDED, None, type_text(column["type"]))


def _null(nullable: bool) -> str:
    return "NULL" if nullable else "NOT NULL"
