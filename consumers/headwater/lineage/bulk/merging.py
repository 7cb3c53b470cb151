"""Rows into a database by the quickest way that it has. The plain way, `sql.merge_into`, ends in the same rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from sqlalchemy import Connection

from headwater.lineage.bulk import many, mysql, postgres
from headwater.lineage.bulk.epochs import bump_epoch
from headwater.lineage.bulk.packing import Pile, piles
from headwater.lineage.rows import Row
from headwater.lineage.rows.tables import TOMBSTONE
from headwater.lineage.sql.upsert import merge_into


def _plain(connection: Connection, pile: Pile) -> None:
    merge_into(connection, pile.rows)


_WAYS: Final[dict[tuple[str, str], Callable[[Connection, Pile], None]]] = {
    ("postgresql", "psycopg"): postgres.merge,
    ("sqlite", "pysqlite"): many.merge,
    ("mysql", "pymysql"): mysql.merge,
    ("mariadb", "pymysql"): mysql.merge,
}


def merge_rows(connection: Connection, rows: Iterable[Row]) -> int:
    """How many rows, of different keys, were merged. For a transaction of the caller's; of all that is merged in it
    this is one call, because several wouldn't go in one order."""
    way = _WAYS.get((connection.dialect.name, connection.dialect.driver), _plain)
    sorted_out = piles(rows)
    if any(pile.kind == TOMBSTONE for pile in sorted_out):
        bump_epoch(connection)
    for pile in sorted_out:
        way(connection, pile)
    return sum(len(pile.rows) for pile in sorted_out)
