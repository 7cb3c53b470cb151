"""Compares two stores row by row: by table their rows and digests, and which rows differ."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final, NamedTuple

from sqlalchemy import Connection, inspect, select

from headwater.lineage.rows import KINDS, Row, RowDigest, RowKind, combine_rows
from headwater.lineage.rows.columns import RowTuple, key_picker, row_of
from headwater.lineage.sql.tables import column_names, table_of

MOST_DIFFERENCES: Final = 100_000
"""So many differing rows are kept, to be looked at again when the fresh tables have later events."""
_PAGE: Final = 2_000


class Side(str, Enum):
    """How a row differs."""

    LIVE = "only live"
    FRESH = "only fresh"
    BOTH = "different"


class RowDifference(NamedTuple):
    """A row that isn't the same in both stores."""

    kind: RowKind
    key: tuple[Any, ...]
    """The values of the primary key."""
    live: Row | None
    fresh: Row | None
    columns: tuple[str, ...] = ()
    """The columns that differ, for a row that both have."""

    @property
    def side(self) -> Side:
        if self.live is None:
            return Side.FRESH
        return Side.LIVE if self.fresh is None else Side.BOTH


@dataclass
class TableComparison:
    """One table of both stores."""

    table: str
    live_rows: int = 0
    fresh_rows: int = 0
    live_digest: str = ""
    fresh_digest: str = ""
    differing: int = 0

    @property
    def is_equal(self) -> bool:
        return not self.differing


@dataclass
class StoreComparison:
    """All tables of both stores."""

    tables: list[TableComparison] = field(default_factory=list)
    differences: list[RowDifference] = field(default_factory=list)
    """At most MOST_DIFFERENCES."""
    skipped: tuple[str, ...] = ()
    """Tables that the live store has with other columns, because it is of an older version."""
    live_behind: int = 0
    """So many events the fresh tables had and the live ones not yet."""

    @property
    def differing(self) -> int:
        return sum(each.differing for each in self.tables)

    def leave(self, differences: list[RowDifference]) -> None:
        """Keep only these of the differences; the others are explained."""
        left = Counter(each.kind.name for each in differences)
        known = Counter(each.kind.name for each in self.differences)
        for table in self.tables:
            table.differing -= known[table.table] - left[table.table]
        self.differences = differences

    @property
    def rows(self) -> int:
        return sum(each.live_rows for each in self.tables)


def compare_stores(
    live: Connection,
    fresh: Connection,
    most: int = MOST_DIFFERENCES,
    report: Callable[[int], None] = lambda _: None,
) -> StoreComparison:
    """Compare all rows that events wrote. Each connection has to read in one snapshot, so that writers can go on.
    `report` is called with the number of the live store's rows so far, after each table."""
    result = StoreComparison()
    skipped = list[str]()
    for kind in KINDS:
        if has_other_columns(live, kind):
            skipped.append(kind.name)
            continue
        table = TableComparison(kind.name)
        for difference in _differences(live, fresh, kind, table):
            table.differing += 1
            if len(result.differences) < most:
                result.differences.append(difference)
        result.tables.append(table)
        report(result.rows)
    result.skipped = tuple(skipped)
    return result


def has_other_columns(connection: Connection, kind: RowKind) -> bool:
    """Return whether a table isn't there, or has other columns than this version's."""
    inspector = inspect(connection)
    if not inspector.has_table(kind.name):
        return True
    there = {each["name"] for each in inspector.get_columns(kind.name)} - {"pip5_job"}
    return there != set(column_names(kind))


def explain_by_later_events(fresh: Connection, differences: Sequence[RowDifference]) -> list[RowDifference]:
    """Return the differences that later events don't explain. `fresh` has them by now.

    A live store that is written by several processes has rows of events before it has their offsets. Such a row is
    what the fresh tables had, or more of it, and they have it all once they have the same events.
    """
    later = {
        row.id: row
        for kind in KINDS
        if (ids := [each.live.id for each in differences if each.kind == kind and each.live is not None])
        for row in rows_by_id(fresh, kind, ids)
    }
    return [each for each in differences if not _is_explained(each, later)]


def explain_by_lag(differences: Sequence[RowDifference]) -> list[RowDifference]:
    """Return the differences that the live store's lag doesn't explain: where it has something that the fresh tables,
    which have later events, don't have."""
    return [
        each
        for each in differences
        if each.live is not None and (each.fresh is None or combine_rows(each.live, each.fresh) != each.fresh)
    ]


def rows_by_id(connection: Connection, kind: RowKind, ids: Sequence[bytes]) -> Iterator[Row]:
    for at in range(0, len(ids), _PAGE):
        query = select(table_of(kind)).where(table_of(kind).c.id.in_(ids[at : at + _PAGE]))
        for values in connection.execute(query):
            yield row_of(kind, [_plain(value) for value in values])


def _is_explained(difference: RowDifference, later: dict[bytes, Row]) -> bool:
    live, fresh = difference.live, difference.fresh
    if live is None or live.id not in later:
        return False
    now = later[live.id]
    was_less = fresh is None or combine_rows(fresh, live) == live
    return was_less and combine_rows(live, now) == now


def _differences(live: Connection, fresh: Connection, kind: RowKind, table: TableComparison) -> Iterator[RowDifference]:
    """Walk through both tables in the order of their primary keys."""
    pick, digests = key_picker(kind), (RowDigest(), RowDigest())
    mine, other = _ordered(live, kind), _ordered(fresh, kind)
    one, two = next(mine, None), next(other, None)
    while one is not None or two is not None:
        if one == two:
            number = RowDigest.number_of(row_of(kind, one or ()))
            digests[0].add_number(number)
            digests[1].add_number(number)
            one, two = next(mine, None), next(other, None)
            continue
        key_one, key_two = None if one is None else pick(one), None if two is None else pick(two)
        key = min(each for each in (key_one, key_two) if each is not None)
        left = row_of(kind, one) if one is not None and key_one == key else None
        right = row_of(kind, two) if two is not None and key_two == key else None
        columns = _changed(kind, one or (), two or ()) if left is not None and right is not None else ()
        if left is not None:
            digests[0].add(left)
            one = next(mine, None)
        if right is not None:
            digests[1].add(right)
            two = next(other, None)
        yield RowDifference(kind, key if isinstance(key, tuple) else (key,), left, right, columns)
    table.live_digest, table.fresh_digest = (each.text for each in digests)
    table.live_rows, table.fresh_rows = (int(each.text.partition("-")[2]) for each in digests)


def _ordered(connection: Connection, kind: RowKind) -> Iterator[RowTuple]:
    table = table_of(kind)
    query = select(table).order_by(*(table.c[name] for name in kind.primary_key))
    found = connection.execute(query, execution_options={"yield_per": _PAGE})
    return (tuple(map(_plain, each)) for each in found)


def _plain(value: Any) -> Any:
    return bytes(value) if isinstance(value, (bytearray, memoryview)) else value


def _changed(kind: RowKind, one: RowTuple, other: RowTuple) -> tuple[str, ...]:
    return tuple(name for name, a, b in zip(column_names(kind), one, other, strict=True) if a != b)
