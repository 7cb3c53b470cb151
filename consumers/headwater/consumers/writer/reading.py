"""Records become rows, and those that can't become rows, dead letters.

One bad event harms no other. The quick way is tried first; where it stumbles over anything, what it has gathered of the
batch is thrown away, and the batch goes the law's own way, event by event, each of which is taken in whole or not at
all. Where not one event of many in a row can become rows, it isn't they that are wrong.
"""

from __future__ import annotations

import threading
import traceback
from collections.abc import Container, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

from headwater.consumers.sources import Taken
from headwater.errors import TerminalError, TransientError
from headwater.events.avro import Codec, DecodeError, SchemaMessage, UnknownEvent
from headwater.events.envelope import Event
from headwater.lineage.bulk import DeadLetter, Reason, Told
from headwater.lineage.law import changes, collapsed
from headwater.lineage.quick import Gathering
from headwater.lineage.rows import Row, merged

MOST_INVALID: Final = 100
"""So many events in a row that can't become rows are a fault of the program. Fewer are theirs: a bus that is idle gives
them one by one, so a batch says nothing."""
_SCHEMA_LATER: Final = "its schema isn't known here"
_KIND_LATER: Final = "its kind isn't known to this version of headwater"
_LONGEST: Final = 500


class LawBrokenError(TerminalError):
    """This headwater makes no rows of anything. Nothing of that is lost: it is still on the bus."""


class Read(NamedTuple):
    """What records say."""

    rows: list[Row]
    """One for each key."""
    letters: list[DeadLetter]
    new: list[Row]
    """Those among the rows that last."""
    left_out: list[Row]
    """Those that were known."""


class ReadEvents(NamedTuple):
    """The same without rows."""

    told: list[tuple[Event, Taken]]
    letters: list[DeadLetter]


class _Invalid(Exception):  # noqa: N818 - it isn't seen outside
    """With the words of what went wrong."""


class Reader:
    """`read` is for one thread at a time; `told` for any. Both know the schemas that came over the bus."""

    def __init__(
        self,
        kind: str,
        topic: str,
        *,
        most_invalid: int = MOST_INVALID,
        codec: Codec | None = None,
        lock: threading.Lock | None = None,
        known: Container[bytes] = frozenset(),
    ) -> None:
        """`most_invalid` events in a row end it with a LawBrokenError; 0 never does. Several that share a codec share
        its lock. `known` are ids of lasting rows that are left out."""
        self._kind = kind
        self.topic: Final = topic
        self._most_invalid = most_invalid
        self._in_a_row = 0
        self._lock = lock or threading.Lock()
        self._codec = codec or Codec()
        self._known = known
        self._gathering = Gathering(self._codec, known)

    def read(self, records: Sequence[Taken]) -> Read:
        with self._lock:
            return self._read(records)

    def _read(self, records: Sequence[Taken]) -> Read:
        try:
            letters = list(self._gathered(records))
            rows, new, left_out = self._gathering.take()
        except (MemoryError, TransientError):
            raise
        except Exception:  # noqa: BLE001 - whatever an event did to it: the other way finds out which one
            self._gathering = Gathering(self._codec, self._known)
            return self._one_by_one(records)
        if len(letters) < len(records):
            self._in_a_row = 0
        return Read(rows, letters, new, left_out)

    def events(self, records: Sequence[Taken]) -> ReadEvents:
        """For who makes no rows of them."""
        told, letters = list[tuple[Event, Taken]](), list[DeadLetter]()
        for record in records:
            try:
                with self._lock:
                    found = _decoded(self._codec, record)
            except (DecodeError, _Invalid) as e:
                letters.append(self._letter(record, Reason.UNDECODABLE, str(e)))
                self._count(e)
                continue
            self._in_a_row = 0
            event = _known(found)
            if event is not None:
                told.append((event, record))
            if isinstance(found, UnknownEvent):
                letters.append(self._unknown(record, found))
        return ReadEvents(told, letters)

    def told(self, records: Sequence[Taken]) -> Iterator[Told]:
        """Event by event, so that the one that a database refuses can be found; without those that `read` made dead
        letters of."""
        for record in records:
            try:
                with self._lock:
                    event = _known(_decoded(self._codec, record))
                rows = [] if event is None else _rows(event, record)
            except (DecodeError, _Invalid):
                continue
            if event is not None:
                yield Told(rows, partial(self._refused, record, event))

    def _gathered(self, records: Sequence[Taken]) -> Iterator[DeadLetter]:
        add = self._gathering.add
        for record in records:
            try:
                stranger = add(record.data, record.appended)
            except DecodeError as e:
                yield self._letter(record, Reason.UNDECODABLE, str(e))
                continue
            if isinstance(stranger, UnknownEvent):
                if stranger.known is not None:
                    self._gathering.add_event(stranger.known, record.appended)
                yield self._unknown(record, stranger)

    def _one_by_one(self, records: Sequence[Taken]) -> Read:
        rows, letters = dict[bytes, Row](), list[DeadLetter]()
        for record in records:
            try:
                found = _decoded(self._codec, record)
            except (DecodeError, _Invalid) as e:
                letters.append(self._letter(record, Reason.UNDECODABLE, str(e)))
                self._count(e)
                continue
            event = _known(found)
            try:
                rows.update(_taken_in(rows, _rows(event, record)) if event is not None else {})
            except _Invalid as e:
                letters.append(self._letter(record, Reason.INVALID, f"its rows can't be made: {e}", event))
                self._count(e)
                continue
            self._in_a_row = 0
            if isinstance(found, UnknownEvent):
                letters.append(self._unknown(record, found))
        return Read(list(rows.values()), letters, [], [])

    def _count(self, fault: Exception) -> None:
        """What was never an event says nothing of the program."""
        if not isinstance(fault, _Invalid):
            return
        self._in_a_row += 1
        if 0 < self._most_invalid <= self._in_a_row:
            raise LawBrokenError(
                f"{self._in_a_row} events in a row couldn't become rows, the last one by {fault}: that is a fault of "
                f"this headwater and not theirs. Nothing of them is lost: mend it, or install a version that does, "
                f"and begin again; --most-invalid 0 keeps all such events as dead letters, and goes on"
            )

    def _unknown(self, record: Taken, event: UnknownEvent) -> DeadLetter:
        """Of a newer version's event what is understood is stored; the whole waits for a newer writer."""
        words = _SCHEMA_LATER if event.kind is None else _KIND_LATER
        return self._letter(record, Reason.UNKNOWN, words, event.known, event.kind)

    def _refused(self, record: Taken, event: Event, words: str) -> DeadLetter:
        return self._letter(record, Reason.REFUSED, words, event)

    def _letter(
        self, record: Taken, reason: Reason, words: str, event: Event | None = None, kind: str | None = None
    ) -> DeadLetter:
        return DeadLetter(
            reason=reason,
            words=words,
            source=self._kind,
            partition=record.partition,
            position=record.offset,
            data=record.data,
            topic_name=self.topic,
            key=record.key,
            headers=record.headers,
            event=event.event_id if event is not None else None,
            kind=event.kind if kind is None and event is not None else kind,
            appended=record.appended,
        )


def _decoded(codec: Codec, record: Taken) -> Event | UnknownEvent | SchemaMessage:
    try:
        return codec.decode(record.data)
    except (DecodeError, MemoryError, TransientError):
        raise
    except Exception as e:
        raise _Invalid(_words(e)) from e


def _known(found: Event | UnknownEvent | SchemaMessage) -> Event | None:
    if isinstance(found, UnknownEvent):
        return found.known
    return found if isinstance(found, Event) else None


def _rows(event: Event, record: Taken) -> list[Row]:
    try:
        return list(collapsed(changes(event, record.appended)).values())
    except (MemoryError, TransientError):
        raise
    except Exception as e:
        raise _Invalid(_words(e)) from e


def _taken_in(known: dict[bytes, Row], rows: list[Row]) -> dict[bytes, Row]:
    """What becomes of rows where others of their keys are known: all of them are made before any is kept."""
    try:
        return {row.id: merged(known[row.id], row) if row.id in known else row for row in rows}
    except MemoryError:
        raise
    except Exception as e:
        raise _Invalid(_words(e)) from e


def _words(error: Exception) -> str:
    """With the place, for whoever mends it."""
    place = traceback.extract_tb(error.__traceback__)[-1]
    text = f"{type(error).__name__}: {error}"
    return f"{text if len(text) <= _LONGEST else f'{text[:_LONGEST]}…'} ({Path(place.filename).name}:{place.lineno})"
