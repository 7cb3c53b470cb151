"""Maps the records of a spool to rows. Records that can't be stored become dead letters with all their bytes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from hashlib import blake2b
from typing import Final
from uuid import UUID

from headwater.errors import HeadwaterError
from headwater.events.clock import micros_of
from headwater.events.envelope import Event
from headwater.lineage.bulk import BusPartition, DeadLetter, DeadLetterReason, EventRows, IngestProgress
from headwater.lineage.bulk.dead_letters import DIRECT_SOURCE
from headwater.lineage.mapping import map_event
from headwater.spi import EventRecord, RecordError

_NOWHERE: Final = BusPartition("", "")


@dataclass
class DecodedRecords:
    """The rows and dead letters of a batch."""

    events: list[EventRows] = field(default_factory=list)
    dead_letters: list[DeadLetter] = field(default_factory=list)
    until: dict[UUID, int] = field(default_factory=dict)
    """The time of each producer's last event."""

    @property
    def ingests(self) -> list[IngestProgress]:
        return [
            IngestProgress(DIRECT_SOURCE, _NOWHERE, until, producer=producer) for producer, until in self.until.items()
        ]


def decode_records(records: Iterable[EventRecord]) -> DecodedRecords:
    reading = DecodedRecords()
    for record in records:
        _read(record, reading)
    return reading


def _read(record: EventRecord, reading: DecodedRecords) -> None:
    try:
        _understand(record, reading)
    except HeadwaterError as e:  # it isn't what was written, or never was an event
        reading.dead_letters.append(to_dead_letter(record, DeadLetterReason.UNDECODABLE, str(e)))
    except (ValueError, TypeError, KeyError) as e:
        words = f"it can't be mapped to rows: {type(e).__name__}: {e}"
        reading.dead_letters.append(to_dead_letter(record, DeadLetterReason.INVALID, words))


def _understand(record: EventRecord, reading: DecodedRecords) -> None:
    """Map one record. An event of a later version is stored as far as it is understood, and is also kept as a dead
    letter for a version that knows it."""
    found = record.event
    event = found if isinstance(found, Event) else found.known
    if event is not None:
        rows = tuple(map_event(event))
        reading.events.append(EventRows(rows, _refused_letter(record)))
        reading.until[event.producer] = max(micros_of(event.time), reading.until.get(event.producer, 0))
    if not isinstance(found, Event):
        words = "a later version of headwater wrote it: retry it with that version"
        reading.dead_letters.append(to_dead_letter(record, DeadLetterReason.UNKNOWN, words))


def _refused_letter(record: EventRecord) -> Callable[[str], DeadLetter]:
    return partial(to_dead_letter, record, DeadLetterReason.REFUSED)


def to_dead_letter(record: EventRecord, reason: DeadLetterReason, words: str) -> DeadLetter:
    try:
        event, kind = record.event_id, record.kind
    except RecordError:
        event, kind = None, None
    # What doesn't say whose it is, is known by its content.
    where = _NOWHERE if event else BusPartition("", blake2b(record.data, digest_size=16).hexdigest())
    return DeadLetter(
        reason=reason,
        error=words,
        source=DIRECT_SOURCE,
        partition=where,
        position=event.sequence if event else record.position,
        data=record.data,
        key=record.key,
        headers=tuple(record.headers),
        event=event,
        kind=kind,
    )
