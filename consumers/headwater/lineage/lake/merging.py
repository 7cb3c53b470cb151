"""The tables of a lake and the statements that merge rows into them, made from the declarations of rows.

What becomes of a row that is there is said in `sql.upsert`, once for all databases; here it becomes the clauses of
Spark's MERGE. So a MERGE is idempotent, and the same rows in any order and any micro-batches end in the same table.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from sqlalchemy import BigInteger, Column, Integer, LargeBinary, SmallInteger, Table, Text, func
from sqlalchemy.sql.elements import ColumnElement

from headwater.lineage.lake.address import LakeAddress
from headwater.lineage.lake.formats import format_of
from headwater.lineage.lake.spark_dialect import SparkDialect
from headwater.lineage.rows import KINDS, RowKind
from headwater.lineage.sql.tables import table_of
from headwater.lineage.sql.upsert import ColumnUpdates, change_conditions, keep_existing, keep_greatest, merged_columns
from headwater.lineage.sql.writer_tables import DEAD_LETTERS, INGESTS, OFFSETS

VERSION: Final = "1"
"""The version of a lake's tables. It stands in each table's properties."""
VERSION_PROPERTY: Final = "headwater.lake"
_TYPES: Final[dict[type, str]] = {
    Text: "STRING",
    BigInteger: "BIGINT",
    Integer: "INT",
    SmallInteger: "INT",
    LargeBinary: "BINARY",
}
ARROW_TYPES: Final = {"STRING": "string", "BIGINT": "int64", "INT": "int32", "BINARY": "binary"}
"""What pyarrow calls the types of columns."""


_SPARK: Final = SparkDialect()


@dataclass(frozen=True)
class LakeTable:
    """A table of a lake, and how rows are merged into it."""

    table: Table
    partition: str | None
    """The column by whose values MERGE skips files."""
    updates: Sequence[tuple[str, ColumnElement[Any]]]
    """What becomes of each column of a row that is there, in terms of the tables `t` and `s`."""
    conditions: Sequence[ColumnElement[bool]]
    """When a row that is there changes."""

    @property
    def name(self) -> str:
        """The table's name, as plain text: SQLAlchemy's own kind of text means nothing to Spark."""
        return str(self.table.name)

    @property
    def columns(self) -> dict[str, str]:
        """The columns with their types in Spark's SQL."""
        return {str(column.name): spark_type(column) for column in self.table.c}

    def create_text(self, address: LakeAddress) -> str:
        """Return the statement that makes the table, unless it is there."""
        columns = ", ".join(f"`{column}` {kind}" for column, kind in self.columns.items())
        clauses = format_of(address).clauses({VERSION_PROPERTY: VERSION})
        return f"CREATE TABLE IF NOT EXISTS {address.table(self.name)} ({columns}) {clauses}"

    def changed_text(self, target: str, source: str, bounds: tuple[int, int] | None) -> str:
        """Return the query for those rows of a source that change the target: new ones, and others that say more.

        A MERGE of all rows would write each file again that has one of them, also where nothing changes.
        """
        on = self._on(bounds)
        if not self.updates:
            return f"SELECT s.* FROM {source} s LEFT ANTI JOIN {target} t ON {on}"  # noqa: S608 - names of our own
        changes = " OR ".join(map(_sql_of, self.conditions))
        joined = f"{source} s LEFT JOIN {target} t ON {on}"
        return f"SELECT s.* FROM {joined} WHERE t.id IS NULL OR {changes}"  # noqa: S608 - names of our own

    def merge_text(self, target: str, source: str, bounds: tuple[int, int] | None) -> str:
        """Return the MERGE of a source that has each key once.

        It has a clause for rows that are there even where those never change: without one
        Iceberg's MERGE is a plain append, which doesn't look whether somebody else has added the same rows meanwhile.
        """
        names = [f"`{column.name}`" for column in self.table.c]
        matched = ""
        if self.updates:
            changes = " OR ".join(map(_sql_of, self.conditions))
            sets = ", ".join(f"t.`{name}` = {_sql_of(value)}" for name, value in self.updates)
            matched = f"WHEN MATCHED AND ({changes}) THEN UPDATE SET {sets} "
        else:
            matched = "WHEN MATCHED AND (t.id IS NULL) THEN UPDATE SET t.id = s.id "
        return (
            f"MERGE INTO {target} t USING {source} s ON {self._on(bounds)} {matched}"  # noqa: S608 - names of our own
            f"WHEN NOT MATCHED THEN INSERT ({', '.join(names)}) VALUES ({', '.join(f's.{name}' for name in names)})"
        )

    def _on(self, bounds: tuple[int, int] | None) -> str:
        if self.partition is None:
            return "t.id = s.id"
        column = f"t.`{self.partition}`"
        own = f"t.id = s.id AND {column} = s.`{self.partition}`"
        return own if bounds is None else f"{own} AND {column} >= {bounds[0]}L AND {column} <= {bounds[1]}L"


def spark_type(column: Column[Any]) -> str:
    """Return a column's type in Spark's SQL."""
    return next(_TYPES[base] for base in type(column.type).__mro__ if base in _TYPES)


@cache
def lake_tables() -> dict[str, LakeTable]:
    """Return all tables of a lake, by name: those of rows, and what the pipeline keeps for itself."""
    own = [
        _own_table(OFFSETS, keep_greatest("next_offset", "moved_at"), "next_offset"),
        _own_table(INGESTS, keep_greatest("stored_until", "stored_at"), "stored_until"),
        _own_table(DEAD_LETTERS, keep_existing, None),
    ]
    return {table.name: table for table in (*map(_table_of_kind, KINDS), *own)}


def _table_of_kind(kind: RowKind) -> LakeTable:
    held, new = (table_of(kind).alias(name).c for name in "ts")
    updates = merged_columns(kind, held, new, func.least, func.greatest)
    return LakeTable(table_of(kind), kind.partition, updates, change_conditions(kind, held, new))


def _own_table(table: Table, changes: ColumnUpdates, greatest: str | None) -> LakeTable:
    held, new = (table.alias(name).c for name in "ts")
    conditions = [] if greatest is None else [new[greatest] > held[greatest]]
    return LakeTable(table, None, changes(held, new), conditions)


def _sql_of(expression: ColumnElement[Any]) -> str:
    return f"({expression.compile(dialect=_SPARK, compile_kwargs={'literal_binds': True})})"
