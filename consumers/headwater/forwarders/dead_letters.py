"""The dead letters of a forwarder: events that its target refuses, or that nobody here can read.

They wait in a table of the forwarder's state, which is that of a store. Records of a bus become events for a forwarder
here, or letters. Between batches, whoever runs the forwarder sends those again that somebody marked for a retry.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from itertools import islice
from typing import Final, NamedTuple

from headwater.consumers.sources import BusRecord
from headwater.errors import HeadwaterError, TerminalError
from headwater.events import Event
from headwater.events.avro import Codec, DecodeError, UnknownEvent
from headwater.events.envelope import EventId
from headwater.events.errors import Problem
from headwater.events.jobs import JobLineage
from headwater.forwarders.api import BusEvent
from headwater.forwarders.delivery import BatchDelivery
from headwater.forwarders.isolation import DeliveryResult
from headwater.forwarders.known_lineage import LineageCache
from headwater.forwarders.metrics import ForwarderMetrics
from headwater.lineage.bulk import DeadLetter, DeadLetterReason, DeadLetterState
from headwater.lineage.bulk.dead_letters import DeadLetters

WAITING_STATES: Final = (DeadLetterState.WAITING, DeadLetterState.RETRY)
_MAX_ERROR_LENGTH: Final = 2_000


class Rejection(NamedTuple):
    """An event that becomes a dead letter."""

    reason: DeadLetterReason
    error: str
    records: tuple[BusRecord, ...]
    event: EventId | None = None
    kind: str | None = None

    def letters(self, source: str, topic: str) -> Iterator[DeadLetter]:
        """Yield the letters. `source` and `topic` are what the bus is called."""
        error = self.error
        if len(error) > _MAX_ERROR_LENGTH:
            error = f"{error[: _MAX_ERROR_LENGTH - 1]}…"
        for record in self.records:
            yield DeadLetter(
                self.reason,
                error,
                source,
                record.partition,
                record.offset,
                record.data,
                topic_name=topic,
                key=record.key,
                headers=record.headers,
                event=self.event,
                kind=self.kind,
                append_time=record.append_time,
            )


def record_of(letter: DeadLetter) -> BusRecord:
    """Restore the record as it came from the bus."""
    return BusRecord(letter.data, letter.partition, letter.position, letter.append_time, letter.key, letter.headers)


class ForwarderBatch(NamedTuple):
    """What became of records: each is an event, or a dead letter, or both where only a part of it is known here."""

    events: list[BusEvent]
    rejections: list[Rejection]


def decode_records(codec: Codec, records: Sequence[BusRecord], lineage: LineageCache) -> ForwarderBatch:
    """Return the events of these records. The job lineage among them is on disk then."""
    batch = ForwarderBatch([], [])
    for record in records:
        _add(codec, record, batch)
    lineage.remember(event.event for event in batch.events if isinstance(event.event, JobLineage))
    return batch


def decode_record(codec: Codec, record: BusRecord) -> Event:
    """Return the event of a record. Raises a TerminalError if that isn't possible."""
    found = codec.decode(record.data)
    event = found.known if isinstance(found, UnknownEvent) else found
    if event is None:
        raise DecodeError(Problem.MALFORMED, "this version of headwater doesn't know its kind or schema")
    return event


def _add(codec: Codec, record: BusRecord, batch: ForwarderBatch) -> None:
    try:
        found = codec.decode(record.data)
    except DecodeError as e:
        batch.rejections.append(Rejection(DeadLetterReason.UNDECODABLE, str(e), (record,)))
        return
    except (HeadwaterError, MemoryError):
        raise
    except Exception as e:  # noqa: BLE001 - whatever bytes do to the decoder
        error = str(DecodeError(Problem.MALFORMED, f"{type(e).__name__}: {e}"))
        batch.rejections.append(Rejection(DeadLetterReason.UNDECODABLE, error, (record,)))
        return
    event = found.known if isinstance(found, UnknownEvent) else found
    if isinstance(found, UnknownEvent):
        batch.rejections.append(_unknown(record, found))
    if event is not None:
        batch.events.append(BusEvent(event, record))


def _unknown(record: BusRecord, found: UnknownEvent) -> Rejection:
    what = "schema" if found.kind is None else "version" if found.known is not None else "kind"
    words = f"its {what} isn't known to this version of headwater"
    if found.known is not None:
        words = f"{words}; what is known of it was sent"
    event = None if found.known is None else found.known.event_id
    return Rejection(DeadLetterReason.UNKNOWN, words, (record,), event, found.kind)


_SECONDS: Final = 1.0
"""How often somebody's wish to retry dead letters is looked for."""
_AGAIN_SECONDS: Final = 30.0
"""How long dead letters are left alone after the target took none."""
_AT_ONCE: Final = 100


class LetterRetry:
    """Retries the dead letters of one forwarder. A letter that the target fails on doesn't hold up the bus."""

    def __init__(self, letters: DeadLetters, delivery: BatchDelivery, metrics: ForwarderMetrics) -> None:
        self._letters = letters
        self._delivery = delivery
        self._metrics = metrics
        self._codec = Codec()
        self._due_at = 0.0
        self.has_more = False
        """Whether there may be more letters to send at once."""

    async def run_if_due(self) -> None:
        """Send some of the letters that are marked, in the order in which they became such. The bus is polled, and a
        wish to stop is seen, before the next ones."""
        if time.monotonic() < self._due_at:
            return
        letters = self._marked_letters()
        is_taken = not letters or await self._retry(letters)
        self.has_more = is_taken and len(letters) >= _AT_ONCE
        wait = _SECONDS if is_taken else _AGAIN_SECONDS
        self._due_at = time.monotonic() + (0.0 if self.has_more else wait)

    def _marked_letters(self) -> list[tuple[str, DeadLetter]]:
        """Return the next letters that are marked."""
        if not self._letters.count_dead_letters(DeadLetterState.RETRY):
            return []
        with closing(self._letters.dead_letters(DeadLetterState.RETRY)) as found:
            return list(islice(found, _AT_ONCE))

    async def _retry(self, letters: Sequence[tuple[str, DeadLetter]]) -> bool:
        """Send these letters. Those that can't be sent wait again. Return False if the target took none: then they are
        left as they are, for later."""
        failed: dict[str, str] = {}
        name_of: dict[int, str] = {}
        events: list[BusEvent] = []
        for name, letter in letters:
            found = self._event_of(letter)
            if isinstance(found, TerminalError):
                failed[name] = str(found)
            else:
                name_of[id(found)] = name
                events.append(found)
        result, is_taken = await self._delivery.try_once(events) if events else (DeliveryResult(), True)
        failed.update({name_of[id(unsent.event)]: unsent.error for unsent in result.unsent})
        left = {name_of[id(each)] for each in result.postponed}
        if is_taken:
            failed.update(dict.fromkeys(left, str(self._metrics.last_error)))
            left.clear()
        self._settle([name for name, _ in letters if name not in left], failed)
        return not left

    def _settle(self, names: Sequence[str], failed: Mapping[str, str]) -> None:
        sent = [name for name in names if name not in failed]
        self._letters.remove_dead_letters(sent)
        for name, error in failed.items():
            self._letters.mark_dead_letters([name], DeadLetterState.WAITING, error)
        self._metrics.retried += len(sent)

    def _event_of(self, letter: DeadLetter) -> BusEvent | TerminalError:
        record = record_of(letter)
        try:
            return BusEvent(decode_record(self._codec, record), record)
        except TerminalError as e:
            return e
