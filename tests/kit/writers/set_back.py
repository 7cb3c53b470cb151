"""Events on a bus, a writer that keeps a store of them, and what the law says is in it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from typing import Any
from uuid import UUID

from headwater.consumers.replay.filling import ReplaySettings
from headwater.consumers.replay.ranges import LogRange
from headwater.consumers.replay.replay import Replay, ReplayResult
from headwater.consumers.sources.local_log import LocalLogSource
from headwater.consumers.writer.offsets import OffsetReader
from headwater.consumers.writer.runner import Runner
from headwater.consumers.writer.store_pipeline import StorePipeline
from headwater.events import Committed, DatasetId, Event, Format, Input, JobName, Output
from headwater.journal import LocalLog
from headwater.lineage.replacement.areas import Area, create_area
from headwater.lineage.replacement.comparison import StoreComparison, compare_stores
from headwater.lineage.store import Store, StoreOptions
from headwater.lineage.store.engines import open_engine
from tests.kit.events.written import CODEC, digest_by_law
from tests.kit.waiting import PATIENCE

GROUP = "g"
DATA = 300


def commits() -> list[Event]:
    """Of which each hundred has tables of its own and those of the hundred before it."""
    began = datetime.now(timezone.utc)
    return [
        Committed(
            producer=UUID(int=78),
            sequence=number,
            family_sequence=number,
            time=began + timedelta(milliseconds=number),
            job=JobName(name=f"job-{number % 10}"),
            run=UUID(int=7),
            barrier=number,
            inputs=(Input(dataset=_table((number - 1) // 100, number), snapshot=number),),
            outputs=(
                Output(
                    dataset=_table((number + 99) // 100, number), snapshot=number, format=Format.PAIMON, made_from=(0,)
                ),
            ),
        )
        for number in range(1, DATA + 1)
    ]


def _table(hundred: int, number: int) -> DatasetId:
    return DatasetId(namespace="s3://lake", name=f"table-{hundred}-{number % 10}")


EVENTS = [CODEC.encode(event) for event in commits()]


def append(log: LocalLog, begin: int, end: int) -> None:
    with log.writer() as writer:
        for data in EVENTS[begin:end]:
            writer.append(data)


def law(log: LocalLog, group: str = "law") -> str:
    """The digest of what this group hasn't read before."""
    batch = log.group(group).poll(10_000)
    return digest_by_law([(record.value, record.time) for _, record in batch.records])


def stored(store: Store) -> int:
    with store.engine.connect() as connection:
        return int(connection.exec_driver_sql("SELECT count(*) FROM commits").scalar_one())


def plain(log: LocalLog, store: Store, *, until_end: bool = False) -> Runner:
    offsets = OffsetReader({"": store.bulk}, GROUP)
    source = LocalLogSource(log.directory, GROUP, offsets)
    pipeline = StorePipeline({"": store.bulk}, GROUP, source.kind, source.topic, marks=offsets.marks)
    return Runner(source, pipeline, most=7, idle=0.02, until_end=until_end)


def write_all(log: LocalLog, store: Store) -> None:
    writer = plain(log, store, until_end=True)
    asyncio.run(asyncio.wait_for(writer.run(), PATIENCE))
    writer._source.close()  # pyright: ignore[reportPrivateUsage]


@contextmanager
def running(writer: Runner) -> Generator[None]:
    """On a thread of its own; it is stopped in the end, and what it raised is raised."""
    raised, loop = list[BaseException](), asyncio.new_event_loop()

    def run() -> None:
        try:
            loop.run_until_complete(asyncio.wait_for(writer.run(), PATIENCE))
        except BaseException as e:  # noqa: BLE001 - the test raises it
            raised.append(e)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        loop.call_soon_threadsafe(writer.stop)
        thread.join(PATIENCE)
        writer._source.close()  # pyright: ignore[reportPrivateUsage]
        loop.close()
    assert not raised, raised


SETTINGS = ReplaySettings(group=GROUP, batch=50)


def source(log: LocalLog, options: StoreOptions) -> LogRange:
    def known() -> Any:
        with create_area(options, Area.FRESH) as fresh:
            return fresh.bulk.offsets(GROUP)

    return LogRange(f"log:{log.directory}", log.directory, known)


def replayed(log: LocalLog, options: StoreOptions, **more: Any) -> ReplayResult:
    settings = {name: more.pop(name) for name in list(more) if hasattr(SETTINGS, name)}
    return Replay(options, [source(log, options)], replace(SETTINGS, **settings), lambda _: None, **more).run()


def compared(options: StoreOptions, other: StoreOptions | Area) -> StoreComparison:
    """A store beside another one, or beside its fresh or former tables, as `headwater store compare` compares them."""
    beside = options.beside(other.value) if isinstance(other, Area) else other
    with ExitStack() as stack:
        engines = [stack.enter_context(open_engine(each.target, readonly=True)) for each in (options, beside)]
        first, second = (stack.enter_context(each.connect()) for each in engines)
        return compare_stores(first, second, most=100)
