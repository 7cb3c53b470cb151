"""Reads and writes the version of a store's tables."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final

from sqlalchemy import Column, Connection, MetaData, String, Table, delete, insert, inspect, select

from headwater.lineage.sql import METADATA
from headwater.lineage.store.migrations import MigrationHistory, SchemaVersion

VERSION: Final = Table(
    "schema_version",
    MetaData(),
    Column("version_num", String(32), primary_key=True),
    Column("least", String(32), nullable=False, server_default=""),
    mysql_engine="InnoDB",
    mysql_charset="utf8mb4",
)
"""One row. Alembic uses `version_num`; `least` is the oldest version that code must know to work on these tables."""


class SchemaState(Enum):
    """How a database's tables compare with those that this version needs."""

    EMPTY = "EMPTY"
    """There are no tables."""
    UNMARKED = "UNMARKED"
    """There are tables of our names, but no version mark."""
    OLDER = "OLDER"
    CURRENT = "CURRENT"
    """The version that this code knows, or a newer one that it can still work on."""
    NEWER = "NEWER"
    """A newer version that removed something this code needs."""


@dataclass(frozen=True)
class SchemaStatus:
    standing: SchemaState
    version: str | None = None
    tables: frozenset[str] = frozenset()
    """The existing tables that have our names."""


def inspect_schema(connection: Connection, history: MigrationHistory) -> SchemaStatus:
    version = read_version(connection)
    if version is not None:
        return SchemaStatus(_compare_version(version, history), version.name)
    ours = {*METADATA.tables}
    tables = frozenset(ours & {*inspect(connection).get_table_names()})
    return SchemaStatus(SchemaState.UNMARKED if tables else SchemaState.EMPTY, None, tables)


def read_version(connection: Connection) -> SchemaVersion | None:
    if not inspect(connection).has_table(VERSION.name):
        return None
    row = connection.execute(select(VERSION.c.version_num, VERSION.c.least)).one_or_none()
    return None if row is None else SchemaVersion(row.version_num, row.least or row.version_num)


def write_version(connection: Connection, version: SchemaVersion) -> None:
    VERSION.create(connection, checkfirst=True)
    connection.execute(delete(VERSION))
    connection.execute(insert(VERSION).values(version_num=version.name, least=version.least))


def _compare_version(version: SchemaVersion, history: MigrationHistory) -> SchemaState:
    if version.name == history.newest.name:
        return SchemaState.CURRENT
    if history.knows(version.name):
        return SchemaState.OLDER
    return SchemaState.CURRENT if history.can_use(version.least) else SchemaState.NEWER
