"""Opens a lake to ask it by a Spark session: the questions are those of any store, each statement is a job of Spark.

Lineage.open("delta:spark_catalog.lineage", spark=spark)
"""

from __future__ import annotations

from typing import Final

from headwater.lineage.lake.address import LakeAddress
from headwater.lineage.lake.formats import SqlSession, format_of
from headwater.lineage.lake.merging import VERSION, VERSION_PROPERTY, lake_tables, spark_type
from headwater.lineage.lake.reading import LakeTarget
from headwater.lineage.lake.spark_dialect import spark_engine
from headwater.lineage.sql import METADATA
from headwater.lineage.sql.errors import StoreSchemaError
from headwater.lineage.store.store import Store

_MISSING: Final = ("TABLE_OR_VIEW_NOT_FOUND", "SCHEMA_NOT_FOUND", "not found", "without view support")
"""What errors say of a table that isn't there. The last is a catalog that is asked for a view, because it has no such
table."""


def open_lake_by_spark(address: LakeAddress, session: SqlSession) -> Store:
    """Open a lake in a session that knows its catalog. The session stays the caller's.

    Each connection sees each table as it was when the connection first used it. Raises a StoreSchemaError if there is
    no lake, or one of another version.
    """
    check_version(address, session)
    engine = spark_engine(session, lambda: _Tables(address, session).relation)
    return Store(engine, LakeTarget.of(address))


def check_version(address: LakeAddress, session: SqlSession) -> None:
    """Raise a StoreSchemaError unless there is a lake that this version knows."""
    name = address.table(next(iter(lake_tables())))
    try:
        rows = session.sql(f"SHOW TBLPROPERTIES {name}").collect()
    except Exception as e:
        if not any(text in str(e) for text in _MISSING):
            raise
        raise StoreSchemaError(
            f"there is no lake store in {address.words} yet: `headwater pipeline run --store {address.words}` makes one"
        ) from None
    found = {row.key: row.value for row in rows}.get(VERSION_PROPERTY)
    if found != VERSION:
        raise StoreSchemaError(
            f"the tables of {address.words} have {VERSION_PROPERTY} = {found}, and this headwater knows {VERSION}: "
            "install the headwater that made them"
        )


class _Tables:
    """The tables of a lake as one connection sees them."""

    def __init__(self, address: LakeAddress, session: SqlSession) -> None:
        self._address = address
        self._session = session
        self._format = format_of(address)
        self._relations: dict[str, str] = {}

    def relation(self, name: str) -> str:
        """Return what stands behind FROM for a table: one version of it for as long as the connection lives."""
        if name not in self._relations:
            self._relations[name] = self._at_newest(name)
        return self._relations[name]

    def _at_newest(self, name: str) -> str:
        if name not in lake_tables():  # a database's own, of which a lake has none
            return empty_relation(name)
        table = self._address.table(name)
        self._session.sql(f"REFRESH TABLE {table}")  # what others have committed
        version = self._format.newest_version(self._session, table)
        return empty_relation(name) if version is None else self._format.at_version(table, version)


def empty_relation(name: str) -> str:
    """Return a relation without rows that has a table's columns."""
    nothing = ", ".join(f"CAST(NULL AS {spark_type(column)}) AS `{column.name}`" for column in METADATA.tables[name].c)
    return f"(SELECT {nothing} WHERE FALSE)"
