"""A coordinated writer over scripted records, whose connections can be interfered with."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any
from uuid import UUID

from headwater.consumers.sources import BusRecord, EventSource, SourceBatch
from headwater.consumers.writer.coordinated import Coordinator, CoordinatorLimits, StoreConnection
from headwater.events import Event
from headwater.lineage.bulk import (
    EMPTY_BATCH,
    BusPartition,
    DatabaseBulkMeta,
    EventRows,
    MergeResult,
    WriteBatch,
    WriterInstant,
)
from headwater.lineage.mapping import map_event
from headwater.lineage.rows import RowSet
from headwater.lineage.store import Store
from headwater.lineage.store.engines import engine_for

GROUP = "g"
WHERE = [BusPartition("cluster", "topic", number) for number in range(3)]


def taken(data: Sequence[bytes]) -> list[BusRecord]:
    """Spread over three partitions, each with offsets of its own."""
    return [BusRecord(each, WHERE[n % 3], n // 3, 1_790_000_000_000_000 + n) for n, each in enumerate(data)]


class Scripted:
    """A source that begins where the store says, and gives so many at once."""

    kind = topic = "log"

    def __init__(
        self, records: Sequence[BusRecord], store: Store, at_once: int = 100, most_ahead: int = 1 << 30
    ) -> None:
        """With more than `most_ahead` records that aren't said to be done there is nothing on the bus."""
        known = store.bulk.offsets(GROUP)
        self._left = [each for each in records if each.offset >= known.get(each.partition, 0)]
        self._at_once = at_once
        self._most_ahead = most_ahead
        self.done_up_to: dict[BusPartition, int] = {}
        self.given = self.rests = 0

    def poll(self, most: int, timeout: float) -> SourceBatch:
        if self.given - sum(self.done_up_to.values()) > self._most_ahead:
            time.sleep(min(timeout, 0.002))
            return SourceBatch()
        count = min(most, self._at_once)
        records, self._left = tuple(self._left[:count]), self._left[count:]
        self.given += len(records)
        return SourceBatch(records, {each.partition: each.offset + 1 for each in records})

    def more(self, records: Sequence[BusRecord]) -> None:
        self._left += records

    def rest(self) -> None:
        self.rests += 1

    def rewind(self) -> None:
        raise AssertionError("the store wasn't set back")

    def done(self, positions: Mapping[BusPartition, int]) -> None:
        self.done_up_to.update(positions)

    def lag(self) -> int:
        return len(self._left)

    def close(self) -> None: ...


class Watched:
    """A store's second interface on a connection of its own; `before` and `after` see each transaction."""

    def __init__(
        self,
        store: Store,
        before: Callable[[WriteBatch], None] = lambda _: None,
        after: Callable[[WriteBatch], None] = lambda _: None,
    ) -> None:
        self.engine = engine_for(store.target)
        self.bulk = DatabaseBulkMeta(self.engine, "the store")
        self._before = before
        self._after = after

    def merge(self, work: WriteBatch) -> MergeResult:
        self._before(work)
        merged = self.bulk.merge(work)
        self._after(work)
        return merged

    def merge_events(self, events: Sequence[EventRows], work: WriteBatch = EMPTY_BATCH) -> MergeResult:
        self._before(work)
        return self.bulk.merge_events(events, work)

    def epoch(self) -> int:
        return self.bulk.epoch()

    def unfinished_instants(self) -> Iterator[WriterInstant]:
        return self.bulk.unfinished_instants()

    def instants(self, writer: UUID) -> Iterator[WriterInstant]:
        return self.bulk.instants(writer)

    def close(self) -> None:
        self.bulk.close()


def lane(bulk: Any, cut: Callable[[], None] = lambda: None, seconds: float = 600.0) -> StoreConnection:
    return StoreConnection(bulk, cut, seconds)


def coordinator(
    source: EventSource,
    store: Store,
    limits: CoordinatorLimits | None = None,
    lanes: Sequence[StoreConnection] | None = None,
    **more: Any,
) -> Coordinator:
    limits = limits or CoordinatorLimits()
    if lanes is None:
        lanes = [StoreConnection.into(store.target, limits.flush_seconds) for _ in range(limits.buckets)]
    own = more.pop("own", None) or StoreConnection.into(store.target, limits.flush_seconds)
    return Coordinator(source, own, lanes, GROUP, limits, **{"until_end": True, **more})


def written(running: Coordinator, seconds: float = 120.0) -> Coordinator:
    asyncio.run(asyncio.wait_for(running.run(), seconds))
    return running


def digest_by_law(events: Sequence[tuple[Event, int | None]]) -> str:
    state = RowSet()
    for event, appended in events:
        state.merge(map_event(event, appended))
    return state.digest()


@contextmanager
def begun(running: Coordinator) -> Generator[threading.Thread]:
    """On a thread of its own; it is stopped in the end, and what it raised is raised."""
    raised: list[BaseException] = []

    def run() -> None:
        try:
            written(running)
        except BaseException as e:  # noqa: BLE001 - the test raises it
            raised.append(e)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield thread
    finally:
        running.stop()
        thread.join(60)
    assert not thread.is_alive()
    if raised:
        raise raised[0]


class Gate:
    """Closed until it is opened; whoever comes waits."""

    def __init__(self) -> None:
        self._open = threading.Event()
        self.came = threading.Event()

    def __call__(self, _: WriteBatch) -> None:
        self.came.set()
        assert self._open.wait(60)

    def open(self) -> None:
        self._open.set()
