"""Records of a spool, as what they tell and as dead letters: whatever can't be stored is kept with its bytes."""

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
from headwater.lineage.bulk import DeadLetter, Ingest, Partition, Reason, Told
from headwater.lineage.bulk.letters import STRAIGHT
from headwater.lineage.law import changes
from headwater.spi import Record, RecordError

_NOWHERE: Final = Partition("", "")


@dataclass
class Reading:
    """What a batch tells."""

    told: list[Told] = field(default_factory=list)
    letters: list[DeadLetter] = field(default_factory=list)
    until: dict[UUID, int] = field(default_factory=dict)
    """The time of each producer's last event."""

    @property
    def ingests(self) -> list[Ingest]:
        return [Ingest(STRAIGHT, _NOWHERE, until, producer=producer) for producer, until in self.until.items()]


def read(records: Iterable[Record]) -> Reading:
    reading = Reading()
    for record in records:
        _read(record, reading)
    return reading


def _read(record: Record, reading: Reading) -> None:
    try:
        _understand(record, reading)
    except HeadwaterError as e:  # it isn't what was written, or never was an event
        reading.letters.append(letter_of(record, Reason.UNDECODABLE, str(e)))
    except (ValueError, TypeError, KeyError) as e:
        words = f"what it says can't be told in rows: {type(e).__name__}: {e}"
        reading.letters.append(letter_of(record, Reason.INVALID, words))


def _understand(record: Record, reading: Reading) -> None:
    """Of an event of a later version what is understood is stored, and it is kept for a headwater that knows more."""
    found = record.event
    event = found if isinstance(found, Event) else found.known
    if event is not None:
        rows = tuple(changes(event))
        reading.told.append(Told(rows, _refused(record)))
        reading.until[event.producer] = max(micros_of(event.time), reading.until.get(event.producer, 0))
    if not isinstance(found, Event):
        words = "a later version of headwater told this: one that knows it can store it"
        reading.letters.append(letter_of(record, Reason.UNKNOWN, words))


def _refused(record: Record) -> Callable[[str], DeadLetter]:
    return partial(letter_of, record, Reason.REFUSED)


def letter_of(record: Record, reason: Reason, words: str) -> DeadLetter:
    try:
        event, kind = record.event_id, record.kind
    except RecordError:
        event, kind = None, None
    # What doesn't say whose it is, is known by its content.
    where = _NOWHERE if event else Partition("", blake2b(record.data, digest_size=16).hexdigest())
    return DeadLetter(
        reason=reason,
        words=words,
        source=STRAIGHT,
        partition=where,
        position=event.sequence if event else record.position,
        data=record.data,
        key=record.key,
        headers=tuple(record.headers),
        event=event,
        kind=kind,
    )
