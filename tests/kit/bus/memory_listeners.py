"""Listeners in memory that hold what the interface promises, and those that break it."""

from __future__ import annotations

import time
import zlib
from collections import defaultdict
from contextlib import AbstractContextManager, suppress
from typing import Any

import pytest

from headwater.errors import TransientError
from headwater.events.envelope import Event, EventId
from headwater.spi import EventRecord, RecordBatch, SpoolPosition
from headwater.testing.listeners import BRIEF, ListenerContract
from headwater.testing.memory import DurableMemoryListener, MemoryListener, MemoryTarget, RefusedError
from headwater.testing.publishers import PublishedRecord, PublisherContract

PARTITIONS = 3


class Partitioned:
    """As a Kafka producer does it: `handle` only takes; order per key; acknowledgements in no order.

    Each call lets one partition's records arrive, the last partition first. A record that comes again while it still
    waits is known by its position.
    """

    def __init__(self, target: MemoryTarget[EventRecord]) -> None:
        self.target = target
        self._answer: SpoolPosition | None = None
        self._is_dealt_with: dict[SpoolPosition, bool] = {}
        self._waiting: dict[int, list[EventRecord]] = defaultdict(list)

    def handle(self, batch: RecordBatch) -> SpoolPosition | None:
        for record in batch:
            if record.position not in self._is_dealt_with:
                self._is_dealt_with[record.position] = False
                self._waiting[zlib.crc32(record.key) % PARTITIONS].append(record)
        return self._answer

    def flush(self, timeout: float) -> SpoolPosition | None:
        deadline = time.monotonic() + timeout
        while self._waiting:
            if not self._one_partition(max(deadline - time.monotonic(), 0)) or not timeout:
                break
        return self._answer

    def close(self, timeout: float) -> bool:
        self.flush(timeout)
        return not self._waiting

    def _one_partition(self, timeout: float) -> bool:
        partition = max(self._waiting)
        try:
            if not self.target.bring(self._waiting[partition], timeout):
                return False
        except TransientError:
            return False  # it tries again by itself, as librdkafka does
        for record in self._waiting.pop(partition):
            self._is_dealt_with[record.position] = True
        self._advance()
        return True

    def _advance(self) -> None:
        for position in sorted(self._is_dealt_with):
            if not self._is_dealt_with[position]:
                return
            self._answer = position
            del self._is_dealt_with[position]


class Transactional:
    """As a database does it: a batch is a transaction, in whatever order; what isn't known is passed over."""

    def __init__(self, target: MemoryTarget[EventRecord]) -> None:
        self.target = target
        self._answer: SpoolPosition | None = None
        self._has_given_up = False

    def handle(self, batch: RecordBatch) -> SpoolPosition | None:
        rows = [record for record in batch if isinstance(record.event, Event)]
        self._has_given_up = True
        if not self.target.bring(rows[::-1], BRIEF):
            raise TransientError("the transaction ran into its time limit")
        self._has_given_up = False
        self._answer = batch.end
        return self._answer

    def flush(self, timeout: float) -> SpoolPosition | None:
        return self._answer

    def close(self, timeout: float) -> bool:
        return not self._has_given_up


class Hasty(DurableMemoryListener):
    """Says more than it was handed."""

    def handle(self, batch: RecordBatch) -> SpoolPosition | None:
        return SpoolPosition((super().handle(batch) or 0) + 1)


class Swallowing(DurableMemoryListener):
    """Writes a line into a log instead of raising."""

    def handle(self, batch: RecordBatch) -> SpoolPosition | None:
        with suppress(RefusedError):
            return super().handle(batch)
        self._dealt_with = batch.end
        return batch.end


class MemoryListenerSuite(ListenerContract):
    @pytest.fixture(autouse=True)
    def _target(self) -> None:
        self.target: MemoryTarget[Event] = MemoryTarget()

    def create(self) -> MemoryListener:
        return MemoryListener(self.target)

    def delivered(self, listener: Any) -> list[EventId]:
        return [event.event_id for event in self.target.items]

    def missed(self, listener: Any) -> int:
        return int(listener.missed)

    def refusing(self) -> AbstractContextManager[None]:
        return self.target.refusing()

    def stalling(self) -> AbstractContextManager[None]:
        return self.target.stalling()


class DurableMemoryListenerSuite(PublisherContract):
    @pytest.fixture(autouse=True)
    def _target(self) -> None:
        self.target: MemoryTarget[EventRecord] = MemoryTarget()

    def create(self) -> Any:
        return DurableMemoryListener(self.target)

    def passed_on(self, listener: Any) -> list[PublishedRecord]:
        return [PublishedRecord(record.key, dict(record.headers), record.data) for record in self.target.items]

    def refusing(self) -> AbstractContextManager[None]:
        return self.target.refusing()

    def stalling(self) -> AbstractContextManager[None]:
        return self.target.stalling()
