"""Merges rows into PostgreSQL by COPY.

What one event alone reports is copied straight into its table. If one of these rows is there already, and for all other
kinds, rows are copied into a temporary table, and one statement merges them from there.
"""

from __future__ import annotations

import logging
from functools import cache
from typing import Any, Final

from sqlalchemy import BigInteger, Connection, Integer, LargeBinary, SmallInteger
from sqlalchemy.exc import DBAPIError, IntegrityError

from headwater.lineage.bulk.packing import PackedRows, execute_many
from headwater.lineage.rows import RowKind
from headwater.lineage.rows.tables import EVENT_FACTS
from headwater.lineage.sql.tables import column_names, table_of
from headwater.lineage.sql.upsert import merge_staged_text, staging_name

_LOG: Final = logging.getLogger(__name__)
FEW: Final = 60
"""Up to this many rows are quicker as the parameters of a statement."""
_MAY_STAGE: Final = "headwater.bulk.may_stage"
_USED: Final = "headwater.bulk.used"
_CONFLICTS: Final = "headwater.bulk.conflicts"
_UNIQUE_VIOLATION: Final = "23505"
_TRANSACTIONS_WITHOUT: Final = 16
"""After a row that was there already, so many transactions merge rows of its kind without trying to insert them."""
_TYPES: Final = ((SmallInteger, "int2"), (BigInteger, "int8"), (Integer, "int4"), (LargeBinary, "bytea"))


def merge(connection: Connection, packed: PackedRows) -> None:
    if len(packed.rows) <= FEW:
        execute_many(connection, packed)
    elif packed.kind in EVENT_FACTS and _try_insert(connection, packed):
        return
    elif _may_stage(connection):
        _merge_staged(connection, packed)
    else:
        execute_many(connection, packed)


def _try_insert(connection: Connection, packed: PackedRows) -> bool:
    """Insert rows that are probably new, without asking. Return False, and insert nothing, if one of them is there.

    Rows are locked in the order of ids, as by all other ways. After a conflict the next transactions don't try: events
    that come again come by the thousand.
    """
    waits: dict[str, int] = connection.info.setdefault(_CONFLICTS, {})
    if waits.get(packed.name):
        waits[packed.name] -= 1
        return False
    try:
        with connection.begin_nested():
            _copy(connection, packed, packed.name)
    except IntegrityError as e:
        if getattr(e.orig, "sqlstate", None) != _UNIQUE_VIOLATION:
            raise
        waits[packed.name] = _TRANSACTIONS_WITHOUT
        return False
    return True


def _merge_staged(connection: Connection, packed: PackedRows) -> None:
    """Copy rows into a temporary table, and merge them from there by one statement."""
    kind = packed.kind
    staging = f"pg_temp.{staging_name(kind)}"
    connection.exec_driver_sql(_make_text(kind))
    if _is_used(connection, kind):
        connection.exec_driver_sql(f"DELETE FROM {staging}")  # noqa: S608 - a name of ours
    _copy(connection, packed, staging)
    connection.exec_driver_sql(merge_staged_text(kind))


def _may_stage(connection: Connection) -> bool:
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


def _copy(connection: Connection, packed: PackedRows, table: str) -> None:
    """Copy rows with psycopg's own COPY. Its errors are wrapped as SQLAlchemy wraps errors."""
    text, driver = _copy_text(packed.kind, table), connection.connection.driver_connection
    try:
        with driver.cursor() as cursor, cursor.copy(text) as copy:  # type: ignore[union-attr]
            copy.set_types(_types_of(packed.kind))
            for row in packed.rows:
                copy.write_row(row)
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
    names = _quoted_columns(kind)
    empty = f"SELECT {names} FROM {kind.name} WITH NO DATA"  # noqa: S608 - names of ours
    return f"CREATE TEMPORARY TABLE IF NOT EXISTS {staging_name(kind)} ON COMMIT DELETE ROWS AS {empty}"


@cache
def _copy_text(kind: RowKind, table: str) -> str:
    return f"COPY {table} ({_quoted_columns(kind)}) FROM STDIN (FORMAT BINARY)"


def _quoted_columns(kind: RowKind) -> str:
    return ", ".join(f'"{name}"' for name in column_names(kind))


@cache
def _types_of(kind: RowKind) -> tuple[str, ...]:
    """The column types that COPY's binary format has to use."""
    return tuple(_type_of(column.type) for column in table_of(kind).c)


def _type_of(column: Any) -> str:
    return next((name for kind, name in _TYPES if isinstance(column, kind)), "text")
