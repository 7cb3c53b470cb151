"""Makes whole events of records: decodes them, and merges the parts of those that were split.

The offset that may be committed stays before the first part of an event that isn't complete. An event of which a part
doesn't come is given up, so that it doesn't hold back offsets for ever: when its producer went on behind it, when its
bus was quiet about it for ten minutes, or when too many bytes wait. Then it is a dead letter; if the missing part comes
after all, it is sent then.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from headwater.consumers.sources import BusRecord
from headwater.errors import HeadwaterError, TerminalError
from headwater.events import Event
from headwater.events.avro import Codec, DecodeError, UnknownEvent
from headwater.events.envelope import EventId, EventPart
from headwater.events.errors import Problem
from headwater.events.jobs import JobLineage
from headwater.events.parts import merge_parts
from headwater.forwarders.api import BusEvent
from headwater.forwarders.dead_letters import Rejection
from headwater.forwarders.known_lineage import LineageCache
from headwater.forwarders.state import ForwarderState
from headwater.lineage.bulk import BusPartition, DeadLetterReason, DeadLetterState
from headwater.lineage.bulk.dead_letters import dead_letter_id

PATIENCE: Final = 600.0
"""Seconds without a new part after which an event is given up, as gaps are inferred after ten minutes."""
MOST_BYTES: Final = 64 << 20
"""Bytes of parts that wait for others."""
_MOST_MERGED: Final = 1_000
"""So many merged events are remembered, because a producer may send parts again."""
_INCOMPLETE: Final = DeadLetterReason.INCOMPLETE


class AssembledBatch(NamedTuple):
    """What became of records. They are all in it, but for parts that wait and those that were given up."""

    events: list[BusEvent]
    rejections: list[Rejection]


@dataclass
class _PartialEvent:
    """The parts of one event that are there."""

    kind: str
    of: int
    records: dict[int, BusRecord] = field(default_factory=dict)
    """By the number of the part."""
    touched: float = 0.0

    @property
    def first(self) -> BusRecord:
        return min(self.records.values(), key=lambda each: each.offset)

    @property
    def size(self) -> int:
        return sum(len(each.data) for each in self.records.values())


class EventAssembler:
    """Makes events of the records of one forwarder, for one thread at a time."""

    def __init__(
        self,
        state: ForwarderState,
        lineage: LineageCache,
        *,
        bus: tuple[str, str] = ("", ""),
        patience: float = PATIENCE,
        most_bytes: int = MOST_BYTES,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`bus` is the kind of the source, and its topic."""
        self._state = state
        self._lineage = lineage
        self._letters = state.letters
        self._bus = bus
        self._patience = patience
        self._most_bytes = most_bytes
        self._clock = clock
        self._codec = Codec()
        self._partial: dict[EventId, _PartialEvent] = {}
        self._merged: dict[EventId, tuple[BusRecord, ...]] = {}
        """Events that aren't confirmed yet."""
        self.given_up = 0
        """Dead letters that were made here."""

    @property
    def partial(self) -> int:
        """How many events wait for parts."""
        return len(self._partial)

    def add(self, records: Sequence[BusRecord]) -> AssembledBatch:
        """Return the events that are complete now. The job lineage among them is on disk then."""
        batch = AssembledBatch([], [])
        for record in records:
            self._add(record, batch)
        self._lineage.remember(each.event for each in batch.events if isinstance(each.event, JobLineage))
        return batch

    def confirm(self, postponed: Collection[EventId] = ()) -> None:
        """Record that what was returned is sent, but for some: parts of it that come again are copies."""
        merged, self._merged = (
            self._merged,
            {event: self._merged[event] for event in postponed if event in self._merged},
        )
        if len(merged) > len(self._merged):
            self.record_merged(event for event in merged if event not in self._merged)

    def give_up_late(self) -> None:
        """Give up events that no part came for in a long time. Call it only while the bus can be read."""
        now = self._clock()
        for event in [event for event, each in self._partial.items() if now - each.touched >= self._patience]:
            self._give_up(event, "for a long time")

    def held(self) -> Mapping[BusPartition, int]:
        """Return the offset of each partition that may not be passed."""
        offsets: dict[BusPartition, int] = {}
        for records in (*(each.records.values() for each in self._partial.values()), *self._merged.values()):
            first = min(records, key=lambda each: each.offset)
            offsets[first.partition] = min(first.offset, offsets.get(first.partition, first.offset))
        return offsets

    def records_of(self, each: BusEvent) -> tuple[BusRecord, ...]:
        """Return the records of an event that isn't confirmed yet."""
        return self._merged.get(each.event.event_id, (each.record,))

    def forget(self, partition: BusPartition) -> None:
        """Forget parts of a partition that somebody else reads now."""
        for event in [event for event, each in self._partial.items() if each.first.partition == partition]:
            del self._partial[event]
        self._merged = {event: each for event, each in self._merged.items() if each[0].partition != partition}

    def _add(self, record: BusRecord, batch: AssembledBatch) -> None:
        try:
            found = self._decode(record)
        except DecodeError as e:
            batch.rejections.append(Rejection(DeadLetterReason.UNDECODABLE, str(e), (record,)))
            return
        event = found.known if isinstance(found, UnknownEvent) else found
        if isinstance(found, UnknownEvent):
            batch.rejections.append(_unknown(record, found))
        if event is None:
            return
        self._give_up_passed(event, record)
        if event.part is None:
            batch.events.append(BusEvent(event, record))
        elif not isinstance(found, UnknownEvent):  # else the letter has it
            self._add_part(event, event.part, record, batch)

    def _decode(self, record: BusRecord) -> Event | UnknownEvent:
        try:
            return self._codec.decode(record.data)
        except (HeadwaterError, MemoryError):
            raise
        except Exception as e:  # whatever bytes do to the decoder
            raise DecodeError(Problem.MALFORMED, f"{type(e).__name__}: {e}") from e

    def _add_part(self, event: Event, part: EventPart, record: BusRecord, batch: AssembledBatch) -> None:
        whole = EventId(event.producer, event.sequence - part.number + 1)
        if self._is_merged(whole):
            return
        waiting = self._partial.get(whole)
        if waiting is None:
            if self._add_late_part(whole, record, part.of):
                return
            waiting = self._partial[whole] = _PartialEvent(event.kind, part.of)
        waiting.touched = self._clock()
        waiting.records.setdefault(part.number, record)
        if part.number > 1 and part.number - 1 not in waiting.records:
            self._give_up(whole, f"before part {part.number}")
        elif len(waiting.records) == part.of:
            self._merge(whole, batch)
        elif sum(each.size for each in self._partial.values()) > self._most_bytes:
            oldest = min(self._partial, key=lambda each: self._partial[each].touched)
            self._give_up(oldest, f"while {self._most_bytes >> 20} MiB of parts came")

    def _merge(self, whole: EventId, batch: AssembledBatch) -> None:
        waiting = self._partial[whole]
        records = tuple(waiting.records[number] for number in sorted(waiting.records))
        try:
            event = merge_records(self._codec, records)
        except TerminalError as e:
            self._reject(whole, DeadLetterReason.UNDECODABLE, str(e))
            return
        del self._partial[whole]
        self._merged[whole] = records
        batch.events.append(BusEvent(event, records[-1]))

    def _give_up_passed(self, event: Event, record: BusRecord) -> None:
        """Give up events that their producer has gone past: in a partition its records are in order."""
        passed = [
            whole
            for whole, each in self._partial.items()
            if whole.producer == event.producer
            and event.sequence >= whole.sequence + each.of
            and each.first.partition == record.partition
        ]
        for whole in passed:
            self._give_up(whole, "before later events of its producer")

    def _give_up(self, whole: EventId, when: str) -> None:
        waiting = self._partial[whole]
        missing = [number for number in range(1, waiting.of + 1) if number not in waiting.records]
        words = f"of its {waiting.of} parts {len(missing)} didn't come {when}, the first of them is part {missing[0]}"
        self._reject(whole, _INCOMPLETE, words)

    def _reject(self, whole: EventId, reason: DeadLetterReason, words: str) -> None:
        """Make a dead letter at once: a part that comes after all belongs to it."""
        waiting = self._partial[whole]
        records = tuple(waiting.records.values())
        self._letters.add_dead_letters(Rejection(reason, words, records, whole, waiting.kind).letters(*self._bus))
        self.given_up += 1
        del self._partial[whole]

    def _add_late_part(self, whole: EventId, record: BusRecord, of: int) -> bool:
        """Put a part to the letters of its event, if there are any. Once all parts are there, they are retried."""
        statement = "SELECT 1 FROM dead_letters WHERE reason = ? AND producer = ? AND sequence = ?"
        if not self._state.select(statement, _INCOMPLETE.value, whole.producer.bytes, whole.sequence):
            return False
        with closing(self._letters.dead_letters(None)) as found:
            there = {name: each for name, each in found if (each.event, each.reason) == (whole, _INCOMPLETE)}
        first = next(iter(there.values()))
        late = Rejection(_INCOMPLETE, first.error, (record,), whole, first.kind)
        self._letters.add_dead_letters(late.letters(*self._bus))
        names = {*there, *map(dead_letter_id, late.letters(*self._bus))}
        if len(names) >= of:
            self._letters.mark_dead_letters(names, DeadLetterState.RETRY)
        return True

    def _is_merged(self, whole: EventId) -> bool:
        if whole in self._merged:
            return True
        statement = "SELECT 1 FROM merged WHERE producer = ? AND sequence = ?"
        return bool(self._state.select(statement, whole.producer.bytes, whole.sequence))

    def record_merged(self, events: Iterable[EventId]) -> None:
        with self._state.transaction() as connection:
            statement = "INSERT OR IGNORE INTO merged (producer, sequence) VALUES (?, ?)"
            connection.executemany(statement, [(each.producer.bytes, each.sequence) for each in events])
            connection.execute(
                "DELETE FROM merged WHERE number <= (SELECT max(number) FROM merged) - ?", (_MOST_MERGED,)
            )


def merge_records(codec: Codec, records: Sequence[BusRecord]) -> Event:
    """Return the event of these records: one, or all parts of one. Raises a TerminalError if that isn't possible."""
    decoded = [codec.decode(each.data) for each in records]
    events = [each.known if isinstance(each, UnknownEvent) else each for each in decoded]
    whole: dict[int, Event] = {}
    for event in events:
        if event is None:
            raise DecodeError(Problem.MALFORMED, "this version of headwater doesn't know its kind or schema")
        whole.setdefault(event.part.number if event.part else 1, event)
    return merge_parts(whole.values())


def _unknown(record: BusRecord, found: UnknownEvent) -> Rejection:
    what = "schema" if found.kind is None else "version" if found.known is not None else "kind"
    words = f"its {what} isn't known to this version of headwater"
    if found.known is not None:
        words = f"{words}; what is known of it was sent"
    event = None if found.known is None else found.known.event_id
    return Rejection(DeadLetterReason.UNKNOWN, words, (record,), event, found.kind)
