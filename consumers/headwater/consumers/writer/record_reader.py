"""Maps records to rows, and those that can't be mapped to dead letters.

One bad event affects no other. The fast path maps a whole batch. If it fails anywhere, its result is discarded, and the
batch is mapped event by event; each is mapped completely or not at all. If many events in a row can't be mapped, the
fault is in the program, not in the events.
"""

from __future__ import annotations

import threading
import traceback
from collections.abc import Collection, Container, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

from headwater.consumers.sources import BusRecord
from headwater.errors import TerminalError, TransientError
from headwater.events.avro import Codec, DecodeError, UnknownEvent
from headwater.events.envelope import Event
from headwater.events.redaction import redacted_excerpt
from headwater.lineage.bulk import DeadLetter, DeadLetterReason, EventRows
from headwater.lineage.mapping import BatchMapper, map_event
from headwater.lineage.rows import Row, combine_rows, merge_by_key

MAX_INVALID: Final = 100
"""After this many unmappable events in a row the writer stops. Fewer are the events' own fault. An idle bus delivers
them one by one, so a batch says nothing."""
_SCHEMA_LATER: Final = "its schema isn't known here"
_KIND_LATER: Final = "its kind isn't known to this version of headwater"
_LONGEST: Final = 500


class MappingFailedError(TerminalError):
    """This version can map no event at all. Nothing is lost: the events are still on the bus."""


class ReadResult(NamedTuple):
    """The rows and dead letters of records."""

    rows: Collection[Row]
    """One row for each key."""
    dead_letters: list[DeadLetter]
    new: Collection[Row]
    """The immutable rows among `rows`."""
    left_out: Collection[Row]
    """Rows that the store has already."""


class DecodedBatch(NamedTuple):
    """Decoded events, without rows."""

    events: list[tuple[Event, BusRecord]]
    dead_letters: list[DeadLetter]


class _Invalid(Exception):  # noqa: N818 - it isn't seen outside
    """An event can't be mapped; the message says why."""


class RecordReader:
    """Maps records. `read` is for one thread at a time, `event_rows` for any. Both know the schemas that came over the
    bus."""

    def __init__(
        self,
        kind: str,
        topic: str,
        *,
        most_invalid: int = MAX_INVALID,
        codec: Codec | None = None,
        lock: threading.Lock | None = None,
        known: Container[bytes] = frozenset(),
    ) -> None:
        """After `most_invalid` unmappable events in a row it raises a MappingFailedError; 0 means never. Readers that
        share a codec share its lock. `known` are ids of immutable rows to omit."""
        self._kind = kind
        self.topic: Final = topic
        self._most_invalid = most_invalid
        self._in_a_row = 0
        self._lock = lock or threading.Lock()
        self._codec = codec or Codec()
        self._known = known
        self._gathering = self._new_mapper()

    def _new_mapper(self) -> BatchMapper:
        return BatchMapper(self._codec, self._known)

    def read(self, records: Sequence[BusRecord]) -> ReadResult:
        with self._lock:
            return self._read(records)

    def _read(self, records: Sequence[BusRecord]) -> ReadResult:
        try:
            letters = list(self._gathered(records))
            mapped = self._gathering.drain()
        except (MemoryError, TransientError):
            raise
        except Exception:  # noqa: BLE001 - whatever an event did to it: the other way finds out which one
            self._gathering = self._new_mapper()
            return self._one_by_one(records)
        if len(letters) < len(records):
            self._in_a_row = 0
        return ReadResult(mapped.rows, letters, mapped.new, mapped.left_out)

    def events(self, records: Sequence[BusRecord]) -> DecodedBatch:
        """Decode records without mapping them."""
        decoded, letters = list[tuple[Event, BusRecord]](), list[DeadLetter]()
        for record in records:
            try:
                with self._lock:
                    found = _decode(self._codec, record)
            except (DecodeError, _Invalid) as e:
                letters.append(self._letter(record, DeadLetterReason.UNDECODABLE, str(e)))
                self._count(e)
                continue
            self._in_a_row = 0
            event = _known_event(found)
            if event is not None:
                decoded.append((event, record))
            if isinstance(found, UnknownEvent):
                letters.append(self._unknown(record, found))
        return DecodedBatch(decoded, letters)

    def event_rows(self, records: Sequence[BusRecord]) -> Iterator[EventRows]:
        """Yield each event's rows separately, to find the one that a database refuses. Events that `read` made dead
        letters are skipped."""
        for record in records:
            try:
                with self._lock:
                    event = _known_event(_decode(self._codec, record))
                rows = [] if event is None else _rows(event, record)
            except (DecodeError, _Invalid):
                continue
            if event is not None:
                yield EventRows(rows, partial(self._refused_letter, record, event))

    def _gathered(self, records: Sequence[BusRecord]) -> Iterator[DeadLetter]:
        add = self._gathering.add
        for record in records:
            try:
                unknown = add(record.data, record.append_time)
            except DecodeError as e:
                yield self._letter(record, DeadLetterReason.UNDECODABLE, str(e))
                continue
            if isinstance(unknown, UnknownEvent):
                if unknown.known is not None:
                    self._gathering.add_event(unknown.known, record.append_time)
                yield self._unknown(record, unknown)

    def _one_by_one(self, records: Sequence[BusRecord]) -> ReadResult:
        rows, letters = dict[bytes, Row](), list[DeadLetter]()
        for record in records:
            try:
                found = _decode(self._codec, record)
            except (DecodeError, _Invalid) as e:
                letters.append(self._letter(record, DeadLetterReason.UNDECODABLE, str(e)))
                self._count(e)
                continue
            event = _known_event(found)
            try:
                rows.update(_merge_all(rows, _rows(event, record)) if event is not None else {})
            except _Invalid as e:
                letters.append(
                    self._letter(record, DeadLetterReason.INVALID, f"it can't be mapped to rows: {e}", event)
                )
                self._count(e)
                continue
            self._in_a_row = 0
            if isinstance(found, UnknownEvent):
                letters.append(self._unknown(record, found))
        return ReadResult(list(rows.values()), letters, [], [])

    def _count(self, fault: Exception) -> None:
        """Count an unmappable event. Bytes that never were an event don't count."""
        if not isinstance(fault, _Invalid):
            return
        self._in_a_row += 1
        if 0 < self._most_invalid <= self._in_a_row:
            raise MappingFailedError(
                f"{self._in_a_row} events in a row couldn't be mapped to rows, the last one because of {fault}: "
                "that is a fault of this headwater, not of the events. Nothing is lost: install a version without "
                "the fault and start the writer again; with --most-invalid 0 it keeps such events as dead letters"
            )

    def _unknown(self, record: BusRecord, event: UnknownEvent) -> DeadLetter:
        """Make a dead letter of an event of a newer version. What is understood of it is stored as well."""
        words = _SCHEMA_LATER if event.kind is None else _KIND_LATER
        return self._letter(record, DeadLetterReason.UNKNOWN, words, event.known, event.kind)

    def _refused_letter(self, record: BusRecord, event: Event, words: str) -> DeadLetter:
        return self._letter(record, DeadLetterReason.REFUSED, words, event)

    def _letter(
        self,
        record: BusRecord,
        reason: DeadLetterReason,
        words: str,
        event: Event | None = None,
        kind: str | None = None,
    ) -> DeadLetter:
        return DeadLetter(
            reason=reason,
            error=words,
            source=self._kind,
            partition=record.partition,
            position=record.offset,
            data=record.data,
            topic_name=self.topic,
            key=record.key,
            headers=record.headers,
            event=event.event_id if event is not None else None,
            kind=event.kind if kind is None and event is not None else kind,
            append_time=record.append_time,
        )


def _decode(codec: Codec, record: BusRecord) -> Event | UnknownEvent:
    try:
        return codec.decode(record.data)
    except (DecodeError, MemoryError, TransientError):
        raise
    except Exception as e:
        raise _Invalid(_describe_error(e)) from e


def _known_event(found: Event | UnknownEvent) -> Event | None:
    return found.known if isinstance(found, UnknownEvent) else found


def _rows(event: Event, record: BusRecord) -> list[Row]:
    try:
        return list(merge_by_key(map_event(event, record.append_time)).values())
    except (MemoryError, TransientError):
        raise
    except Exception as e:
        raise _Invalid(_describe_error(e)) from e


def _merge_all(known: dict[bytes, Row], rows: list[Row]) -> dict[bytes, Row]:
    """Merge an event's rows with known ones, completely or not at all."""
    try:
        return {row.id: combine_rows(known[row.id], row) if row.id in known else row for row in rows}
    except MemoryError:
        raise
    except Exception as e:
        raise _Invalid(_describe_error(e)) from e


def _describe_error(error: Exception) -> str:
    """Return an error's message with the line that raised it."""
    place = traceback.extract_tb(error.__traceback__)[-1]
    text = redacted_excerpt(f"{type(error).__name__}: {error}", _LONGEST)
    return f"{text} ({Path(place.filename).name}:{place.lineno})"
