"""Rows as Arrow data: what tasks make of the shares of a bucket, and how a table's rows come out of it again."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from headwater.consumers.spark.pipeline.shares import MergedShares, Share
from headwater.consumers.spark.pipeline.writing_tasks import TaskReply
from headwater.lineage.bulk.dead_letters import letter_row
from headwater.lineage.lake.merging import lake_tables
from headwater.lineage.rows import Row
from headwater.lineage.sql.writer_tables import DEAD_LETTERS

SCHEMA: Final = "name string, data binary"
"""What tasks hand back: the name of a table, and rows of it. Without a name it is a `BucketReply`."""
_AT_ONCE: Final = 10_000
_ARROW_TYPES: Final = {"STRING": "string", "BIGINT": "int64", "INT": "int32", "BINARY": "binary"}


class TableShare(NamedTuple):
    """How many rows of a table a task has, and the least and the greatest value of the column by which MERGE skips
    files; zeros where there is none."""

    rows: int
    least: int = 0
    greatest: int = 0

    def with_other(self, other: TableShare) -> TableShare:
        least, greatest = min(self.least, other.least), max(self.greatest, other.greatest)
        return TableShare(self.rows + other.rows, least, greatest)


@dataclass
class BucketReply(TaskReply):
    """What the task of a bucket has made."""

    tables: dict[str, TableShare] = field(default_factory=dict)
    """The tables that it has rows of."""


def bucket_task(rows: Iterable[Any]) -> Iterator[tuple[str, bytearray]]:
    """Merge the shares of a bucket by key. Yield its rows as Arrow data, and what was done.

    All of a bucket is merged before any of it goes on, because a MERGE wants each key once.
    """
    held, reply = MergedShares(), BucketReply(-1)
    for _, data in rows:
        share = Share.unpack(data)
        reply.add_reached(dict(share.reached))
        reply.gaps += share.gaps
        held.add(share, len(data))
    reply.tombstones += held.tombstones.values()
    for name, values in tuples_by_table(held.rows.values()).items():
        reply.rows += len(values)
        reply.tables[name] = _share(name, values)
        yield from pack(name, values)
    if held.letters:
        reply.add_letters(held.letters)
        letters = {row["id"]: row for row in map(letter_row, held.letters)}
        reply.tables[str(DEAD_LETTERS.name)] = TableShare(len(letters))
        yield from pack(DEAD_LETTERS.name, tuples_of(DEAD_LETTERS.name, letters.values()))
    yield "", bytearray(pickle.dumps(reply, pickle.HIGHEST_PROTOCOL))


def tuples_by_table(rows: Iterable[Row]) -> dict[str, list[Sequence[Any]]]:
    """Return rows as tuples in the order of their tables' columns."""
    found: dict[str, list[Sequence[Any]]] = {}
    for row in rows:
        found.setdefault(row.kind.name, []).append(row.values)
    return found


def tuples_of(name: str, rows: Iterable[dict[str, Any]]) -> list[Sequence[Any]]:
    """Return rows by column names as tuples in the order of a table's columns."""
    columns = list(lake_tables()[name].columns)
    return [[row[column] for column in columns] for row in rows]


def pack(name: str, values: Sequence[Sequence[Any]]) -> Iterator[tuple[str, bytearray]]:
    """Yield a table's rows as Arrow data."""
    import pyarrow as pa  # noqa: PLC0415 - an executor of Spark has it

    table = lake_tables()[name]
    columns = table.columns
    schema = pa.schema([(column, getattr(pa, _ARROW_TYPES[kind])()) for column, kind in columns.items()])
    for start in range(0, len(values), _AT_ONCE):
        some = zip(*values[start : start + _AT_ONCE], strict=True)
        arrays = [pa.array(each, kind) for each, kind in zip(some, schema.types, strict=True)]
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, schema) as stream:
            stream.write_batch(pa.RecordBatch.from_arrays(arrays, schema=schema))
        yield table.name, bytearray(sink.getvalue())


def unpacking_task() -> Callable[[Iterable[Any]], Iterator[Any]]:
    """Return the function by which tasks turn Arrow data of one table into its rows."""

    def unpack(batches: Iterable[Any]) -> Iterator[Any]:
        import pyarrow as pa  # noqa: PLC0415

        for batch in batches:
            for data in batch.column(0):
                with pa.ipc.open_stream(data.as_buffer()) as stream:
                    yield from stream

    return unpack


def _share(name: str, values: Sequence[Sequence[Any]]) -> TableShare:
    table = lake_tables()[name]
    if table.partition is None:
        return TableShare(len(values))
    at = list(table.columns).index(table.partition)
    found = [each[at] for each in values]
    return TableShare(len(values), min(found), max(found))
