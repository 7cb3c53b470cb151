"""Events that couldn't be stored. One that comes again is the same letter: it is found by where it lay."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any, Final
from uuid import UUID

from sqlalchemy import Connection, bindparam, select, update

from headwater.events.envelope import EventId
from headwater.lineage.bulk.api import DeadLetter, LetterState, Partition, Reason
from headwater.lineage.bulk.positions import now
from headwater.lineage.bulk.putting import nothing, put
from headwater.lineage.bulk.tables import LETTERS
from headwater.lineage.law.telling import clean
from headwater.lineage.rows import hash_of

STRAIGHT: Final = "jdbc"
"""The source of what comes straight from a driver: there the producer and its number say where something lay."""
MIRRORED: Final = frozenset({"kafka"})
"""The sources that have a topic for them."""


def keep(connection: Connection, letters: Iterable[DeadLetter]) -> None:
    """One that is there already stays as it is, whatever became of it."""
    rows = {row["id"]: row for row in map(_row, letters)}
    put(connection, LETTERS, list(rows.values()), nothing)


def letters_in(
    connection: Connection, state: LetterState | None = LetterState.WAITING
) -> Iterator[tuple[str, DeadLetter]]:
    """With what each is called, in order of when they came. Streamed: they hold their bytes."""
    wanted = select(LETTERS).order_by(LETTERS.c.at, LETTERS.c.id)
    if state is not None:
        wanted = wanted.where(LETTERS.c.state == state.value)
    found = connection.execute(wanted, execution_options={"yield_per": 100})
    return ((bytes(row["id"]).hex(), _letter(row)) for row in found.mappings())


def letter_of(connection: Connection, name: str) -> DeadLetter | None:
    found = connection.execute(select(LETTERS).where(LETTERS.c.id == bytes.fromhex(name))).mappings().first()
    return None if found is None else _letter(found)


def mark(connection: Connection, name: str, state: LetterState, words: str | None = None) -> bool:
    """After it was tried again, or was dropped. WAITING counts an attempt. False if there is none of this name."""
    values: dict[str, Any] = {"state": state.value}
    if state is not LetterState.DROPPED:
        values["attempts"] = LETTERS.c.attempts + 1
    if words is not None:
        values["words"] = clean(words)
    return connection.execute(update(LETTERS).where(LETTERS.c.id == bytes.fromhex(name)).values(values)).rowcount > 0


def unsent(connection: Connection, cluster: str, topic_name: str, most: int) -> list[tuple[str, DeadLetter]]:
    """Those of a topic that aren't on its dead-letter topic yet, in order of when they came."""
    column = LETTERS.c
    wanted = select(LETTERS).where(
        column.mirrored_at.is_(None), column.cluster == cluster, column.topic_name == topic_name
    )
    found = connection.execute(wanted.order_by(column.at, column.id).limit(most)).mappings()
    return [(bytes(row["id"]).hex(), _letter(row)) for row in found]


def sent(connection: Connection, names: Iterable[str]) -> None:
    rows = [{"letter": bytes.fromhex(name)} for name in sorted(names)]
    if rows:
        is_it = LETTERS.c.id == bindparam("letter")
        connection.execute(update(LETTERS).where(is_it).values(mirrored_at=now()), rows)


def name_of(letter: DeadLetter) -> str:
    """What a letter is called here."""
    return _id(letter).hex()


def _id(letter: DeadLetter) -> bytes:
    where, event = letter.partition, letter.event
    producer = None if event is None else event.producer.bytes
    place = (letter.source, where.cluster, where.topic, where.number, letter.position)
    return hash_of(LETTERS.name, place if letter.source != STRAIGHT else (*place, producer))


def _row(letter: DeadLetter) -> dict[str, Any]:
    event, moment = letter.event, now()
    return {
        "id": _id(letter),
        "state": letter.state.value,
        "reason": letter.reason.value,
        "words": clean(letter.words),
        "source": letter.source,
        "cluster": letter.partition.cluster,
        "topic": letter.partition.topic,
        "topic_name": clean(letter.topic_name),
        "partition_number": letter.partition.number,
        "position": letter.position,
        "producer": None if event is None else event.producer.bytes,
        "sequence": None if event is None else event.sequence,
        "kind": clean(letter.kind),
        "appended": letter.appended,
        "at": moment,
        "attempts": letter.attempts,
        "record_key": letter.key,
        "headers": json.dumps([[name, value.hex()] for name, value in letter.headers]),
        "data": letter.data,
        "mirrored_at": None if letter.source in MIRRORED else moment,
    }


def _letter(row: Any) -> DeadLetter:
    producer, key = row["producer"], row["record_key"]
    return DeadLetter(
        reason=Reason(row["reason"]),
        words=row["words"],
        source=row["source"],
        partition=Partition(row["cluster"], row["topic"], row["partition_number"]),
        position=row["position"],
        data=bytes(row["data"]),
        topic_name=row["topic_name"],
        key=None if key is None else bytes(key),
        headers=tuple((name, bytes.fromhex(value)) for name, value in json.loads(row["headers"])),
        event=None if producer is None else EventId(UUID(bytes=bytes(producer)), row["sequence"]),
        kind=row["kind"],
        appended=row["appended"],
        state=LetterState(row["state"]),
        attempts=row["attempts"],
    )
