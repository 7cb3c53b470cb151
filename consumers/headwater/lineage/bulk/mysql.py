"""MySQL and MariaDB: as many rows in a statement as the server takes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from sqlalchemy import Connection

from headwater.lineage.bulk.packing import Packed, Pile
from headwater.lineage.bulk.statements import upsert_text
from headwater.lineage.sql.troubles import StoreDataError

_PACKET: Final = "headwater.bulk.packet"
_DRIVERS_OWN: Final = 1_100_000
"""The driver makes statements of up to a million bytes; what takes more takes those."""
_ASIDE: Final = 20_000
"""Of each packet, for the statement itself."""
_NUMBER: Final = 24
_WORST: Final = 4
"""Bytes of a character; what has to be escaped has two, and is one."""


def merge(connection: Connection, pile: Pile) -> None:
    packet = _packet(connection)
    text = upsert_text(pile.kind, connection.dialect.name)
    rows = pile.ordered()
    longest = max(map(_size, rows))
    if longest > packet:
        _check(connection, text, rows, packet)
    for some in _slices(rows, packet) if packet < _DRIVERS_OWN else [rows]:
        connection.exec_driver_sql(text, some)


def _packet(connection: Connection) -> int:
    """How long a statement may be. It is the connection's, and doesn't change. Values that a column can't hold are to
    be errors, and not to be made smaller without a word, whatever the server's own mode is."""
    if _PACKET not in connection.info:
        told = connection.exec_driver_sql("SELECT @@SESSION.max_allowed_packet").scalar_one()
        connection.exec_driver_sql("SET SESSION sql_mode = CONCAT_WS(',', @@SESSION.sql_mode, 'STRICT_ALL_TABLES')")
        connection.info[_PACKET] = int(told) - _ASIDE
    return int(connection.info[_PACKET])


def _check(connection: Connection, text: str, rows: Sequence[Packed], packet: int) -> None:
    """The server says nothing of a row that is too long: it hangs up."""
    cursor = connection.connection.cursor()
    for row in rows:
        if _size(row) > packet and (length := len(cursor.mogrify(text, row).encode())) > packet:
            raise StoreDataError(
                f"a row of {length} bytes is longer than max_allowed_packet lets pass: "
                f"SET GLOBAL max_allowed_packet = {2 * length + _ASIDE}"
            )


def _slices(rows: Sequence[Packed], packet: int) -> Iterator[list[Packed]]:
    some, size = list[Packed](), 0
    for row in rows:
        length = _size(row)
        if some and size + length > packet:
            yield some
            some, size = [], 0
        some.append(row)
        size += length
    if some:
        yield some


def _size(row: Packed) -> int:
    """At most."""
    return sum(_WORST * len(value) + 12 if isinstance(value, (str, bytes)) else _NUMBER for value in row)
