"""Merges rows into MySQL and MariaDB, with as many rows in a statement as `max_allowed_packet` allows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from sqlalchemy import Connection

from headwater.lineage.bulk.packing import PackedRows
from headwater.lineage.rows.model import RowTuple
from headwater.lineage.sql.errors import StoreDataError
from headwater.lineage.sql.upsert import upsert_text

_PACKET: Final = "headwater.bulk.packet"
_DRIVERS_OWN: Final = 1_100_000
"""The driver itself limits statements to a million bytes; a server that takes more needs no splitting here."""
_ASIDE: Final = 20_000
"""Bytes of each packet that are reserved for the statement's text."""
_NUMBER: Final = 24
_WORST: Final = 4
"""The most bytes that a character takes; escaping needs two."""


def merge(connection: Connection, packed: PackedRows) -> None:
    packet = _packet(connection)
    text = upsert_text(packed.kind, connection.dialect.name)
    rows = packed.rows
    longest = max(map(_size, rows))
    if longest > packet:
        _check(connection, text, rows, packet)
    for some in _slices(rows, packet) if packet < _DRIVERS_OWN else [rows]:
        connection.exec_driver_sql(text, some)


def _packet(connection: Connection) -> int:
    """Return the usable packet size of a connection, and make the session strict: a value that doesn't fit has to be an
    error, whatever the server's default mode."""
    if _PACKET not in connection.info:
        limit = connection.exec_driver_sql("SELECT @@SESSION.max_allowed_packet").scalar_one()
        connection.exec_driver_sql("SET SESSION sql_mode = CONCAT_WS(',', @@SESSION.sql_mode, 'STRICT_ALL_TABLES')")
        connection.info[_PACKET] = int(limit) - _ASIDE
    return int(connection.info[_PACKET])


def _check(connection: Connection, text: str, rows: Sequence[RowTuple], packet: int) -> None:
    """Raise a StoreDataError for a row that is too long. The server itself would just close the connection."""
    cursor = connection.connection.cursor()
    for row in rows:
        if _size(row) > packet and (length := len(cursor.mogrify(text, row).encode())) > packet:
            raise StoreDataError(
                f"a row of {length} bytes is longer than max_allowed_packet allows: "
                f"SET GLOBAL max_allowed_packet = {2 * length + _ASIDE}"
            )


def _slices(rows: Sequence[RowTuple], packet: int) -> Iterator[list[RowTuple]]:
    some, size = list[RowTuple](), 0
    for row in rows:
        length = _size(row)
        if some and size + length > packet:
            yield some
            some, size = [], 0
        some.append(row)
        size += length
    if some:
        yield some


def _size(row: RowTuple) -> int:
    """Return an upper bound of a row's size in bytes."""
    return sum(_WORST * len(value) + 12 if isinstance(value, (str, bytes)) else _NUMBER for value in row)
