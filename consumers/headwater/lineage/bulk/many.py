"""Rows by the driver's `executemany`: SQLite's own way, MySQL's, whose driver puts as many into a statement as fit, and
PostgreSQL's for few."""

from __future__ import annotations

from sqlalchemy import Connection

from headwater.lineage.bulk.packing import Pile
from headwater.lineage.bulk.statements import upsert_text


def merge(connection: Connection, pile: Pile) -> None:
    connection.exec_driver_sql(upsert_text(pile.kind, connection.dialect.name), pile.ordered())
