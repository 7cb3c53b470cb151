"""Merging rows into tables, as `rows.kinds.merged` does in memory.

Rows go in by kind and, within it, by key, in every transaction the same way round: writers that meet wait for each
other, and never in a circle.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import Any, Final

from sqlalchemy import Connection, and_, case, func, literal_column, not_, or_
from sqlalchemy.dialects import mysql, postgresql, sqlite
from sqlalchemy.sql.dml import Insert
from sqlalchemy.sql.elements import ColumnElement

from headwater.lineage.law.state import collapsed
from headwater.lineage.rows import KINDS, Group, Keep, Kind, Row
from headwater.lineage.sql.stored import parameters_of
from headwater.lineage.sql.tables import key_of, stamp_name, table_of

MYSQL: Final = frozenset({"mysql", "mariadb"})
ORDER: Final = {kind.name: number for number, kind in enumerate(KINDS)}
"""The kinds in the order in which every transaction writes them."""


def merge_into(connection: Connection, rows: Iterable[Row]) -> int:
    """How many rows, of different keys, were merged. For a transaction of the caller's."""
    by_kind: dict[str, list[dict[str, Any]]] = {}
    kinds: dict[str, Kind] = {}
    for row in collapsed(rows).values():
        by_kind.setdefault(row.kind.name, []).append(parameters_of(row))
        kinds[row.kind.name] = row.kind
    for name in sorted(by_kind, key=ORDER.__getitem__):
        parameters = sorted(by_kind[name], key=_id)
        connection.execute(upsert(kinds[name], connection.dialect.name), parameters)
    return sum(map(len, by_kind.values()))


def _id(values: dict[str, Any]) -> bytes:
    return bytes(values["id"])


@cache
def upsert(kind: Kind, dialect: str) -> Insert:
    """Insert, or merge with the row that is there."""
    table = table_of(kind)
    if dialect in MYSQL:
        return _merging_mysql(kind, mysql.insert(table))
    if dialect == "sqlite":
        return _merging(kind, sqlite.insert(table), func.min, func.max)
    return merging_postgres(kind, postgresql.insert(table))


def merging_postgres(kind: Kind, insert: postgresql.Insert) -> Insert:
    """The same of an insert whose rows come from elsewhere."""
    return _merging(kind, insert, func.least, func.greatest)


def _merging_mysql(kind: Kind, insert: mysql.Insert) -> Insert:
    """MySQL leaves a row alone that its values don't change."""
    table = table_of(kind)
    changes = _merged(kind, table.c, insert.inserted, func.least, func.greatest)
    return insert.on_duplicate_key_update(changes or [("id", table.c.id)])


def _merging(
    kind: Kind, insert: postgresql.Insert | sqlite.Insert, least: Callable[..., Any], greatest: Callable[..., Any]
) -> Insert:
    """A row that tells nothing new isn't written again: what comes twice costs half."""
    held, new = table_of(kind).c, insert.excluded
    changes = _merged(kind, held, new, least, greatest)
    if not changes:
        return insert.on_conflict_do_nothing(index_elements=key_of(kind))
    return insert.on_conflict_do_update(
        index_elements=key_of(kind), set_=dict(changes), where=or_(*_news(kind, held, new))
    )


def _merged(
    kind: Kind, held: Any, new: Any, least: Callable[..., Any], greatest: Callable[..., Any]
) -> list[tuple[str, ColumnElement[Any]]]:
    """Each column that can change, and what becomes of it. The columns of a group come before its stamp: MySQL gives
    each its value one after the other, and the later ones see what the earlier have become."""
    changes: list[tuple[str, ColumnElement[Any]]] = []
    if kind.mortal:
        changes += [("first", least(held.first, new.first))]
        changes += [(name, greatest(held[name], new[name])) for name in ("last", "deleted")]
    for group in kind.groups:
        stamp = stamp_name(group.name)
        wins = _wins(group, held[stamp], new[stamp])
        names: Sequence[str] = [*(field.name for field in group.columns), stamp]
        changes += [(name, case((wins, new[name]), else_=held[name])) for name in names]
    if kind.bits:
        changes.append(("bits", held.bits.op("|")(new.bits)))
    return changes


def _news(kind: Kind, held: Any, new: Any) -> list[ColumnElement[bool]]:
    """What a row that is there can be told: each alone changes it."""
    news: list[ColumnElement[bool]] = []
    if kind.mortal:
        news += [new.first < held.first, new.last > held.last, new.deleted > held.deleted]
    stamps = [(group, stamp_name(group.name)) for group in kind.groups]
    news += [_wins(group, held[stamp], new[stamp]) for group, stamp in stamps]
    if kind.bits:
        news.append(held.bits.op("|")(new.bits) != held.bits)
    return news


def _wins(group: Group, held: ColumnElement[Any], new: ColumnElement[Any]) -> ColumnElement[bool]:
    """Without a parameter: MySQL's client puts several rows into one statement, and knows only those of the rows."""
    if group.keep is Keep.NEWEST:
        return new > held
    return and_(_is_told(new), or_(not_(_is_told(held)), new < held))


def _is_told(stamp: ColumnElement[Any]) -> ColumnElement[bool]:
    return func.length(stamp) > literal_column("0")
