"""Where events begin: secrets removed, cut if too large, stamped with their place in the order."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Final, TypeVar
from uuid import UUID

from headwater.errors import HeadwaterError
from headwater.events.avro.codec import Codec
from headwater.events.barriers import BatchBarriers
from headwater.events.clock import ProducerClock, moment_of
from headwater.events.envelope import Event, EventFamily
from headwater.events.errors import EventTooLargeError
from headwater.events.forks import reset_after_fork
from headwater.events.ids import uuid7
from headwater.events.literals import without_literals
from headwater.events.parts import PART_BYTES, split_event
from headwater.events.redaction import Redactor

E = TypeVar("E", bound=Event)
_FEW: Final = 5_000
"""An event of more elements hardly fits into one: it isn't encoded to find out."""
Append = Callable[[Event, bytes], object]
"""Takes a stamped event and its bytes. A NotAppendedError says that the event is surely not in; after any other error
it may be."""


class NotAppendedError(HeadwaterError):
    """An event is surely not in, nor ever will be: its place in the order is free."""


class Producer:
    """One source of events. Thread-safe: events are appended in the order of their sequences.

    A forked child's is a producer of its own, as it must be: two can't count one sequence.
    """

    def __init__(
        self,
        application: str = "",
        *,
        clock: ProducerClock | None = None,
        redactor: Redactor | None = None,
        codec: Codec | None = None,
        part_bytes: int = PART_BYTES,
        capture_sql: bool = False,
    ) -> None:
        self.clock = clock or ProducerClock()
        self._application = application
        self._redactor = redactor or Redactor()
        self._codec = codec or Codec()
        self._part_bytes = part_bytes
        self._capture_sql = capture_sql
        self.begin_in_child()
        reset_after_fork(self)

    def begin_in_child(self) -> None:
        """Become a new producer."""
        self._lock = threading.Lock()
        self._id = uuid7()
        self._barriers = BatchBarriers(self._id)
        self._sequence = 0
        self._family_sequences = dict.fromkeys(EventFamily, 0)

    @property
    def id(self) -> UUID:
        """The identity of this producer: another one in a forked child."""
        return self._id

    def next_barrier(self) -> int:
        """The barrier of a batch commit of now."""
        return self._barriers.next(self.clock.now() // 1_000)

    def emit(self, draft: E, append: Append) -> tuple[E, ...]:
        """Append a draft: one event, or several parts where it is too large. What was appended is returned.

        Where appending raises, so does this. If the event may be in all the same, its place stays taken: a hole that
        is none is reported as a gap, but two events in one place would be taken for one. An event with an element that
        is too large for any part is an EventTooLargeError, and none of its parts is appended.
        """
        clean = self._redactor.model(draft if self._capture_sql else without_literals(draft))
        encoded = self._encoded(clean)
        with self._lock:
            prepared = [self._stamped(*each, ahead) for ahead, each in enumerate(encoded, 1)]
            appended = 0
            try:
                for event, data in prepared:
                    append(event, data)
                    appended += 1
            except NotAppendedError:
                if appended:  # the parts before it are in
                    self._take(prepared[-1][0])
                raise
            except BaseException:
                self._take(prepared[-1][0])
                raise
            self._take(prepared[-1][0])
        return tuple(event for event, _ in prepared)

    def _encoded(self, draft: E) -> list[tuple[E, bytes]]:
        """What to append, encoded to the end with a place in the order that isn't its own: that takes long where an
        event is large, and nobody has to wait for it."""
        own = {"producer": self._id, "sequence": 1, "family_sequence": 1}
        draft = draft.model_copy(update={**own, "application": draft.application or self._application})
        if _element_count(draft) <= _FEW:
            try:
                data = self._codec.encode(draft)
            except EventTooLargeError:
                data = b""
            if data and len(data) <= self._part_bytes:
                return [(draft, data)]
        return [(part, self._codec.encode(part)) for part in split_event(draft, self._part_bytes)]

    def _stamped(self, draft: E, data: bytes, ahead: int) -> tuple[E, bytes]:
        stamped = draft.model_copy(
            update={
                "sequence": self._sequence + ahead,
                "family_sequence": self._family_sequences[draft.family] + ahead,
                "time": moment_of(self.clock.now()),
            }
        )
        return stamped, self._codec.stamp_again(data, stamped)

    def _take(self, last: Event) -> None:
        self._sequence = last.sequence
        self._family_sequences[last.family] = last.family_sequence


def _element_count(event: Event) -> int:
    return sum(len(value) for value in event.__dict__.values() if type(value) is tuple)
