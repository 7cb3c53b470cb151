"""Mutated messages among good ones on a bus, and whether a store has all that is right of them, and only that."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

from confluent_kafka import Producer
from sqlalchemy import Engine, select

from headwater.events.avro import Codec, DecodeError, UnknownEvent
from headwater.events.envelope import Event
from headwater.journal import LocalLog
from headwater.lineage.bulk import DeadLetterReason
from headwater.lineage.mapping import map_event
from headwater.lineage.rows import Row, RowSet
from headwater.lineage.sql.writer_tables import DEAD_LETTERS
from tests.kit.events.mutations import Message
from tests.kit.topics import each_message
from tests.kit.waiting import PATIENCE
from tests.kit.writers.store_check import check_store

_ROOM = {"message.max.bytes": 1_040_000, "queue.buffering.max.kbytes": 1 << 20}
REFUSABLE = 2_000
"""Bytes of an event in which nothing is too large for any database."""
_MANY = 5
_AT_ONCE = 5_000


class Placed(NamedTuple):
    """A message as it lies on a bus."""

    partition: int
    position: int
    data: bytes
    appended: int | None

    def __str__(self) -> str:
        return f"{self.partition}/{self.position} ({len(self.data)} bytes: {self.data[:60]!r})"


class Letter(NamedTuple):
    reason: DeadLetterReason
    digest: bytes


Letters = dict[tuple[int, int], Letter]
"""By their coordinates."""


class Found(NamedTuple):
    """What was reported and became of it."""

    messages: int
    rows: int
    letters: Counter[str]

    def __str__(self) -> str:
        counts = ", ".join(f"{count} {reason}" for reason, count in sorted(self.letters.items()))
        return f"{self.messages} messages: {self.rows} rows, dead letters: {counts}"


def fill_log(directory: Path, messages: Iterable[Message]) -> None:
    """There are no tombstones in a log: those are empty there."""
    with LocalLog.open(directory).writer() as journal:
        for each in messages:
            journal.append(each or b"")


def fill_topic(config: Mapping[str, Any], topic: str, partitions: int, messages: Iterable[bytes]) -> None:
    """Each other empty one is a tombstone."""
    producer = Producer({**config, "enable.idempotence": True, "linger.ms": 20, **_ROOM})
    for number, each in enumerate(messages):
        value = each if each or number % 2 else None
        producer.produce(topic, value, partition=number % partitions)
        if number % _AT_ONCE == 0:
            assert producer.flush(PATIENCE) == 0
    assert producer.flush(PATIENCE) == 0


def in_log(directory: Path) -> Iterator[Placed]:
    """By the log's own reader, without a group."""
    log = LocalLog.open(directory)
    for name in log.partitions():
        reader, number = log.reader(name), int(name.rpartition("-")[2])
        with reader.tail(reader.first_offset()) as tail:
            while batch := tail.read().records:
                yield from (Placed(number, each.offset, each.value, each.time) for each in batch)


def on_topic(config: Mapping[str, Any], topic: str) -> Iterator[Placed]:
    """By a plain consumer."""
    for each in each_message(config, topic):
        place = (each.partition() or 0, each.offset() or 0)
        yield Placed(*place, each.value() or b"", each.timestamp()[1] * 1_000)


class Checking:
    """What is an event is what codec and law say, and not the quick way.

    A database may refuse what is right: such a one has to be a dead letter that says so, and isn't among the rows.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._codec = Codec()
        self._state = RowSet()
        self._letters = _letters_in(engine)
        self._left = dict(self._letters)
        self._faults: list[str] = []

    def check(self, emitted: Iterable[Placed]) -> Found:
        """An AssertionError says what is wrong."""
        count, rows = 0, list[Row]()
        for count, each in enumerate(emitted, 1):  # noqa: B007 - it is how many there were
            rows += self._rows(each)
            if len(rows) > _AT_ONCE:
                self._state.merge(rows)
                rows.clear()
        self._state.merge(rows)
        self._faults += [f"a letter of nothing, {letter.reason.value} {place}" for place, letter in self._left.items()]
        assert not self._faults, f"{len(self._faults)} faults: {self._faults[:_MANY]}"
        reasons = Counter(letter.reason.value for letter in self._letters.values())
        return Found(count, check_store(self._engine, self._state), reasons)

    def _rows(self, each: Placed) -> list[Row]:
        """Of the truth."""
        letter = self._left.pop((each.partition, each.position), None)
        rows, reason = self._judged(each)
        allowed = {None, DeadLetterReason.REFUSED} if reason is None else {reason}
        given = None if letter is None else letter.reason
        if given not in allowed:
            self._faults.append(f"{each} is {given}, and should be {reason}")
        if letter is not None and letter.digest != sha256(each.data).digest():
            self._faults.append(f"the letter of {each} has other bytes")
        if given is DeadLetterReason.REFUSED and len(each.data) < REFUSABLE:
            self._faults.append(f"{each} is refused, and nothing in it is large")
        return [] if given is DeadLetterReason.REFUSED else rows

    def _judged(self, each: Placed) -> tuple[list[Row], DeadLetterReason | None]:
        """What it tells, and why it has to be a letter."""
        try:
            found = self._codec.decode(each.data)
        except DecodeError:
            return [], DeadLetterReason.UNDECODABLE
        is_unknown = isinstance(found, UnknownEvent)
        event = found.known if isinstance(found, UnknownEvent) else found
        try:
            rows = list(map_event(event, each.appended)) if isinstance(event, Event) else []
        except Exception:  # noqa: BLE001 - whatever it is, the others are none the worse for it
            return [], DeadLetterReason.INVALID
        return rows, DeadLetterReason.UNKNOWN if is_unknown else None


def _letters_in(engine: Engine) -> Letters:
    """Those that wait, by the table's own columns."""
    chosen = select(
        DEAD_LETTERS.c.partition_number, DEAD_LETTERS.c.position, DEAD_LETTERS.c.reason, DEAD_LETTERS.c.data
    )
    found: Letters = {}
    with engine.connect() as connection:
        for number, position, reason, data in connection.execute(chosen.execution_options(yield_per=1_000)):
            found[number, position] = Letter(DeadLetterReason(reason), sha256(bytes(data)).digest())
    return found
