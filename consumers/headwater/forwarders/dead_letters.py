"""The dead letters of a forwarder: events that its target refuses, or that nobody here can read.

They wait in the forwarder's state. Whoever runs the forwarder sends those that somebody marked for a retry.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final, NamedTuple
from uuid import UUID

from headwater.consumers.sources import BusRecord
from headwater.errors import TerminalError
from headwater.events.envelope import EventId
from headwater.forwarders.state import ForwarderState
from headwater.lineage.bulk import BusPartition

_MAX_ERROR_LENGTH: Final = 2_000
_MOST_PARTS: Final = 10_000


class LetterReason(str, Enum):
    """Why an event couldn't be sent."""

    UNDECODABLE = "UNDECODABLE"
    UNKNOWN = "UNKNOWN"
    """This version doesn't know the event's kind or schema."""
    INCOMPLETE = "INCOMPLETE"
    """Parts of it never came."""
    REFUSED = "REFUSED"
    """The target refused it."""
    FAULT = "FAULT"
    """The forwarder failed on it."""
    STUCK = "STUCK"
    """The target failed on it each time, and took others."""


class LetterState(str, Enum):
    """What is to become of a letter."""

    WAITING = "WAITING"
    RETRY = "RETRY"
    """Somebody asked for a retry, or the last missing part came."""


class Rejection(NamedTuple):
    """An event that becomes a dead letter."""

    reason: LetterReason
    error: str
    records: tuple[BusRecord, ...]
    """Those of its parts, of which some may be missing."""
    event: EventId | None = None
    """That of the first part, if it was split."""
    kind: str | None = None


@dataclass(frozen=True)
class ForwarderLetter:
    """A dead letter with everything that a retry needs."""

    id: int
    state: LetterState
    reason: LetterReason
    error: str
    kind: str | None
    event: EventId | None
    attempts: int
    created: float
    records: tuple[BusRecord, ...]

    @property
    def place(self) -> str:
        first = self.records[0]
        return f"{first.partition.topic}/{first.partition.number}@{first.offset}"


class UnknownLetterError(TerminalError):
    """There is no dead letter with this number."""


class LetterBox:
    """The dead letters in a forwarder's state."""

    def __init__(self, state: ForwarderState) -> None:
        self._state = state

    def add(self, rejections: Iterable[Rejection]) -> int:
        """Keep events, and return how many are new. A record that is in a letter already makes no second one."""
        with self._state.transaction() as connection:
            return sum(self._add(connection, each) for each in rejections)

    def _add(self, connection: Any, rejection: Rejection) -> bool:
        known = [row[0] for each in rejection.records if (row := self._letter_of(connection, each)) is not None]
        if known:
            statement = "UPDATE letters SET error = ?, reason = ? WHERE id = ?"
            connection.execute(statement, (_shortened(rejection.error), rejection.reason.value, known[0]))
            letter = known[0]
        else:
            event = rejection.event
            values = (
                *(LetterState.WAITING.value, rejection.reason.value, _shortened(rejection.error), rejection.kind),
                *((None, None) if event is None else (event.producer.bytes, event.sequence)),
                *(1, time.time()),
            )
            letter = connection.execute(f"INSERT INTO letters {_COLUMNS} VALUES (?,?,?,?,?,?,?,?)", values).lastrowid  # noqa: S608
        self._add_records(connection, letter, rejection.records)
        return not known

    @staticmethod
    def _letter_of(connection: Any, record: BusRecord) -> tuple[int] | None:
        statement = (
            "SELECT letter FROM letter_records WHERE cluster = ? AND topic = ? AND partition = ? AND position = ?"
        )
        found: tuple[int] | None = connection.execute(statement, (*record.partition, record.offset)).fetchone()
        return found

    @staticmethod
    def _add_records(connection: Any, letter: int, records: Iterable[BusRecord]) -> None:
        rows = [
            (letter, *each.partition, each.offset, each.data, each.append_time, each.key, _headers_text(each))
            for each in records
        ]
        connection.executemany("INSERT OR IGNORE INTO letter_records VALUES (?,?,?,?,?,?,?,?,?)", rows)

    def add_late_part(self, event: EventId, record: BusRecord, of: int) -> bool:
        """Put a part to the letter of its event, if there is one. Once all parts are there, the letter is retried."""
        with self._state.transaction() as connection:
            statement = "SELECT id FROM letters WHERE producer = ? AND sequence = ? AND reason = ?"
            found = connection.execute(
                statement, (event.producer.bytes, event.sequence, LetterReason.INCOMPLETE.value)
            ).fetchone()
            if found is None:
                return False
            self._add_records(connection, found[0], [record])
            count = connection.execute("SELECT count(*) FROM letter_records WHERE letter = ?", found).fetchone()[0]
            if count >= of:
                connection.execute("UPDATE letters SET state = ? WHERE id = ?", (LetterState.RETRY.value, found[0]))
            return True

    def letters(self, state: LetterState | None = None, *, most: int = 100, after: int = 0) -> list[ForwarderLetter]:
        """Return the next letters, in the order in which they were put here."""
        wanted = "" if state is None else "state = ? AND "
        values: Sequence[Any] = (after, most) if state is None else (state.value, after, most)
        rows = self._state.select(f"SELECT * FROM letters WHERE {wanted}id > ? ORDER BY id LIMIT ?", *values)  # noqa: S608
        return [self._letter(row) for row in rows]

    def get(self, number: int) -> ForwarderLetter:
        rows = self._state.select("SELECT * FROM letters WHERE id = ?", number)
        if not rows:
            raise UnknownLetterError(f"there is no dead letter {number}: it was sent or dropped, or never was")
        return self._letter(rows[0])

    def _letter(self, row: Sequence[Any]) -> ForwarderLetter:
        number, state, reason, error, kind, producer, sequence, attempts, created = row
        event = None if producer is None else EventId(UUID(bytes=producer), sequence)
        statement = "SELECT * FROM letter_records WHERE letter = ? ORDER BY partition, position LIMIT ?"
        records = tuple(map(_record, self._state.select(statement, number, _MOST_PARTS)))
        about = (LetterState(state), LetterReason(reason), error, kind, event, attempts, created)
        return ForwarderLetter(number, *about, records)

    def count(self, state: LetterState | None = None) -> int:
        if state is None:
            return int(self._state.select("SELECT count(*) FROM letters")[0][0])
        return int(self._state.select("SELECT count(*) FROM letters WHERE state = ?", state.value)[0][0])

    def mark_for_retry(self, numbers: Iterable[int] | None = None) -> None:
        """Mark these letters, or all: whoever runs the forwarder sends them."""
        with self._state.transaction() as connection:
            if numbers is None:
                connection.execute("UPDATE letters SET state = ?", (LetterState.RETRY.value,))
            else:
                rows = [(LetterState.RETRY.value, number) for number in numbers]
                connection.executemany("UPDATE letters SET state = ? WHERE id = ?", rows)

    def settle(self, sent: Iterable[int], failed: Mapping[int, str]) -> None:
        """Remove letters that a retry sent; those that failed again wait, with the new reason."""
        with self._state.transaction() as connection:
            connection.executemany("DELETE FROM letters WHERE id = ?", [(each,) for each in sent])
            rows = [(LetterState.WAITING.value, _shortened(words), number) for number, words in failed.items()]
            connection.executemany(
                "UPDATE letters SET state = ?, error = ?, attempts = attempts + 1 WHERE id = ?", rows
            )

    def drop(self, numbers: Iterable[int]) -> None:
        """Remove letters for good."""
        self.settle(numbers, {})


_COLUMNS: Final = "(state, reason, error, kind, producer, sequence, attempts, created)"


def _shortened(words: str) -> str:
    return words if len(words) <= _MAX_ERROR_LENGTH else f"{words[: _MAX_ERROR_LENGTH - 1]}…"


def _headers_text(record: BusRecord) -> str:
    return json.dumps([(name, value.hex()) for name, value in record.headers])


def _record(row: Sequence[Any]) -> BusRecord:
    _, cluster, topic, number, offset, data, append_time, key, headers = row
    read = tuple((name, bytes.fromhex(value)) for name, value in json.loads(headers))
    return BusRecord(data, BusPartition(cluster, topic, number), offset, append_time, key, read)
