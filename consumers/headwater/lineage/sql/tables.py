"""The tables, made from the kinds of rows, so that memory and databases have one declaration.

Each has `id`, the hash of what names a row, as its primary key: it is the same in every database, needs no sequence,
and spreads what many writers insert. Text compares byte by byte everywhere, hashes and stamps as bytes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from sqlalchemy import DDL, BigInteger, Column, LargeBinary, MetaData, SmallInteger, Table, Text, event
from sqlalchemy.dialects import mysql, postgresql
from sqlalchemy.types import TypeEngine

from headwater.lineage.rows import KINDS, Field, Kind, Type
from headwater.lineage.rows.values import HASH_BYTES

STAMP_BYTES: Final = 33
UNTOLD: Final = b""
"""The stamp of a group that nobody told: less than any other."""

METADATA: Final = MetaData()


def _binary(size: int) -> TypeEngine[Any]:
    return LargeBinary(size).with_variant(mysql.VARBINARY(size), "mysql", "mariadb")


_TEXT: Final = (
    Text()
    .with_variant(postgresql.TEXT(collation="C"), "postgresql")
    .with_variant(mysql.LONGTEXT(charset="utf8mb4", collation="utf8mb4_bin"), "mysql", "mariadb")
)
TYPES: Final[dict[Type, TypeEngine[Any]]] = {
    Type.TEXT: _TEXT,
    Type.LONG: BigInteger(),
    Type.TRUTH: SmallInteger(),
    Type.BINARY: _binary(HASH_BYTES),
}
_TABLES: Final[dict[str, Table]] = {}


def table_of(kind: Kind) -> Table:
    return _TABLES[kind.name]


def stamp_name(group: str) -> str:
    return f"{group}_stamp"


def key_of(kind: Kind) -> tuple[str, ...]:
    """The primary key: a database keeps rows apart only by a part of it."""
    return ("id",) if kind.partition is None else ("id", kind.partition)


def _columns(kind: Kind) -> Iterator[Column[Any]]:
    yield Column("id", _binary(HASH_BYTES), primary_key=True)
    for field in (*kind.key, *kind.fixed):
        is_key = field.name == kind.partition
        yield Column(field.name, TYPES[field.type], primary_key=is_key, autoincrement=False)
    if kind.mortal:
        yield from (Column(name, BigInteger(), nullable=False) for name in ("first", "last", "deleted"))
    for group in kind.groups:
        yield Column(stamp_name(group.name), _binary(STAMP_BYTES), nullable=False)
        yield from map(_column, group.columns)
    if kind.bits:
        yield Column("bits", BigInteger(), nullable=False)


def _column(field: Field) -> Column[Any]:
    return Column(field.name, TYPES[field.type])


def rest_of(table: str) -> str:
    """The partition on PostgreSQL that has whatever no other has."""
    return f"{table}_rest"


def _table(kind: Kind) -> Table:
    options: dict[str, Any] = {"mysql_engine": "InnoDB", "mysql_charset": "utf8mb4"}
    if kind.partition is None:
        return Table(kind.name, METADATA, *_columns(kind), **options)
    apart = Table(kind.name, METADATA, *_columns(kind), postgresql_partition_by=f"RANGE ({kind.partition})", **options)
    rest: DDL = DDL(f"CREATE TABLE {rest_of(kind.name)} PARTITION OF {kind.name} DEFAULT")  # type: ignore[no-untyped-call]
    event.listen(apart, "after_create", rest.execute_if(dialect="postgresql"))
    return apart


for _kind in KINDS:
    _TABLES[_kind.name] = _table(_kind)
