"""Listeners that keep what they are told in memory, for tests of what happens around listeners."""

from __future__ import annotations

from collections.abc import MutableSequence

from headwater.events.envelope import Event
from headwater.spi import Batch, Position, Record


class MemoryListener:
    """A plain listener. Pass a list to share what was told between listeners."""

    def __init__(self, events: MutableSequence[Event] | None = None) -> None:
        self.events: MutableSequence[Event] = [] if events is None else events
        self.missed = 0
        self.is_closed = False

    def on_event(self, event: Event) -> None:
        self.events.append(event)

    def on_missed(self, count: int) -> None:
        self.missed += count

    def flush(self, timeout: float) -> None:
        """There is nothing to wait for."""

    def close(self, timeout: float) -> bool:
        self.is_closed = True
        return True


class DurableMemoryListener:
    """A durable listener. Pass a list to share what was handed over between listeners."""

    def __init__(self, records: MutableSequence[Record] | None = None) -> None:
        self.records: MutableSequence[Record] = [] if records is None else records
        self.is_closed = False
        self._end: Position | None = None

    def handle(self, batch: Batch) -> Position | None:
        self.records.extend(batch.records)
        self._end = batch.end
        return batch.end

    def flush(self, timeout: float) -> Position | None:
        return self._end

    def close(self, timeout: float) -> bool:
        self.is_closed = True
        return True
