"""Reads and writes together with their places: a selectable that has the columns of both.

Databases merge it into the statement that uses it. A condition on a column of `places` finds the few places first, and
an index of `reads` or `writes` begins with the place. Where many datasets are asked for beside a number of each,
`place_keys` finds their places beforehand.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any

from sqlalchemy import Connection, Subquery, select

from headwater.lineage.rows import RowKind
from headwater.lineage.rows import tables as t
from headwater.lineage.sql.key_lookup import PairLookup
from headwater.lineage.sql.tables import table_of


@cache
def access_of(kind: RowKind) -> Subquery:
    """Return reads or writes with their places."""
    row, place = table_of(kind).alias("one"), table_of(t.PLACE).alias("place")
    columns = (column for column in place.c if column.name != "id")
    return select(*row.c, *columns).join_from(row, place, row.c.place_id == place.c.id).subquery(kind.name)


def place_keys(connection: Connection, kind: RowKind, keys: Iterable[tuple[bytes, Any]]) -> list[tuple[bytes, Any]]:
    """Return pairs of a place and a number for pairs of a dataset and a number: places of reads, or of writes."""
    numbers: dict[bytes, list[Any]] = {}
    for dataset, number in keys:
        numbers.setdefault(dataset, []).append(number)
    found = _places(kind).by_key(connection, numbers)
    return [(bytes(place), number) for place, dataset in found for number in numbers[bytes(dataset)]]


@cache
def _places(kind: RowKind) -> PairLookup:
    """Build the statement once: building it takes longer than executing it."""
    place = table_of(t.PLACE).c
    is_of_kind = (place.mode if kind == t.READ else place.made_from).is_not(None)
    return PairLookup(select(place.id, place.dataset).where(is_of_kind), place.dataset, place.id)
