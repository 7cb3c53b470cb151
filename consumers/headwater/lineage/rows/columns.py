"""Rows as tuples of column values, in the order in which every table has its columns."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from operator import itemgetter
from typing import Any, Final, TypeAlias

from headwater.lineage.rows.model import GroupValues, Row, RowKind, RowTimes
from headwater.lineage.rows.values import ColumnType

RowTuple: TypeAlias = "tuple[Any, ...]"
NO_STAMP: Final = b""
"""The stamp of a column group that no event has set. It is less than any other stamp."""


@cache
def column_types(kind: RowKind) -> tuple[ColumnType, ...]:
    """Return the types of a table's columns, in their order. Ids and stamps are BINARY too, times and bits LONG."""
    return tuple(_types(kind))


def _types(kind: RowKind) -> Iterator[ColumnType]:
    yield ColumnType.BINARY
    yield from (column.type for column in (*kind.key, *kind.maxima))
    yield from (ColumnType.LONG for _ in kind.time_columns)
    for group in kind.groups:
        yield ColumnType.BINARY
        yield from (column.type for column in group.columns)
    if kind.has_bits:
        yield ColumnType.LONG


@cache
def key_picker(kind: RowKind) -> Callable[[RowTuple], Any]:
    """Return a function that picks the primary key from a column tuple."""
    places = {"id": 0, **{column.name: place for place, column in enumerate(kind.key, 1)}}
    return itemgetter(*(places[name] for name in kind.primary_key))


@cache
def packer(kind: RowKind) -> Callable[[Row], RowTuple]:
    """Return a function that makes the column tuple of a row."""
    times = len(kind.time_columns)
    if not kind.groups and not kind.has_bits:
        return lambda row: (row.id, *row.key, *row.maxima, *row.times[:times])
    blanks = [_blank(len(group.columns)) for group in kind.groups]

    def pack(row: Row) -> RowTuple:
        values = (row.id, *row.key, *row.maxima, *row.times[:times])
        for group_values, blank in zip(row.groups or kind.empty_groups, blanks, strict=True):
            values += blank if group_values is None else (group_values.stamp, *group_values.values)
        return (*values, row.bits) if kind.has_bits else values

    return pack


def _blank(columns: int) -> RowTuple:
    return (NO_STAMP, *(None,) * columns)


def row_of(kind: RowKind, values: Sequence[Any]) -> Row:
    """Return the row of a column tuple."""
    at = 1 + len(kind.key)
    key, maxima = tuple(values[1:at]), tuple(values[at : at + len(kind.maxima)])
    at += len(kind.maxima)
    times = RowTimes(*values[at : at + len(kind.time_columns)])
    at += len(kind.time_columns)
    groups: list[GroupValues | None] = []
    for group in kind.groups:
        end = at + 1 + len(group.columns)
        stamp = values[at]
        groups.append(None if stamp == NO_STAMP else GroupValues(stamp, tuple(values[at + 1 : end])))
        at = end
    return Row(kind, values[0], key, maxima, times, tuple(groups), values[at] if kind.has_bits else 0)
