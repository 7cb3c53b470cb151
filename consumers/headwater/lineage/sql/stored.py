"""Rows on their way into a table, and as they come back."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from sqlalchemy import Connection, select

from headwater.lineage.law.state import Digest
from headwater.lineage.rows import KINDS, Kind, Row, Span, Told
from headwater.lineage.rows.kinds import NO_SPAN
from headwater.lineage.sql.tables import UNTOLD, stamp_name, table_of


def parameters_of(row: Row) -> dict[str, Any]:
    """The values of a row by its columns."""
    kind = row.kind
    values: dict[str, Any] = {"id": row.id}
    values.update(zip((field.name for field in kind.key), row.key, strict=True))
    values.update(zip((field.name for field in kind.fixed), row.fixed, strict=True))
    if kind.mortal:
        values.update(row.span._asdict())
    for group, told in zip(kind.groups, row.groups or kind.blank, strict=True):
        values[stamp_name(group.name)] = UNTOLD if told is None else told.stamp
        given: Sequence[Any] = (None,) * len(group.columns) if told is None else told.values
        values.update(zip((field.name for field in group.columns), given, strict=True))
    if kind.bits:
        values["bits"] = row.bits
    return values


def row_of(kind: Kind, values: Any) -> Row:
    """The row that such columns hold."""
    key = tuple(_plain(values[field.name]) for field in kind.key)
    fixed = tuple(_plain(values[field.name]) for field in kind.fixed)
    span = Span(values["first"], values["last"], values["deleted"]) if kind.mortal else NO_SPAN
    groups: list[Told | None] = []
    for group in kind.groups:
        stamp = bytes(values[stamp_name(group.name)])
        told = Told(stamp, tuple(_plain(values[field.name]) for field in group.columns))
        groups.append(None if stamp == UNTOLD else told)
    return Row(kind, bytes(values["id"]), key, fixed, span, tuple(groups), values["bits"] if kind.bits else 0)


def rows_in(connection: Connection, kind: Kind) -> Iterator[Row]:
    """All of a kind, streamed."""
    found = connection.execute(select(table_of(kind)), execution_options={"yield_per": 1_000})
    return (row_of(kind, each) for each in found.mappings())


def digest_of(connection: Connection) -> str:
    """Of all rows that events make; what the writer keeps for itself isn't in it."""
    digest = Digest()
    for kind in KINDS:
        for row in rows_in(connection, kind):
            digest.add(row)
    return digest.text


def _plain(value: Any) -> Any:
    return bytes(value) if isinstance(value, (bytearray, memoryview)) else value
