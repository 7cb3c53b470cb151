"""Rows as tuples, in the order of a table's columns: the way a driver takes thousands at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from operator import itemgetter
from typing import Any, NamedTuple, TypeAlias

from headwater.lineage.law import collapsed
from headwater.lineage.rows import Kind, Row
from headwater.lineage.sql.tables import UNTOLD, table_of
from headwater.lineage.sql.upsert import ORDER

Packed: TypeAlias = "tuple[Any, ...]"
_ID = itemgetter(0)


class Pile(NamedTuple):
    """Rows of one kind and different keys."""

    kind: Kind
    rows: list[Row]

    def packed(self) -> list[Packed]:
        """As they come."""
        pack = packer(self.kind)
        return [pack(row) for row in self.rows]

    def ordered(self) -> list[Packed]:
        """By their ids, as every transaction writes them."""
        return sorted(self.packed(), key=_ID)


def piles(rows: Iterable[Row]) -> list[Pile]:
    """One row for each key, by kind, in the order in which every transaction writes them."""
    found: dict[str, Pile] = {}
    for row in collapsed(rows).values():
        name = row.kind.name
        pile = found.get(name)
        if pile is None:
            pile = found[name] = Pile(row.kind, [])
        pile.rows.append(row)
    return sorted(found.values(), key=lambda pile: ORDER[pile.kind.name])


def names_of(kind: Kind) -> tuple[str, ...]:
    """The columns in their order."""
    return tuple(column.name for column in table_of(kind).c)


@cache
def packer(kind: Kind) -> Callable[[Row], Packed]:
    """What stands in the columns: `sql.stored.parameters_of` without names."""
    if len(kind.groups) == 1 and not kind.bits:
        return _with_a_group(kind)
    blanks = [_blank(len(group.columns)) for group in kind.groups]

    def pack(row: Row) -> Packed:
        values = (row.id, *row.key, *row.fixed)
        if kind.mortal:
            values += row.span
        for told, blank in zip(row.groups or kind.blank, blanks, strict=True):
            values += blank if told is None else (told.stamp, *told.values)
        return (*values, row.bits) if kind.bits else values

    return pack


def _with_a_group(kind: Kind) -> Callable[[Row], Packed]:
    """Nearly all rows that there are: commits, reads and writes."""
    untold = _blank(len(kind.groups[0].columns))
    is_mortal = kind.mortal

    def pack(row: Row) -> Packed:
        _, number, key, fixed, span, groups, _ = row
        told = groups[0] if groups else None
        group = untold if told is None else (told[0], *told[1])
        return (number, *key, *fixed, *span, *group) if is_mortal else (number, *key, *fixed, *group)

    return pack


def _blank(columns: int) -> Packed:
    return (UNTOLD, *(None,) * columns)
