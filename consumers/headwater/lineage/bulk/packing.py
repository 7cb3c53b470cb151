"""Rows as tuples in the order of a table's columns, the form in which drivers take thousands at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache
from operator import itemgetter
from typing import Any, NamedTuple, Protocol, TypeAlias

from headwater.lineage.rows import Row, RowKind, merge_by_key
from headwater.lineage.sql.tables import NO_STAMP, table_of
from headwater.lineage.sql.upsert import ORDER

RowTuple: TypeAlias = "tuple[Any, ...]"
_ID = itemgetter(0)


class OrderedRows(Protocol):
    """Rows of one kind, all of different keys."""

    @property
    def kind(self) -> RowKind: ...

    def ordered(self) -> Sequence[RowTuple]:
        """Return the rows as tuples, sorted by id."""
        ...


class KindRows(NamedTuple):
    """Rows of one kind, all of different keys."""

    kind: RowKind
    rows: list[Row]

    def packed(self) -> list[RowTuple]:
        """Return the rows as tuples."""
        pack = packer(self.kind)
        return [pack(row) for row in self.rows]

    def ordered(self) -> list[RowTuple]:
        """Return the rows as tuples, sorted by id. Every transaction writes in this order."""
        return sorted(self.packed(), key=_ID)


def group_by_kind(rows: Iterable[Row]) -> list[KindRows]:
    """Combine the rows of each key, and group them by kind in the order in which every transaction writes them."""
    found: dict[str, KindRows] = {}
    for row in merge_by_key(rows).values():
        name = row.kind.name
        pile = found.get(name)
        if pile is None:
            pile = found[name] = KindRows(row.kind, [])
        pile.rows.append(row)
    return sorted(found.values(), key=lambda pile: ORDER[pile.kind.name])


def column_names(kind: RowKind) -> tuple[str, ...]:
    """The columns in their order."""
    return tuple(column.name for column in table_of(kind).c)


@cache
def packer(kind: RowKind) -> Callable[[Row], RowTuple]:
    """Return a function that makes the column tuple of a row: `sql.row_codec.row_parameters` without names."""
    if len(kind.groups) == 1 and not kind.has_bits:
        return _with_a_group(kind)
    blanks = [_blank(len(group.columns)) for group in kind.groups]

    def pack(row: Row) -> RowTuple:
        values = (row.id, *row.key, *row.fixed)
        if kind.has_times:
            values += row.times
        for group_values, blank in zip(row.groups or kind.empty_groups, blanks, strict=True):
            values += blank if group_values is None else (group_values.stamp, *group_values.values)
        return (*values, row.bits) if kind.has_bits else values

    return pack


def _with_a_group(kind: RowKind) -> Callable[[Row], RowTuple]:
    """A faster variant for commits, reads and writes, which nearly all rows are."""
    empty_group = _blank(len(kind.groups[0].columns))
    is_mortal = kind.has_times

    def pack(row: Row) -> RowTuple:
        _, number, key, fixed, span, groups, _ = row
        group_values = groups[0] if groups else None
        group = empty_group if group_values is None else (group_values[0], *group_values[1])
        return (number, *key, *fixed, *span, *group) if is_mortal else (number, *key, *fixed, *group)

    return pack


def _blank(columns: int) -> RowTuple:
    return (NO_STAMP, *(None,) * columns)
