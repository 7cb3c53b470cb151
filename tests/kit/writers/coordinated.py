"""A writer of several processes over scripted records; they are real, or stand-ins in this process that tests see."""

from __future__ import annotations

import asyncio
import pickle
import threading
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from sqlalchemy import text

from headwater.consumers.sources import BusRecord, EventSource, SourceBatch
from headwater.consumers.writer.processes.bucket_writer import BucketWriter
from headwater.consumers.writer.processes.process_pipeline import ProcessPipeline
from headwater.consumers.writer.processes.worker_process import WorkerDiedError, WorkerProcess, WorkerRole
from headwater.consumers.writer.runner import Runner
from headwater.lineage.bulk import (
    BusPartition,
    DatabaseBulkMeta,
    MergeResult,
    WriteBatch,
    WriterMarks,
)
from headwater.lineage.store import Store, StoreOptions
from headwater.lineage.store.engines import engine_for

GROUP = "g"
WHERE = [BusPartition("cluster", "topic", number) for number in range(3)]
Hook = Callable[[str], None]
"""Called with the name of a process."""


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
        self._all = list(records)
        self._left: list[BusRecord] = []
        self._store = store
        self._at_once = at_once
        self._most_ahead = most_ahead
        self.done_up_to: dict[BusPartition, int] = {}
        self.given = self.rests = 0
        self.rewind()

    def poll(self, most: int, timeout: float) -> SourceBatch:
        if not self._left or self.given - sum(self.done_up_to.values()) > self._most_ahead:
            time.sleep(min(timeout, 0.002))
            return SourceBatch()
        count = min(most, self._at_once)
        records, self._left = tuple(self._left[:count]), self._left[count:]
        self.given += len(records)
        return SourceBatch(records, {each.partition: each.offset + 1 for each in records})

    def more(self, records: Sequence[BusRecord]) -> None:
        self._all += records
        self._left += records

    def rest(self) -> None:
        self.rests += 1

    def rewind(self) -> None:
        known = self._store.bulk.offsets(GROUP)
        self._left = [each for each in self._all if each.offset >= known.get(each.partition, 0)]

    def done(self, positions: Mapping[BusPartition, int]) -> None:
        self.done_up_to.update(positions)

    def lag(self) -> int:
        return len(self._left)

    def close(self) -> None: ...


class Watched(DatabaseBulkMeta):
    """The coordinator's own connection; `before` and `after` see each transaction."""

    def __init__(
        self,
        store: Store,
        before: Callable[[WriteBatch], None] = lambda _: None,
        after: Callable[[WriteBatch], None] = lambda _: None,
    ) -> None:
        super().__init__(engine_for(store.target), "the store")
        self._before = before
        self._after = after

    def merge(self, work: WriteBatch) -> MergeResult:
        self._before(work)
        merged = super().merge(work)
        self._after(work)
        return merged


class StandIn(WorkerProcess):
    """Does in this process what another one would. What goes to it and comes back is pickled, as if it did."""

    def __init__(self, name: str, role: WorkerRole, before: Hook, after: Hook) -> None:
        self.name, self.cpu_seconds = name, 0.0  # type: ignore[misc]
        self._work = _copy(role).start()
        self._before, self._after = before, after
        self._is_dead = False

    def call(self, request: Any) -> Any:
        self._before(self.name)
        if self._is_dead:
            raise WorkerDiedError("killed")
        result = self._work(_copy(request))
        self._after(self.name)
        return _copy(result)

    def kill(self) -> None:
        self._is_dead = True

    def close(self) -> None:
        if isinstance(self._work, BucketWriter):
            self._work.meta.close()


def _copy(value: Any) -> Any:
    return pickle.loads(pickle.dumps(value))  # noqa: S301 - our own


def nothing(_: str) -> None: ...


def stand_ins(before: Hook = nothing, after: Hook = nothing) -> Callable[[str, WorkerRole], StandIn]:
    return lambda name, role: StandIn(name, role, before, after)


def options_of(store: Store) -> StoreOptions:
    password = store.target.password
    return StoreOptions.at(store.target.url.set(password=password and password()).render_as_string(hide_password=False))


class Coordinator(Runner):
    """A runner of a pipeline in several processes, and their parts that tests look at."""

    def __init__(
        self,
        source: EventSource,
        meta: DatabaseBulkMeta,
        store: Store,
        processes: int = 3,
        *,
        start: Callable[[str, WorkerRole], WorkerProcess],
        marks: WriterMarks | None = None,
        **more: Any,
    ) -> None:
        about = (options_of(store), GROUP, source.kind, source.topic)
        pipeline = ProcessPipeline(meta, *about, processes=processes, marks=marks, start=start)
        super().__init__(source, pipeline, **more)
        self.meta, self.timeline = meta, pipeline.timeline


def coordinator(
    source: EventSource, store: Store, processes: int = 3, *, own: Watched | None = None, **more: Any
) -> Coordinator:
    """Its processes are stand-ins unless `start` says otherwise."""
    settings: dict[str, Any] = {
        "most": 40,
        "idle": 0.01,
        "interval": 0.001,
        "until_end": True,
        "start": stand_ins(),
        **more,
    }
    return Coordinator(source, own or store.bulk, store, processes, **settings)


def written(running: Coordinator, seconds: float = 120.0) -> Coordinator:
    try:
        asyncio.run(asyncio.wait_for(running.run(), seconds))
    finally:
        running.meta.close()
    return running


class Run:
    """A coordinator on a thread of its own."""

    def __init__(self, running: Coordinator) -> None:
        self._running = running
        self._loop = asyncio.new_event_loop()
        self._raised: list[BaseException] = []
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def stop(self) -> None:
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._running.stop)

    def join(self) -> None:
        """Wait for its end, and raise what it raised."""
        self._thread.join(60)
        assert not self._thread.is_alive()
        self._loop.close()
        self._running.meta.close()
        if self._raised:
            raise self._raised[0]

    def _run(self) -> None:
        try:
            self._loop.run_until_complete(asyncio.wait_for(self._running.run(), 120))
            self._loop.run_until_complete(self._loop.shutdown_default_executor())
        except BaseException as e:  # noqa: BLE001 - the test raises it
            self._raised.append(e)


@contextmanager
def begun(running: Coordinator) -> Generator[Run]:
    """Stopped in the end; what it raised is raised."""
    run = Run(running)
    try:
        yield run
    finally:
        run.stop()
    run.join()


class Gate:
    """Closed until it is opened; whoever comes waits."""

    def __init__(self, names: Sequence[str]) -> None:
        """For processes whose names begin so."""
        self._names = tuple(names)
        self._open = threading.Event()
        self.came = threading.Event()

    def __call__(self, name: str) -> None:
        if name.startswith(self._names):
            self.came.set()
            assert self._open.wait(60)

    def open(self) -> None:
        self._open.set()


@contextmanager
def refusing(store: Store, table: str, condition: str) -> Generator[None]:
    """A database that takes only some of a table's rows."""
    with store.engine.begin() as connection:
        connection.execute(text(f"ALTER TABLE {table} ADD CONSTRAINT takes_some CHECK ({condition})"))
    try:
        yield
    finally:
        with store.engine.begin() as connection:
            connection.execute(text(f"ALTER TABLE {table} DROP CONSTRAINT takes_some"))
