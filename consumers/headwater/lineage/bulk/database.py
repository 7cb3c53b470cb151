"""`BulkLineageMeta` in a database."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Final
from uuid import UUID

from sqlalchemy import Connection, Engine

from headwater.lineage.bulk import mysql, positions, postgres, timeline
from headwater.lineage.bulk.api import (
    EMPTY_BATCH,
    BusPartition,
    DeadLetter,
    EventRows,
    MergeResult,
    WriteBatch,
    WriterInstant,
)
from headwater.lineage.bulk.dead_letters import DeadLetters, insert_dead_letters
from headwater.lineage.bulk.marks import advance_mark, bump_epoch, hold_epoch, read_epoch
from headwater.lineage.bulk.packing import PackedRows, execute_many, pack_rows
from headwater.lineage.rows import Row
from headwater.lineage.rows.tables import CATALOG, CATALOG_NAME, TOMBSTONE
from headwater.lineage.sql.errors import StoreDataError
from headwater.lineage.sql.pip5_views import follow_catalogs
from headwater.lineage.sql.upsert import MYSQL


class DatabaseBulkMeta(DeadLetters):
    """Implements `BulkLineageMeta` for any thread. An iterator holds a connection until it ends or is closed."""

    def __init__(self, engine: Engine, where: str | None = None) -> None:
        """`where` is what error messages call the database."""
        super().__init__(engine, where)
        self._catalogs: set[bytes] = set()
        """Rows of catalogs that were merged: the views depend on which catalogs there are."""

    def merge(self, work: WriteBatch) -> MergeResult:
        (rows, number), retries = self._transactions.run(lambda connection: self._write(connection, work))
        if work.mark is not None:
            work.mark.acknowledge(number)
        return MergeResult(rows, (), retries)

    def _write(self, connection: Connection, work: WriteBatch) -> tuple[int, int]:
        """Write a batch, and update the views where it brings a catalog that this object hasn't seen."""
        packed = (*pack_rows(work.rows), *work.packed)
        written = _write_batch(connection, replace(work, rows=(), packed=packed))
        catalogs = {row[0] for each in packed if each.kind in _OF_CATALOGS for row in each.rows} - self._catalogs
        if catalogs:
            follow_catalogs(connection)
            self._catalogs |= catalogs
        return written

    def merge_events(self, events: Sequence[EventRows], work: WriteBatch = EMPTY_BATCH) -> MergeResult:
        try:
            return self.merge(_with_rows(work, events))
        except StoreDataError:
            apart = self._one_by_one(events, WriteBatch(mark=work.mark))
        last = self.merge(replace(work, dead_letters=(*work.dead_letters, *apart.refused)))
        return MergeResult(apart.rows + last.rows, apart.refused, apart.retries + last.retries)

    def _one_by_one(self, events: Sequence[EventRows], empty: WriteBatch) -> MergeResult:
        """Find the refused events by bisection. Each half is merged in a transaction of its own."""
        merged, refused = MergeResult(0), list[DeadLetter]()
        halves = [events[len(events) // 2 :], events[: len(events) // 2]] if len(events) > 1 else [events]
        while halves:
            some = halves.pop()
            try:
                result = self.merge(_with_rows(empty, some))
                merged = MergeResult(merged.rows + result.rows, (), merged.retries + result.retries)
            except StoreDataError as e:
                if len(some) == 1:
                    refused.append(some[0].dead_letter(str(e)))
                elif some:
                    middle = len(some) // 2
                    halves += [some[middle:], some[:middle]]
        return replace(merged, refused=tuple(refused))

    def offsets(self, group: str, cluster: str | None = None) -> Mapping[BusPartition, int]:
        with self.connect_for_reading() as connection:
            return positions.select_offsets(connection, group, cluster)

    def instants(self, writer: UUID) -> Iterator[WriterInstant]:
        with self.connect_for_reading() as connection:
            yield from timeline.select_instants(connection, writer)

    def unfinished_instants(self) -> Iterator[WriterInstant]:
        with self.connect_for_reading() as connection:
            yield from timeline.select_unfinished(connection)

    def epoch(self) -> int:
        with self.connect_for_reading() as connection:
            return read_epoch(connection)

    def close(self) -> None:
        self._engine.dispose()


def _with_rows(work: WriteBatch, events: Iterable[EventRows]) -> WriteBatch:
    return replace(work, rows=(*work.rows, *chain.from_iterable(each.rows for each in events)))


def _write_batch(connection: Connection, work: WriteBatch) -> tuple[int, int]:
    """Write a batch in a fixed order: rows, then what the writer records about them. Return how many keys the rows
    have, and the number for the mark."""
    number = 0 if work.mark is None else advance_mark(connection, work.mark)
    if work.epoch is not None:
        hold_epoch(connection, work.epoch, alone=any(each.kind == TOMBSTONE for each in work.packed))
    rows = merge_packed(connection, work.packed)
    insert_dead_letters(connection, work.dead_letters)
    positions.advance_ingests(connection, work.ingests)
    positions.advance_offsets(connection, work.offsets)
    timeline.write_instants(connection, work.instants)
    return rows, number


_OF_CATALOGS: Final = (CATALOG, CATALOG_NAME)
_WAYS: Final[dict[str, Callable[[Connection, PackedRows], None]]] = {
    "postgresql": postgres.merge,
    "sqlite": execute_many,
    **dict.fromkeys(MYSQL, mysql.merge),
}


def merge_rows(connection: Connection, rows: Iterable[Row]) -> int:
    """Merge rows and return how many keys they have. Call it once per transaction: several calls would write rows in
    different orders, and transactions could deadlock."""
    return merge_packed(connection, pack_rows(rows))


def merge_packed(connection: Connection, packed: Sequence[PackedRows]) -> int:
    """Merge packed rows, and return how many there are."""
    way = _WAYS[connection.dialect.name]
    if any(each.kind == TOMBSTONE for each in packed):
        bump_epoch(connection)
    for each in packed:
        way(connection, each)
    return sum(len(each.rows) for each in packed)
