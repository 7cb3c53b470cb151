"""Where events begin: secrets removed, cut if too large, stamped with their place in the order."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import TypeVar
from uuid import UUID

from headwater.events.avro.codec import Codec
from headwater.events.avro.errors import EventTooLargeError
from headwater.events.clock import ProducerClock, moment_of
from headwater.events.envelope import Event, Family
from headwater.events.ids import uuid7
from headwater.events.literals import without_literals
from headwater.events.parts import PART_BYTES, cut
from headwater.events.redaction import Redactor

E = TypeVar("E", bound=Event)
Append = Callable[[Event, bytes], object]
"""Takes a stamped event and its bytes. If it raises, the event has no place in the order: nothing is missing."""


class Producer:
    """One source of events. Thread-safe: events are appended in the order of their sequences.

    After a fork the child is a producer of its own, as it must be: two can't count one sequence.
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
        self._begin()

    def _begin(self) -> None:
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._id = uuid7()
        self._sequence = 0
        self._family_sequences = dict.fromkeys(Family, 0)

    @property
    def id(self) -> UUID:
        """The identity of this producer: new in a forked child."""
        if self._pid != os.getpid():
            self._begin()
        return self._id

    def emit(self, draft: E, append: Append) -> tuple[E, ...]:
        """Append a draft: one event, or several parts where it is too large. What was appended is returned."""
        clean = self._redactor.model(draft if self._capture_sql else without_literals(draft))
        producer = self.id
        with self._lock:
            try:
                stamped, data = self._stamped(clean, producer)
            except EventTooLargeError:
                stamped, data = clean, b""
            if 0 < len(data) <= self._part_bytes:
                return (self._appended(stamped, data, append),)
            return tuple(
                self._appended(*self._stamped(part, producer), append) for part in cut(clean, self._part_bytes)
            )

    def _stamped(self, draft: E, producer: UUID) -> tuple[E, bytes]:
        stamped = draft.model_copy(
            update={
                "producer": producer,
                "sequence": self._sequence + 1,
                "family_sequence": self._family_sequences[draft.family] + 1,
                "time": moment_of(self.clock.now()),
                "application": draft.application or self._application,
            }
        )
        return stamped, self._codec.encode(stamped)

    def _appended(self, event: E, data: bytes, append: Append) -> E:
        append(event, data)
        self._sequence = event.sequence
        self._family_sequences[event.family] = event.family_sequence
        return event
