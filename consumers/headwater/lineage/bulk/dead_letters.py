"""The table of dead letters. A letter's id is where its event lay, so the same event is the same letter when it comes
again.
"""

from __future__ import annotations

import json
import re
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Final
from uuid import UUID

from sqlalchemy import Connection, Engine, Executable, bindparam, delete, func, select, true, update

from headwater.events.envelope import EventId
from headwater.lineage.bulk.api import BusPartition, DeadLetter, DeadLetterReason, DeadLetterState
from headwater.lineage.bulk.positions import now_micros
from headwater.lineage.bulk.transactions import Transactions
from headwater.lineage.mapping.keys import clean_text
from headwater.lineage.rows import hash_key
from headwater.lineage.sql.errors import translate_errors
from headwater.lineage.sql.upsert import insert_or_update, keep_existing
from headwater.lineage.sql.writer_tables import DEAD_LETTERS

DIRECT_SOURCE: Final = "jdbc"
"""The source of events that come directly from a driver. Producer and sequence number say where such an event lay."""


def insert_dead_letters(connection: Connection, letters: Iterable[DeadLetter]) -> None:
    """Insert dead letters. A letter that exists stays as it is."""
    rows = {row["id"]: row for row in map(letter_row, letters)}
    insert_or_update(connection, DEAD_LETTERS, list(rows.values()), keep_existing)


def select_dead_letters(connection: Connection, state: DeadLetterState | None) -> Iterator[tuple[str, DeadLetter]]:
    """Yield letters with their ids, in the order of their arrival. The rows are streamed, because they have the events'
    bytes."""
    column = DEAD_LETTERS.c
    query = select(DEAD_LETTERS).where(true() if state is None else column.state == state.value)
    query = query.order_by(column.created_at, column.partition_number, column.position, column.id)
    found = connection.execute(query, execution_options={"yield_per": 100}).mappings()
    return ((bytes(row["id"]).hex(), _letter(row)) for row in found)


class DeadLetters:
    """The table of dead letters in one database, for any thread: that of a store, or of a forwarder."""

    def __init__(self, engine: Engine, where: str | None = None) -> None:
        """`where` is what error messages call the database."""
        self._engine = engine
        self._transactions = Transactions(engine, where)

    def add_dead_letters(self, letters: Iterable[DeadLetter]) -> None:
        """Keep letters. One that exists stays as it is."""
        kept = list(letters)
        self._transactions.run(lambda connection: insert_dead_letters(connection, kept))

    def dead_letters(
        self, state: DeadLetterState | None = DeadLetterState.WAITING
    ) -> Generator[tuple[str, DeadLetter], None, None]:
        """Yield letters with their ids, in the order of their arrival. A connection is held until the end."""
        with self.connect_for_reading() as connection:
            yield from select_dead_letters(connection, state)

    def dead_letter(self, name: str) -> DeadLetter | None:
        """Return the letter of this id; None if there is none."""
        if not _NAME.fullmatch(name):
            return None
        query = select(DEAD_LETTERS).where(DEAD_LETTERS.c.id == bytes.fromhex(name))
        with self.connect_for_reading() as connection:
            found = connection.execute(query).mappings().first()
        return None if found is None else _letter(found)

    def count_dead_letters(self, *states: DeadLetterState) -> int:
        query = select(func.count()).select_from(DEAD_LETTERS).where(DEAD_LETTERS.c.state.in_(states))
        with self.connect_for_reading() as connection:
            return int(connection.execute(query).scalar_one())

    def mark_dead_letters(self, names: Iterable[str], state: DeadLetterState, error: str | None = None) -> None:
        """Set the state of letters. WAITING counts an attempt; `error` is why that was in vain."""
        values: dict[str, Any] = {"state": state.value}
        if state is DeadLetterState.WAITING:
            values["attempts"] = DEAD_LETTERS.c.attempts + 1
        if error is not None:
            values["error"] = clean_text(error)
        self._change(update(DEAD_LETTERS).where(_IS_IT).values(values), names)

    def remove_dead_letters(self, names: Iterable[str]) -> None:
        """Remove letters of which a retry succeeded."""
        self._change(delete(DEAD_LETTERS).where(_IS_IT), names)

    def _change(self, statement: Executable, names: Iterable[str]) -> None:
        rows = [{"letter": bytes.fromhex(name)} for name in sorted(set(names))]
        if rows:
            self._transactions.run(lambda connection: connection.execute(statement, rows))

    @contextmanager
    def connect_for_reading(self) -> Generator[Connection, None, None]:
        """Connect for reading, with translated errors."""
        with translate_errors(self._transactions.where), self._engine.connect() as connection:
            yield connection


_NAME: Final = re.compile("[0-9a-f]{32}")
_IS_IT: Final = DEAD_LETTERS.c.id == bindparam("letter")


def dead_letter_id(letter: DeadLetter) -> str:
    """Return the id of a dead letter, as hexadecimal text."""
    return _id(letter).hex()


def _id(letter: DeadLetter) -> bytes:
    where, event = letter.partition, letter.event
    producer = None if event is None else event.producer.bytes
    place = (letter.source, where.cluster, where.topic, where.number, letter.position)
    return hash_key(DEAD_LETTERS.name, place if letter.source != DIRECT_SOURCE else (*place, producer))


def letter_row(letter: DeadLetter) -> dict[str, Any]:
    event = letter.event
    return {
        "id": _id(letter),
        "state": letter.state.value,
        "reason": letter.reason.value,
        "error": clean_text(letter.error),
        "source": letter.source,
        "cluster": letter.partition.cluster,
        "topic": letter.partition.topic,
        "topic_name": clean_text(letter.topic_name),
        "partition_number": letter.partition.number,
        "position": letter.position,
        "producer": None if event is None else event.producer.bytes,
        "sequence": None if event is None else event.sequence,
        "kind": clean_text(letter.kind),
        "append_time": letter.append_time,
        "created_at": now_micros(),
        "attempts": letter.attempts,
        "record_key": letter.key,
        "headers": json.dumps([[name, value.hex()] for name, value in letter.headers]),
        "data": letter.data,
    }


def _letter(row: Any) -> DeadLetter:
    producer, key = row["producer"], row["record_key"]
    return DeadLetter(
        reason=DeadLetterReason(row["reason"]),
        error=row["error"],
        source=row["source"],
        partition=BusPartition(row["cluster"], row["topic"], row["partition_number"]),
        position=row["position"],
        data=bytes(row["data"]),
        topic_name=row["topic_name"],
        key=None if key is None else bytes(key),
        headers=tuple((name, bytes.fromhex(value)) for name, value in json.loads(row["headers"])),
        event=None if producer is None else EventId(UUID(bytes=bytes(producer)), row["sequence"]),
        kind=row["kind"],
        append_time=row["append_time"],
        state=DeadLetterState(row["state"]),
        attempts=row["attempts"],
    )
