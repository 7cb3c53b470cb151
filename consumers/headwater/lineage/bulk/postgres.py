"""PostgreSQL: rows are copied to a temporary table and merged from there, thousands at once."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import cache
from typing import Any, Final

from sqlalchemy import BigInteger, Connection, Integer, LargeBinary, SmallInteger
from sqlalchemy.exc import DBAPIError

from headwater.lineage.bulk import many
from headwater.lineage.bulk.packing import Packed, Pile, names_of
from headwater.lineage.bulk.statements import merge_staged_text, staging_name
from headwater.lineage.rows import Kind
from headwater.lineage.sql.tables import table_of

_LOG: Final = logging.getLogger(__name__)
FEW: Final = 60
"""So many are sent one by one, in one go: quicker than three statements."""
_MAY_STAGE: Final = "headwater.bulk.may_stage"
_USED: Final = "headwater.bulk.used"
_TYPES: Final = ((SmallInteger, "int2"), (BigInteger, "int8"), (Integer, "int4"), (LargeBinary, "bytea"))


def merge(connection: Connection, pile: Pile) -> None:
    if len(pile.rows) <= FEW or not _may_stage(connection):
        many.merge(connection, pile)
        return
    connection.exec_driver_sql(_make_text(pile.kind))
    if _is_used(connection, pile.kind):
        connection.exec_driver_sql(f"DELETE FROM pg_temp.{staging_name(pile.kind)}")  # noqa: S608 - a name of ours
    _copy(connection, pile.kind, pile.packed())  # which are put in order where they lie
    connection.exec_driver_sql(merge_staged_text(pile.kind))


def _may_stage(connection: Connection) -> bool:
    """Whether this role may have temporary tables: what is asked once of each connection."""
    if _MAY_STAGE not in connection.info:
        asked = connection.exec_driver_sql("SELECT has_database_privilege(current_database(), 'TEMP')")
        connection.info[_MAY_STAGE] = asked.scalar_one()
        if not connection.info[_MAY_STAGE]:
            _LOG.warning(
                "this role may have no temporary tables, and so stores at a third of the speed: "
                "GRANT TEMPORARY ON DATABASE … TO …"
            )
    return bool(connection.info[_MAY_STAGE])


def _is_used(connection: Connection, kind: Kind) -> bool:
    """Whether this transaction merged rows of the kind before, which lie there until its end."""
    transaction = connection.get_transaction()
    by, used = connection.info.get(_USED, (None, set()))
    if by is not transaction:
        by, used = connection.info[_USED] = (transaction, set())
    was_used = kind.name in used
    used.add(kind.name)
    return was_used


def _copy(connection: Connection, kind: Kind, rows: Sequence[Packed]) -> None:
    """psycopg's own way, of which SQLAlchemy knows nothing; what it raises is raised as SQLAlchemy would."""
    text, driver = _copy_text(kind), connection.connection.driver_connection
    try:
        with driver.cursor() as cursor, cursor.copy(text) as copy:  # type: ignore[union-attr]
            copy.set_types(_types_of(kind))
            for row in rows:
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
def _make_text(kind: Kind) -> str:
    """Made when it is needed, and empty after each transaction, which is quicker than TRUNCATE. Of columns that a later
    version added it knows nothing."""
    names = _quoted(kind)
    empty = f"SELECT {names} FROM {kind.name} WITH NO DATA"  # noqa: S608 - names of ours
    return f"CREATE TEMPORARY TABLE IF NOT EXISTS {staging_name(kind)} ON COMMIT DELETE ROWS AS {empty}"


@cache
def _copy_text(kind: Kind) -> str:
    return f"COPY pg_temp.{staging_name(kind)} ({_quoted(kind)}) FROM STDIN (FORMAT BINARY)"


def _quoted(kind: Kind) -> str:
    return ", ".join(f'"{name}"' for name in names_of(kind))


@cache
def _types_of(kind: Kind) -> tuple[str, ...]:
    """What binary data is sent as: it has to be what the columns are."""
    return tuple(_type_of(column.type) for column in table_of(kind).c)


def _type_of(column: Any) -> str:
    return next((name for kind, name in _TYPES if isinstance(column, kind)), "text")
