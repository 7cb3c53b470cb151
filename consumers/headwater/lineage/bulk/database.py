"""The second interface, in a database."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import chain
from uuid import UUID

from sqlalchemy import Connection, Engine

from headwater.lineage.bulk import letters, positions, timeline
from headwater.lineage.bulk.api import (
    NOTHING,
    DeadLetter,
    Instant,
    LetterState,
    Merged,
    Partition,
    Told,
    Work,
)
from headwater.lineage.bulk.epochs import epoch, hold_epoch
from headwater.lineage.bulk.merging import merge_rows
from headwater.lineage.bulk.transactions import Transactions
from headwater.lineage.rows.tables import TOMBSTONE
from headwater.lineage.sql.troubles import StoreDataError, troubles


class DatabaseBulkMeta:
    """For any thread. An iterator holds a connection until it has come to its end, or is closed."""

    def __init__(self, engine: Engine, where: str | None = None) -> None:
        """`where` is what errors call the database."""
        self._engine = engine
        self._transactions = Transactions(engine, where)

    def merge(self, work: Work) -> Merged:
        rows, retries = self._transactions.run(lambda connection: _written(connection, work))
        return Merged(rows, (), retries)

    def merge_events(self, events: Sequence[Told], work: Work = NOTHING) -> Merged:
        try:
            return self.merge(_with_rows(work, events))
        except StoreDataError:
            apart = self._one_by_one(events)
        last = self.merge(replace(work, letters=(*work.letters, *apart.refused)))
        return Merged(apart.rows + last.rows, apart.refused, apart.retries + last.retries)

    def _one_by_one(self, events: Sequence[Told]) -> Merged:
        """Halves, each in a transaction of its own, down to those that are refused by themselves."""
        merged, refused = Merged(0), list[DeadLetter]()
        halves = [events[len(events) // 2 :], events[: len(events) // 2]] if len(events) > 1 else [events]
        while halves:
            some = halves.pop()
            try:
                made = self.merge(_with_rows(NOTHING, some))
                merged = Merged(merged.rows + made.rows, (), merged.retries + made.retries)
            except StoreDataError as e:
                if len(some) == 1:
                    refused.append(some[0].letter(str(e)))
                elif some:
                    middle = len(some) // 2
                    halves += [some[middle:], some[:middle]]
        return replace(merged, refused=tuple(refused))

    def offsets(self, group: str, cluster: str | None = None) -> Mapping[Partition, int]:
        with self._connected() as connection:
            return positions.offsets_of(connection, group, cluster)

    def instants(self, writer: UUID) -> Iterator[Instant]:
        with self._connected() as connection:
            yield from timeline.instants_of(connection, writer)

    def unfinished(self) -> Iterator[Instant]:
        with self._connected() as connection:
            yield from timeline.unfinished_in(connection)

    def letters(self, state: LetterState | None = LetterState.WAITING) -> Generator[tuple[str, DeadLetter], None, None]:
        with self._connected() as connection:
            yield from letters.letters_in(connection, state)

    def letter(self, name: str) -> DeadLetter | None:
        with self._connected() as connection:
            return letters.letter_of(connection, name)

    def mark_letter(self, name: str, state: LetterState, words: str | None = None) -> bool:
        return self._transactions.run(lambda connection: letters.mark(connection, name, state, words))[0]

    def unsent_letters(self, cluster: str, topic_name: str, most: int) -> Sequence[tuple[str, DeadLetter]]:
        return self._transactions.run(lambda connection: letters.unsent(connection, cluster, topic_name, most))[0]

    def letters_sent(self, names: Iterable[str]) -> None:
        told = list(names)
        self._transactions.run(lambda connection: letters.sent(connection, told))

    def epoch(self) -> int:
        with self._connected() as connection:
            return epoch(connection)

    def close(self) -> None:
        self._engine.dispose()

    @contextmanager
    def _connected(self) -> Generator[Connection, None, None]:
        """For reading. Who reads waits for a database that is away as who writes does."""
        with troubles(self._transactions.where), self._engine.connect() as connection:
            yield connection


def _with_rows(work: Work, events: Iterable[Told]) -> Work:
    return replace(work, rows=(*work.rows, *chain.from_iterable(each.rows for each in events)))


def _written(connection: Connection, work: Work) -> int:
    """In one order, whoever writes: rows, then what is about them."""
    if work.epoch is not None:
        hold_epoch(connection, work.epoch, alone=any(row.kind == TOMBSTONE for row in work.rows))
    rows = merge_rows(connection, work.rows)
    letters.keep(connection, work.letters)
    positions.ingested(connection, work.ingests)
    positions.advance(connection, work.offsets)
    timeline.reached(connection, work.instants)
    return rows
