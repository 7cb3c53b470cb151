"""Upserts that merge rows into tables as `rows.model.combine_rows` does in memory.

Every transaction writes rows in the same order, by kind and then by id. So writers can wait for each other, but never
deadlock.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import Any, Final

from sqlalchemy import Connection, and_, case, func, literal_column, not_, or_
from sqlalchemy.dialects import mysql, postgresql, sqlite
from sqlalchemy.sql.dml import Insert
from sqlalchemy.sql.elements import ColumnElement

from headwater.lineage.rows import KINDS, ColumnGroup, Precedence, Row, RowKind
from headwater.lineage.rows.memory import merge_by_key
from headwater.lineage.sql.row_codec import row_parameters
from headwater.lineage.sql.tables import primary_key_of, stamp_name, table_of

MYSQL: Final = frozenset({"mysql", "mariadb"})
ORDER: Final = {kind.name: number for number, kind in enumerate(KINDS)}
"""The order in which every transaction writes the kinds."""


def merge_into(connection: Connection, rows: Iterable[Row]) -> int:
    """Merge rows with one statement for each kind. Return how many keys they have. This is the reference for the faster
    ways in `lineage.bulk`."""
    by_kind: dict[str, list[dict[str, Any]]] = {}
    kinds: dict[str, RowKind] = {}
    for row in merge_by_key(rows).values():
        by_kind.setdefault(row.kind.name, []).append(row_parameters(row))
        kinds[row.kind.name] = row.kind
    for name in sorted(by_kind, key=ORDER.__getitem__):
        parameters = sorted(by_kind[name], key=_id)
        connection.execute(upsert(kinds[name], connection.dialect.name), parameters)
    return sum(map(len, by_kind.values()))


def _id(values: dict[str, Any]) -> bytes:
    return bytes(values["id"])


@cache
def upsert(kind: RowKind, dialect: str) -> Insert:
    """Return the statement that inserts a row, or merges it with the existing one."""
    table = table_of(kind)
    if dialect in MYSQL:
        return _merging_mysql(kind, mysql.insert(table))
    if dialect == "sqlite":
        return _merging(kind, sqlite.insert(table), func.min, func.max)
    return merging_postgres(kind, postgresql.insert(table))


def merging_postgres(kind: RowKind, insert: postgresql.Insert) -> Insert:
    """Make an upsert of an INSERT whose rows come from a query."""
    return _merging(kind, insert, func.least, func.greatest)


def _merging_mysql(kind: RowKind, insert: mysql.Insert) -> Insert:
    """MySQL itself skips rows whose values don't change."""
    table = table_of(kind)
    changes = _merged(kind, table.c, insert.inserted, func.least, func.greatest)
    return insert.on_duplicate_key_update(changes or [("id", table.c.id)])


def _merging(
    kind: RowKind, insert: postgresql.Insert | sqlite.Insert, least: Callable[..., Any], greatest: Callable[..., Any]
) -> Insert:
    """Update a row only if something changes; repeated rows cost half then."""
    held, new = table_of(kind).c, insert.excluded
    changes = _merged(kind, held, new, least, greatest)
    if not changes:
        return insert.on_conflict_do_nothing(index_elements=primary_key_of(kind))
    return insert.on_conflict_do_update(
        index_elements=primary_key_of(kind), set_=dict(changes), where=or_(*_changes(kind, held, new))
    )


def _merged(
    kind: RowKind, held: Any, new: Any, least: Callable[..., Any], greatest: Callable[..., Any]
) -> list[tuple[str, ColumnElement[Any]]]:
    """Return the update of each column. The columns of a group come before its stamp, because MySQL assigns one after
    the other and later expressions see earlier results."""
    changes: list[tuple[str, ColumnElement[Any]]] = [
        (name, (least if name == "first" else greatest)(held[name], new[name])) for name in kind.time_columns
    ]
    for name in _changing_maxima(kind):
        changes += [(name, func.coalesce(greatest(held[name], new[name]), held[name], new[name]))]
    for group in kind.groups:
        stamp = stamp_name(group.name)
        wins = _wins(group, held[stamp], new[stamp])
        names: Sequence[str] = [*(field.name for field in group.columns), stamp]
        changes += [(name, case((wins, new[name]), else_=held[name])) for name in names]
    if kind.has_bits:
        changes.append(("bits", held.bits.op("|")(new.bits)))
    return changes


def _changing_maxima(kind: RowKind) -> list[str]:
    return [] if kind.is_immutable else [field.name for field in kind.maxima]


def _changes(kind: RowKind, held: Any, new: Any) -> list[ColumnElement[bool]]:
    """Return the conditions under which a row changes."""
    changes: list[ColumnElement[bool]] = [
        new[name] < held[name] if name == "first" else new[name] > held[name] for name in kind.time_columns
    ]
    for name in _changing_maxima(kind):
        changes += [new[name] > held[name], and_(held[name].is_(None), new[name].is_not(None))]
    stamps = [(group, stamp_name(group.name)) for group in kind.groups]
    changes += [_wins(group, held[stamp], new[stamp]) for group, stamp in stamps]
    if kind.has_bits:
        changes.append(held.bits.op("|")(new.bits) != held.bits)
    return changes


def _wins(group: ColumnGroup, held: ColumnElement[Any], new: ColumnElement[Any]) -> ColumnElement[bool]:
    """Return whether the new group replaces the stored one. It has no bound parameters: MySQL's client combines rows
    into one statement and knows only the rows' parameters."""
    if group.precedence is Precedence.NEWEST:
        return new > held
    return and_(_is_set(new), or_(not_(_is_set(held)), new < held))


def _is_set(stamp: ColumnElement[Any]) -> ColumnElement[bool]:
    return func.length(stamp) > literal_column("0")
