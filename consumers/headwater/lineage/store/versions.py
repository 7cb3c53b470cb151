"""Which version of the tables is in a database."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final

from sqlalchemy import Column, Connection, MetaData, String, Table, delete, insert, inspect, select

from headwater.lineage.store.migrations import History, Version
from headwater.lineage.store.tables import METADATA

VERSION: Final = Table(
    "schema_version",
    MetaData(),
    Column("version_num", String(32), primary_key=True),
    Column("least", String(32), nullable=False, server_default=""),
    mysql_engine="InnoDB",
    mysql_charset="utf8mb4",
)
"""One row. Alembic finds its own column in it; the other says which code can work on these tables."""


class Standing(Enum):
    EMPTY = "EMPTY"
    """There is nothing of ours."""
    UNMARKED = "UNMARKED"
    """There are tables of such names, and nothing says whose."""
    OLDER = "OLDER"
    CURRENT = "CURRENT"
    """What this code knows, or something newer that it can work on."""
    NEWER = "NEWER"
    """Something newer, from which something was taken away that this code needs."""


@dataclass(frozen=True)
class Found:
    standing: Standing
    version: str | None = None
    tables: frozenset[str] = frozenset()
    """Of those names that ours have."""


def found_in(connection: Connection, history: History) -> Found:
    version = version_in(connection)
    if version is not None:
        return Found(_standing(version, history), version.name)
    ours = {*METADATA.tables}
    tables = frozenset(ours & {*inspect(connection).get_table_names()})
    return Found(Standing.UNMARKED if tables else Standing.EMPTY, None, tables)


def version_in(connection: Connection) -> Version | None:
    if not inspect(connection).has_table(VERSION.name):
        return None
    row = connection.execute(select(VERSION.c.version_num, VERSION.c.least)).one_or_none()
    return None if row is None else Version(row.version_num, row.least or row.version_num)


def mark(connection: Connection, version: Version) -> None:
    VERSION.create(connection, checkfirst=True)
    connection.execute(delete(VERSION))
    connection.execute(insert(VERSION).values(version_num=version.name, least=version.least))


def _standing(version: Version, history: History) -> Standing:
    if version.name == history.newest.name:
        return Standing.CURRENT
    if history.knows(version.name):
        return Standing.OLDER
    return Standing.CURRENT if history.can_use(version.least) else Standing.NEWER
