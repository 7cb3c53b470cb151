"""The dead letters of a forwarder: events that its target refuses, or that nobody here can read.

They wait in a table of the forwarder's state, which is that of a store. Whoever runs the forwarder sends those that
somebody marked for a retry.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from headwater.consumers.sources import BusRecord
from headwater.events.envelope import EventId
from headwater.lineage.bulk import DeadLetter, DeadLetterReason, DeadLetterState

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
        for each in self.records:
            yield DeadLetter(
                self.reason,
                error,
                source,
                each.partition,
                each.offset,
                each.data,
                topic_name=topic,
                key=each.key,
                headers=each.headers,
                event=self.event,
                kind=self.kind,
                append_time=each.append_time,
            )


def record_of(letter: DeadLetter) -> BusRecord:
    """Restore the record as it came from the bus."""
    return BusRecord(letter.data, letter.partition, letter.position, letter.append_time, letter.key, letter.headers)
