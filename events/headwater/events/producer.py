"""Where events begin: secrets removed, made smaller if too large, stamped with their place in the order.

What is reported for a producer that died, by whoever finds its spool: the same events, whoever does.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from itertools import chain
from typing import Final, NamedTuple
from uuid import UUID

from headwater.errors import HeadwaterError
from headwater.events.avro.codec import MAX_EVENT_BYTES, Codec
from headwater.events.barriers import BatchBarriers
from headwater.events.clock import ProducerClock, moment_of, reset_after_fork, uuid7
from headwater.events.envelope import Event, EventFamily
from headwater.events.errors import EventTooLargeError
from headwater.events.event_size import may_fit, omission, reductions
from headwater.events.jobs import JobStatus, JobStatusChanged
from headwater.events.literals import without_literals
from headwater.events.names import JobName
from headwater.events.redaction import Redactor


class ProducerTail(NamedTuple):
    """The end of what a dead producer reported: its last event, and how many it reported of the job family."""

    event: Event
    job_sequence: int


def inferred_ends(last: ProducerTail, runs: Mapping[UUID, JobName | None]) -> tuple[JobStatusChanged, ...]:
    """A KILLED for each run that had no terminal status, in the order of their ids.

    They have the dead producer's identity, the sequences after its last one and its last time. So several shippers
    make the same events, and a status that the run did tell, in an event that was lost here, beats them.
    """
    return tuple(
        JobStatusChanged(
            producer=last.event.producer,
            sequence=last.event.sequence + ahead,
            family_sequence=last.job_sequence + ahead,
            time=last.event.time,
            application=last.event.application,
            job=runs[run],
            run=run,
            status=JobStatus.KILLED,
            inferred=True,
        )
        for ahead, run in enumerate(sorted(runs), 1)
    )


EVENT_BYTES: Final = MAX_EVENT_BYTES - 1_000
"""So large an event may be before it has its place in the order, which takes some bytes more."""
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
        event_bytes: int = EVENT_BYTES,
        capture_sql: bool = False,
    ) -> None:
        self.clock = clock or ProducerClock()
        self._application = application
        self._redactor = redactor or Redactor()
        self._codec = codec or Codec()
        self._event_bytes = event_bytes
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

    def emit(self, draft: Event, append: Append) -> tuple[Event, ...]:
        """Append a draft, and return what was appended: the event, or a Gap and what of a too large one fits.

        Where appending raises, so does this. If the event may be in all the same, its place stays taken: a hole that
        is none is reported as a gap, but two events in one place would be taken for one. Nothing is appended of an
        event that is too large whatever is left out: that is an EventTooLargeError.
        """
        clean = self._redactor.model(draft if self._capture_sql else without_literals(draft))
        encoded = self._encoded(clean)
        with self._lock:
            return tuple([self._append(*each, append) for each in encoded])

    def _encoded(self, draft: Event) -> list[tuple[Event, bytes]]:
        """What to append, encoded to the end with a place in the order that isn't its own: that takes long where an
        event is large, and nobody has to wait for it."""
        for reduced, lost in chain([(draft, ())], reductions(draft)):
            if (data := self._data_of(reduced)) is not None:
                gaps = [omission(draft, lost, self._event_bytes)] if lost else []
                return [*((gap, self._encode(gap)) for gap in gaps), (reduced, data)]
        raise EventTooLargeError(f"this {draft.kind} takes more than the {self._event_bytes} bytes that are allowed")

    def _data_of(self, draft: Event) -> bytes | None:
        """The bytes of a draft; None where they are too many."""
        if not may_fit(draft, self._event_bytes):
            return None
        try:
            data = self._encode(draft)
        except EventTooLargeError:
            return None
        return data if len(data) <= self._event_bytes else None

    def _encode(self, draft: Event) -> bytes:
        own = {"producer": self._id, "sequence": 1, "family_sequence": 1}
        application = draft.application or self._application
        return self._codec.encode(draft.model_copy(update={**own, "application": application}))

    def _append(self, draft: Event, data: bytes, append: Append) -> Event:
        event = draft.model_copy(
            update={
                "producer": self._id,
                "application": draft.application or self._application,
                "sequence": self._sequence + 1,
                "family_sequence": self._family_sequences[draft.family] + 1,
                "time": moment_of(self.clock.now()),
            }
        )
        try:
            append(event, self._codec.stamp_again(data, event))
        except NotAppendedError:
            raise
        except BaseException:
            self._take(event)
            raise
        self._take(event)
        return event

    def _take(self, last: Event) -> None:
        self._sequence = last.sequence
        self._family_sequences[last.family] = last.family_sequence
