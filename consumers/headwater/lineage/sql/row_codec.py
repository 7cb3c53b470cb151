"""Converts rows to column values and back."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from sqlalchemy import Connection, select

from headwater.lineage.rows import KINDS, GroupValues, Row, RowKind, RowTimes
from headwater.lineage.rows.columns import NO_STAMP
from headwater.lineage.rows.memory import RowDigest
from headwater.lineage.sql.tables import stamp_name, table_of


def row_parameters(row: Row) -> dict[str, Any]:
    """Return a row's values by column name."""
    kind = row.kind
    values: dict[str, Any] = {"id": row.id}
    values.update(zip((field.name for field in kind.key), row.key, strict=True))
    values.update(zip((field.name for field in kind.maxima), row.maxima, strict=True))
    values.update(zip(kind.time_columns, row.times, strict=False))
    for group, group_values in zip(kind.groups, row.groups or kind.empty_groups, strict=True):
        values[stamp_name(group.name)] = NO_STAMP if group_values is None else group_values.stamp
        column_values: Sequence[Any] = (None,) * len(group.columns) if group_values is None else group_values.values
        values.update(zip((field.name for field in group.columns), column_values, strict=True))
    if kind.has_bits:
        values["bits"] = row.bits
    return values


def decode_row(kind: RowKind, values: Any) -> Row:
    """Return the row of a table's column values."""
    key = tuple(_bytes_value(values[field.name]) for field in kind.key)
    maxima = tuple(_bytes_value(values[field.name]) for field in kind.maxima)
    span = RowTimes(*(values[name] for name in kind.time_columns))
    groups: list[GroupValues | None] = []
    for group in kind.groups:
        stamp = bytes(values[stamp_name(group.name)])
        group_values = GroupValues(stamp, tuple(_bytes_value(values[field.name]) for field in group.columns))
        groups.append(None if stamp == NO_STAMP else group_values)
    return Row(kind, bytes(values["id"]), key, maxima, span, tuple(groups), values["bits"] if kind.has_bits else 0)


def select_rows(connection: Connection, kind: RowKind) -> Iterator[Row]:
    """Stream all rows of a kind."""
    found = connection.execute(select(table_of(kind)), execution_options={"yield_per": 1_000})
    return (decode_row(kind, each) for each in found.mappings())


def store_digest(connection: Connection) -> str:
    """Return the digest of all rows that events wrote. The writer's own tables aren't part of it."""
    digest = RowDigest()
    for kind in KINDS:
        for row in select_rows(connection, kind):
            digest.add(row)
    return digest.text


def _bytes_value(value: Any) -> Any:
    return bytes(value) if isinstance(value, (bytearray, memoryview)) else value
