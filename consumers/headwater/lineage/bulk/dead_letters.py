"""The table of dead letters. A letter's id is where its event lay, so the same event is the same letter when it comes
again.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any, Final
from uuid import UUID

from sqlalchemy import Connection, select, update

from headwater.events.envelope import EventId
from headwater.lineage.bulk.api import BusPartition, DeadLetter, DeadLetterReason, DeadLetterState
from headwater.lineage.bulk.insert_or_update import insert_or_update, keep_existing
from headwater.lineage.bulk.positions import now_micros
from headwater.lineage.mapping.row_builder import clean_text
from headwater.lineage.rows import hash_key
from headwater.lineage.sql.writer_tables import DEAD_LETTERS

DIRECT_SOURCE: Final = "jdbc"
"""The source of events that come directly from a driver. Producer and sequence number say where such an event lay."""


def insert_dead_letters(connection: Connection, letters: Iterable[DeadLetter]) -> None:
    """Insert dead letters. A letter that exists stays as it is."""
    rows = {row["id"]: row for row in map(letter_row, letters)}
    insert_or_update(connection, DEAD_LETTERS, list(rows.values()), keep_existing)


def select_dead_letters(
    connection: Connection, state: DeadLetterState | None = DeadLetterState.WAITING
) -> Iterator[tuple[str, DeadLetter]]:
    """Yield dead letters with their ids, in the order of their arrival. The rows are streamed, because they contain the
    events' bytes."""
    query = select(DEAD_LETTERS).order_by(DEAD_LETTERS.c.created_at, DEAD_LETTERS.c.id)
    if state is not None:
        query = query.where(DEAD_LETTERS.c.state == state.value)
    found = connection.execute(query, execution_options={"yield_per": 100})
    return ((bytes(row["id"]).hex(), _letter(row)) for row in found.mappings())


def find_dead_letter(connection: Connection, name: str) -> DeadLetter | None:
    found = connection.execute(select(DEAD_LETTERS).where(DEAD_LETTERS.c.id == bytes.fromhex(name))).mappings().first()
    return None if found is None else _letter(found)


def mark_dead_letter(connection: Connection, name: str, state: DeadLetterState, error: str | None = None) -> bool:
    """Set a letter's state. WAITING counts an attempt. Return False if there is no letter of this id."""
    values: dict[str, Any] = {"state": state.value}
    if state is not DeadLetterState.DROPPED:
        values["attempts"] = DEAD_LETTERS.c.attempts + 1
    if error is not None:
        values["error"] = clean_text(error)
    return (
        connection.execute(update(DEAD_LETTERS).where(DEAD_LETTERS.c.id == bytes.fromhex(name)).values(values)).rowcount
        > 0
    )


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
