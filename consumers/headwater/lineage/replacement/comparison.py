"""Compares two stores row by row: by table their rows and digests, and which rows differ.

A store that is written has read other events than a copy of it. So a difference is only told if it can't come from
events that one of the two hasn't read yet: merging a row with what more events say of it gives the row of the store
that has them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from sqlalchemy import Connection, inspect, select

from headwater.lineage.bulk.positions import select_groups, select_offsets
from headwater.lineage.rows import KINDS, Row, RowDigest, RowKind, combine_rows
from headwater.lineage.rows.model import RowTuple
from headwater.lineage.sql.tables import column_names, table_of

MOST_DIFFERENCES: Final = 20
"""So many differing rows are kept, to be shown."""
_PAGE: Final = 2_000


class RowDifference(NamedTuple):
    """A row that isn't the same in both stores."""

    kind: RowKind
    one: Row | None
    """The row in the first store."""
    other: Row | None
    columns: tuple[str, ...] = ()
    """The columns that differ, for a row that both have."""

    @property
    def side(self) -> str:
        """Where the row is, in words."""
        if self.one is None:
            return "only in the other"
        return "only here" if self.other is None else "different"


@dataclass
class TableComparison:
    """One table of both stores."""

    table: str
    rows: tuple[int, int]
    digests: tuple[str, str]
    differing: int


@dataclass
class StoreComparison:
    """All tables of both stores."""

    tables: list[TableComparison] = field(default_factory=list)
    differences: list[RowDifference] = field(default_factory=list)
    """At most so many as were asked for."""
    explained: int = 0
    """Rows that differ because one store has read events that the other one hasn't."""
    unread: tuple[int, int] = (0, 0)
    """So many offsets each store hasn't read that the other one has."""
    skipped: tuple[str, ...] = ()
    """Tables that one of them has with other columns, because it is of another version."""

    @property
    def differing(self) -> int:
        return sum(each.differing for each in self.tables)


def compare_stores(
    one: Connection, other: Connection, most: int = MOST_DIFFERENCES, report: Callable[[int], None] = lambda _: None
) -> StoreComparison:
    """Compare all rows that events wrote. Each connection has to read in one snapshot, so that writers can go on.
    `report` is called with the number of the first store's rows so far, after each table."""
    unread = _unread(one, other)
    result, skipped, count = StoreComparison(unread=unread), list[str](), 0
    for kind in KINDS:
        if has_other_columns(one, kind) or has_other_columns(other, kind):
            skipped.append(kind.name)
            continue
        walk, differing = _Walk(kind, one, other), 0
        for difference in walk.differences():
            if _is_explained(difference, unread):
                result.explained += 1
                continue
            differing += 1
            if len(result.differences) < most:
                result.differences.append(difference)
        table = walk.compared(differing)
        result.tables.append(table)
        count += table.rows[0]
        report(count)
    result.skipped = tuple(skipped)
    return result


def has_other_columns(connection: Connection, kind: RowKind) -> bool:
    """Return whether a table isn't there, or has other columns than this version's."""
    inspector = inspect(connection)
    if not inspector.has_table(kind.name):
        return True
    there = {each["name"] for each in inspector.get_columns(kind.name)} - {"pip5_job"}
    return there != set(column_names(kind))


def _unread(one: Connection, other: Connection) -> tuple[int, int]:
    """Return how many offsets each store lacks of the other one's, by the groups that both know."""
    mine, theirs = 0, 0
    for group in select_groups(one) & select_groups(other):
        offsets = select_offsets(one, group), select_offsets(other, group)
        for where in offsets[0].keys() | offsets[1].keys():
            ahead = offsets[0].get(where, 0) - offsets[1].get(where, 0)
            mine, theirs = mine + max(0, -ahead), theirs + max(0, ahead)
    return mine, theirs


def _is_explained(difference: RowDifference, unread: tuple[int, int]) -> bool:
    one, other = difference.one, difference.other
    if one is None or other is None:
        return bool(unread[0] if one is None else unread[1])
    both = combine_rows(one, other)
    return (bool(unread[1]) and both == one) or (bool(unread[0]) and both == other)


class _Walk:
    """A walk through one table of both stores, in the order of its primary key."""

    def __init__(self, kind: RowKind, one: Connection, other: Connection) -> None:
        self._kind = kind
        self._one, self._other = _select_ordered(one, kind), _select_ordered(other, kind)
        self._digests = RowDigest(), RowDigest()

    def differences(self) -> Iterator[RowDifference]:
        kind, pick = self._kind, self._kind.pick_primary_key
        one, other = next(self._one, None), next(self._other, None)
        while one is not None or other is not None:
            if one == other and one is not None:
                self._count(RowDigest.number_of(Row(kind, one)), 0, 1)
                one, other = next(self._one, None), next(self._other, None)
                continue
            keys = [None if each is None else pick(each) for each in (one, other)]
            least = min(each for each in keys if each is not None)
            mine = one if keys[0] == least else None
            theirs = other if keys[1] == least else None
            yield RowDifference(kind, self._row(mine, 0), self._row(theirs, 1), _changed_columns(kind, mine, theirs))
            one = one if mine is None else next(self._one, None)
            other = other if theirs is None else next(self._other, None)

    def compared(self, differing: int) -> TableComparison:
        """Return what was counted on the way."""
        one, other = (each.text for each in self._digests)
        rows = int(one.partition("-")[2]), int(other.partition("-")[2])
        return TableComparison(self._kind.name, rows, (one, other), differing)

    def _row(self, values: RowTuple | None, side: int) -> Row | None:
        if values is None:
            return None
        row = Row(self._kind, values)
        self._count(RowDigest.number_of(row), side)
        return row

    def _count(self, number: int, *sides: int) -> None:
        for side in sides:
            self._digests[side].add_number(number)


def _select_ordered(connection: Connection, kind: RowKind) -> Iterator[RowTuple]:
    table = table_of(kind)
    query = select(table).order_by(*(table.c[name] for name in kind.primary_key))
    found = connection.execute(query, execution_options={"yield_per": _PAGE})
    return (tuple(map(_plain, each)) for each in found)


def _plain(value: Any) -> Any:
    return bytes(value) if isinstance(value, (bytearray, memoryview)) else value


def _changed_columns(kind: RowKind, one: RowTuple | None, other: RowTuple | None) -> tuple[str, ...]:
    if one is None or other is None:
        return ()
    return tuple(name for name, a, b in zip(column_names(kind), one, other, strict=True) if a != b)
