"""Copies all rows of one store into another one, whatever databases they are in: keys are the same everywhere.

The copy has the offsets of the store that it was made from, so a bus is read on from there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any, Final, TypeVar
from uuid import UUID

from sqlalchemy import Connection, func, inspect, select

from headwater.lineage.bulk import BusPartition, ConsumerOffset, DatabaseBulkMeta, IngestProgress, WriteBatch
from headwater.lineage.bulk.dead_letters import select_dead_letters
from headwater.lineage.rows import KINDS
from headwater.lineage.sql import select_rows, table_of
from headwater.lineage.sql.writer_tables import INGESTS, OFFSETS

T = TypeVar("T")
_PORTION: Final = 5_000
_LETTERS: Final = 50
"""Dead letters in a transaction; each can have a megabyte."""


def count_rows(connection: Connection) -> int:
    """Return how many rows events have written. A store of an older version may lack a table."""
    there = {*inspect(connection).get_table_names()}
    counts = [select(func.count()).select_from(table_of(kind)) for kind in KINDS if kind.name in there]
    return sum(connection.execute(each).scalar_one() for each in counts)


def copy_store(source: Connection, target: DatabaseBulkMeta, report: Callable[[int], None]) -> int:
    """Copy everything that a connection sees, and return how many rows events had written.

    A connection to a store that is only read sees it as it is at its first question. `report` is called with the number
    of rows so far. Copying again changes nothing, so an interrupted copy is begun again.
    """
    count = 0
    for kind in KINDS:
        rows = select_rows(source, kind)
        while some := list(islice(rows, _PORTION)):
            target.merge(WriteBatch(rows=some))
            count += len(some)
            report(count)
    letters = (letter for _, letter in select_dead_letters(source, None))
    for some_letters in _portions(letters, _LETTERS):
        target.merge(WriteBatch(dead_letters=some_letters))
    target.merge(WriteBatch(ingests=list(_ingests(source)), offsets=list(_offsets(source))))
    return count


def _portions(values: Iterator[T], size: int) -> Iterator[list[T]]:
    while some := list(islice(values, size)):
        yield some


def _offsets(connection: Connection) -> Iterator[ConsumerOffset]:
    for row in connection.execute(select(OFFSETS)):
        yield ConsumerOffset(row.consumer_group, _partition(row), row.next_offset)


def _ingests(connection: Connection) -> Iterator[IngestProgress]:
    for row in connection.execute(select(INGESTS).order_by(INGESTS.c.stored_at, INGESTS.c.id)):
        producer = None if row.producer is None else UUID(bytes=bytes(row.producer))
        yield IngestProgress(row.source, _partition(row), row.stored_until, row.topic_name, producer)


def _partition(row: Any) -> BusPartition:
    return BusPartition(row.cluster, row.topic, row.partition_number)
