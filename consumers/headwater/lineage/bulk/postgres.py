"""Merges rows into PostgreSQL: COPY into a temporary table, then one statement that merges from there."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, Final

from sqlalchemy import BigInteger, Connection, Integer, LargeBinary, SmallInteger
from sqlalchemy.exc import DBAPIError

from headwater.lineage.bulk.packed_rows import FEW
from headwater.lineage.bulk.packing import KindRows, RowTuple, column_names
from headwater.lineage.bulk.statements import execute_many, merge_staged_text, staging_name
from headwater.lineage.rows import RowKind
from headwater.lineage.sql.tables import table_of

_LOG: Final = logging.getLogger(__name__)
_BEGIN: Final = b"PGCOPY\n\xff\r\n\0" + bytes(8)
_END: Final = b"\xff\xff"
"""What is before and behind the tuples of a binary COPY."""
_MAY_STAGE: Final = "headwater.bulk.may_stage"
_USED: Final = "headwater.bulk.used"
_TYPES: Final = ((SmallInteger, "int2"), (BigInteger, "int8"), (Integer, "int4"), (LargeBinary, "bytea"))


def merge(connection: Connection, pile: KindRows) -> None:
    if len(pile.rows) <= FEW or not may_stage(connection):
        execute_many(connection, pile)
        return
    rows = pile.packed()  # which are put in order where they lie
    _merge(connection, pile.kind, lambda copy: _write_tuples(copy, pile.kind, rows))


def merge_copied(connection: Connection, kind: RowKind, tuples: bytes) -> None:
    """Merge rows that are tuples of a binary COPY."""
    _merge(connection, kind, lambda copy: copy.write(b"".join((_BEGIN, tuples, _END))))


def _merge(connection: Connection, kind: RowKind, write: Callable[[Any], None]) -> None:
    connection.exec_driver_sql(_make_text(kind))
    if _is_used(connection, kind):
        connection.exec_driver_sql(f"DELETE FROM pg_temp.{staging_name(kind)}")  # noqa: S608 - a name of ours
    _copy(connection, kind, write)
    connection.exec_driver_sql(merge_staged_text(kind))


def _write_tuples(copy: Any, kind: RowKind, rows: Sequence[RowTuple]) -> None:
    copy.set_types(_types_of(kind))
    for row in rows:
        copy.write_row(row)


def may_stage(connection: Connection) -> bool:
    """Return whether this role may create temporary tables. Asked once per connection."""
    if _MAY_STAGE not in connection.info:
        asked = connection.exec_driver_sql("SELECT has_database_privilege(current_database(), 'TEMP')")
        connection.info[_MAY_STAGE] = asked.scalar_one()
        if not connection.info[_MAY_STAGE]:
            _LOG.warning(
                "this role may have no temporary tables, and so stores at a third of the speed: "
                "GRANT TEMPORARY ON DATABASE … TO …"
            )
    return bool(connection.info[_MAY_STAGE])


def _is_used(connection: Connection, kind: RowKind) -> bool:
    """Return whether this transaction merged rows of the kind before: they stay in the temporary table."""
    transaction = connection.get_transaction()
    by, used = connection.info.get(_USED, (None, set()))
    if by is not transaction:
        by, used = connection.info[_USED] = (transaction, set())
    was_used = kind.name in used
    used.add(kind.name)
    return was_used


def _copy(connection: Connection, kind: RowKind, write: Callable[[Any], None]) -> None:
    """Copy rows with psycopg's own COPY. Its errors are wrapped as SQLAlchemy wraps errors."""
    text, driver = _copy_text(kind), connection.connection.driver_connection
    try:
        with driver.cursor() as cursor, cursor.copy(text) as copy:  # type: ignore[union-attr]
            write(copy)
    except connection.dialect.loaded_dbapi.Error as e:
        is_lost = bool(driver.closed)  # type: ignore[union-attr]
        if is_lost:
            connection.invalidate(e)
        error = connection.dialect.loaded_dbapi.Error
        raise DBAPIError.instance(
            text, None, e, error, hide_parameters=True, connection_invalidated=is_lost, dialect=connection.dialect
        ) from e


@cache
def _make_text(kind: RowKind) -> str:
    """The statement that creates the temporary table. It is emptied at each commit, which is faster than TRUNCATE, and
    ignores columns that a later version added."""
    names = _quoted(kind)
    empty = f"SELECT {names} FROM {kind.name} WITH NO DATA"  # noqa: S608 - names of ours
    return f"CREATE TEMPORARY TABLE IF NOT EXISTS {staging_name(kind)} ON COMMIT DELETE ROWS AS {empty}"


@cache
def _copy_text(kind: RowKind) -> str:
    return f"COPY pg_temp.{staging_name(kind)} ({_quoted(kind)}) FROM STDIN (FORMAT BINARY)"


def _quoted(kind: RowKind) -> str:
    return ", ".join(f'"{name}"' for name in column_names(kind))


@cache
def _types_of(kind: RowKind) -> tuple[str, ...]:
    """The column types that COPY's binary format has to use."""
    return tuple(_type_of(column.type) for column in table_of(kind).c)


def _type_of(column: Any) -> str:
    return next((name for kind, name in _TYPES if isinstance(column, kind)), "text")
