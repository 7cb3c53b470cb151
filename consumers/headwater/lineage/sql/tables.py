"""The tables of the store, generated from the kinds of rows, their indexes, and how rows are read from them.

The primary key is `id`, a hash of the row's key. It is the same in every database, needs no sequence, and spreads the
inserts of many writers. Texts compare byte by byte everywhere, hashes and stamps as bytes.

Indexes are on the columns that queries filter and join by. A text can be longer than a B-tree entry, and no row may be
refused because of an index. So texts have hash indexes on PostgreSQL and prefix indexes on MySQL. All other indexed
columns are hashes and numbers.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from sqlalchemy import (
    DDL,
    BigInteger,
    Boolean,
    Column,
    ColumnElement,
    Connection,
    FromClause,
    Index,
    LargeBinary,
    MetaData,
    PrimaryKeyConstraint,
    SmallInteger,
    Table,
    Text,
    event,
    exists,
    select,
)
from sqlalchemy.dialects import mysql, postgresql
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.visitors import InternalTraversal
from sqlalchemy.types import TypeEngine

from headwater.lineage.rows import KINDS, ColumnType, Row, RowColumn, RowKind
from headwater.lineage.rows import tables as t
from headwater.lineage.rows.memory import RowDigest
from headwater.lineage.rows.values import HASH_BYTES

STAMP_BYTES: Final = 33

METADATA: Final = MetaData()


def _binary(size: int) -> TypeEngine[Any]:
    return LargeBinary(size).with_variant(mysql.VARBINARY(size), "mysql", "mariadb")


_TEXT: Final = (
    Text()
    .with_variant(postgresql.TEXT(collation="C"), "postgresql")
    .with_variant(mysql.LONGTEXT(charset="utf8mb4", collation="utf8mb4_bin"), "mysql", "mariadb")
)
TYPES: Final[dict[ColumnType, TypeEngine[Any]]] = {
    ColumnType.TEXT: _TEXT,
    ColumnType.LONG: BigInteger(),
    ColumnType.TRUTH: SmallInteger(),
    ColumnType.BINARY: _binary(HASH_BYTES),
}
_TABLES: Final[dict[str, Table]] = {}


def table_of(kind: RowKind) -> Table:
    return _TABLES[kind.name]


def column_names(kind: RowKind) -> tuple[str, ...]:
    """Return the names of a table's columns, in their order."""
    return tuple(column.name for column in table_of(kind).c)


def stamp_name(group: str) -> str:
    return f"{group}_stamp"


def _columns(kind: RowKind) -> Iterator[Column[Any]]:
    yield Column("id", _binary(HASH_BYTES))
    yield from map(_column, (*kind.key, *kind.maxima))
    yield from (Column(name, BigInteger(), nullable=False) for name in kind.time_columns)
    for group in kind.groups:
        yield Column(stamp_name(group.name), _binary(STAMP_BYTES), nullable=False)
        yield from map(_column, group.columns)
    if kind.has_bits:
        yield Column("bits", BigInteger(), nullable=False)


def _column(field: RowColumn) -> Column[Any]:
    return Column(field.name, TYPES[field.type])


def default_partition(table: str) -> str:
    """Return the name of PostgreSQL's default partition of a table."""
    return f"{table}_rest"


def _table(kind: RowKind) -> Table:
    options: dict[str, Any] = {"mysql_engine": "InnoDB", "mysql_charset": "utf8mb4"}
    if kind.partition is not None:
        options["postgresql_partition_by"] = f"RANGE ({kind.partition})"
    table = Table(kind.name, METADATA, *_columns(kind), PrimaryKeyConstraint(*kind.primary_key), **options)
    if kind.partition is None:
        return table
    rest: DDL = DDL(f"CREATE TABLE {default_partition(kind.name)} PARTITION OF {kind.name} DEFAULT")  # type: ignore[no-untyped-call]
    event.listen(table, "after_create", rest.execute_if(dialect="postgresql"))
    return table


for _kind in KINDS:
    _TABLES[_kind.name] = _table(_kind)


class SparkAlternative(ColumnElement[bool]):
    """A condition that is written in another way for Spark, with the same meaning."""

    inherit_cache = True
    type = Boolean()
    _traverse_internals = [  # noqa: RUF012 - as SQLAlchemy has it
        ("elsewhere", InternalTraversal.dp_clauseelement),
        ("in_spark", InternalTraversal.dp_clauseelement),
    ]

    def __init__(self, elsewhere: ColumnElement[bool], in_spark: ColumnElement[bool]) -> None:
        self.elsewhere = elsewhere
        self.in_spark = in_spark


@compiles(SparkAlternative)
def _elsewhere(element: SparkAlternative, compiler: Any, **options: Any) -> str:
    return f"({compiler.process(element.elsewhere, **options)})"


@compiles(SparkAlternative, "spark")
def _in_spark(element: SparkAlternative, compiler: Any, **options: Any) -> str:
    return f"({compiler.process(element.in_spark, **options)})"


def row_exists(*tables: FromClause, where: ColumnElement[bool]) -> ColumnElement[bool]:
    """Return EXISTS for a row of these tables.

    All other tables of the condition belong to enclosing statements, at any depth; SQLAlchemy by itself correlates only
    with the next one. OFFSET 0 keeps PostgreSQL from turning the test into a join, which it would begin with a scan of
    a whole table.
    """
    found = select(1).select_from(*tables).where(where).suffix_with("OFFSET 0", dialect="postgresql")
    return exists(found.correlate_except(*tables))


_PREFIX: Final = 128
"""How many characters of a text MySQL indexes."""

_INDEXES: Final[tuple[tuple[RowKind, str], ...]] = (
    # names and identities
    (t.CATALOG_NAME, "catalog_id"),
    (t.DATASET, "name"),
    (t.GENERATION, "dataset"),
    (t.ALIAS, "dataset"),
    (t.ALIAS, "table_name"),
    (t.DATASET_LINK, "old"),
    (t.DATASET_LINK, "new"),
    (t.MODIFICATION, "dataset time"),
    (t.MODIFICATION, "dataset produced"),
    (t.BRANCH, "dataset"),
    (t.TAG, "dataset"),
    # jobs, runs and the shapes of writes
    (t.RUN, "run"),
    (t.RUN, "job"),
    (t.RUN, "parent_run"),
    (t.RUN, "parent_job"),
    (t.RUN, "first"),
    (t.RUN_START, "run"),
    (t.RUN_START, "dataset"),
    (t.JOB_LINEAGE, "fingerprint"),
    (t.JOB_LINEAGE_TABLE, "fingerprint"),
    (t.JOB_LINEAGE_TABLE, "dataset"),
    (t.JOB_LINEAGE_COLUMN, "fingerprint"),
    (t.TABLE_LINEAGE, "dataset last"),
    (t.TABLE_LINEAGE, "run"),
    (t.TABLE_LINEAGE, "job"),
    (t.TABLE_LINEAGE, "parent_job"),
    (t.TABLE_EDGE, "target"),
    (t.TABLE_EDGE, "source"),
    (t.VIEW_EDGE, "view"),
    (t.VIEW_EDGE, "source"),
    # data lineage
    (t.COMMIT, "run barrier"),
    (t.PLACE, "dataset"),
    (t.READ, "place_id snapshot since_snapshot"),
    (t.WRITE, "place_id snapshot"),
    (t.WRITE, "place_id parent_snapshot"),
    (t.WRITE, "place_id first"),
    (t.FAILED_STATEMENT, "run"),
    (t.FAILED_STATEMENT, "time"),
    # what may be missing, and what was taken away
    (t.GAP, "dataset"),
    (t.GAP, "run"),
    (t.GAP, "job"),
    (t.PRODUCER, "producer"),
    (t.PRODUCER, "application"),
    (t.PRODUCER, "closed_at last"),
    (t.ARRIVAL, "producer block"),
    (t.ARRIVAL, "last"),
    (t.GAP, "time"),
    (t.TOMBSTONE, "run dataset"),
    (t.TOMBSTONE, "job"),
    (t.TOMBSTONE, "dataset"),
)
"""A kind of row, and the columns of an index in their order. An index with a text has no other column."""


def _make_index(kind: RowKind, names: str) -> Index:
    table = table_of(kind)
    columns = [table.c[name] for name in names.split()]
    of_groups = (field for group in kind.groups for field in group.columns)
    texts = {field.name for field in (*kind.key, *kind.maxima, *of_groups) if field.type is ColumnType.TEXT}
    options: dict[str, object] = {}
    for name in names.split():
        if name in texts:
            options = {
                "postgresql_using": "hash",
                "mysql_length": {name: _PREFIX},
                "mariadb_length": {name: _PREFIX},
            }
    return Index(f"ix_{kind.name}_{names.replace(' ', '_')}", *columns, **options)  # type: ignore[arg-type]


INDEXES: Final = tuple(_make_index(kind, names) for kind, names in _INDEXES)


def decode_row(kind: RowKind, values: Any) -> Row:
    """Return the row of values by the names of their columns."""
    return Row(kind, tuple([_plain(values[name]) for name in column_names(kind)]))


def select_rows(connection: Connection, kind: RowKind) -> Iterator[Row]:
    """Stream all rows of a kind."""
    found = connection.execute(select(table_of(kind)), execution_options={"yield_per": 1_000})
    return (Row(kind, tuple(map(_plain, values))) for values in found)


def store_digest(connection: Connection) -> str:
    """Return the digest of all rows that events wrote. The writer's own tables aren't part of it."""
    digest = RowDigest()
    for kind in KINDS:
        for row in select_rows(connection, kind):
            digest.add(row)
    return digest.text


def _plain(value: Any) -> Any:
    return bytes(value) if isinstance(value, (bytearray, memoryview)) else value
