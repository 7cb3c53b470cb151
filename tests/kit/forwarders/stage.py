"""A bus in memory, events on it, and a target that does what a test says."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any
from uuid import UUID

from headwater.consumers.sources import BusRecord, SourceBatch
from headwater.events import Committed, DatasetId, Event, JobName, Output
from headwater.events.avro import Codec
from headwater.events.keys import headers_of, key_of
from headwater.forwarders.api import BusEvent, Forwarder
from headwater.forwarders.configuration import ForwarderSettings, read_settings
from headwater.forwarders.delivery import Waits
from headwater.forwarders.known_lineage import LineageCache
from headwater.forwarders.runner import ForwarderRunner
from headwater.forwarders.state import ForwarderState
from headwater.lineage.bulk import BusPartition, DeadLetter, DeadLetterState

CODEC = Codec()
BEGAN = datetime(2026, 3, 1, 12, tzinfo=timezone.utc)
QUICK = Waits(0.001, 0.002, 0.003, 0.004)
LONG = 60.0


def commit(number: int, job: str = "etl", producer: int = 7, **more: Any) -> Committed:
    return Committed(
        producer=UUID(int=producer),
        sequence=number,
        family_sequence=number,
        time=BEGAN + timedelta(milliseconds=number),
        job=JobName(name=job),
        barrier=number,
        outputs=(Output(dataset=DatasetId(namespace="s3://lake", name=f"w/{job}"), snapshot=number),),
        **more,
    )


class MemoryBus:
    """Partitions with committed offsets. `lost` are partitions that another member has."""

    def __init__(self, partitions: int = 1) -> None:
        self.partitions: list[list[BusRecord]] = [[] for _ in range(partitions)]
        self.committed: dict[BusPartition, int] = {}
        self.lost: set[int] = set()
        self.rests = 0

    def append(self, event: Event | bytes, partition: int = 0) -> BusRecord:
        data = event if isinstance(event, bytes) else CODEC.encode(event)
        records = self.partitions[partition]
        key = None if isinstance(event, bytes) else key_of(event)
        headers = () if isinstance(event, bytes) else headers_of(event, bytes(8))
        where = BusPartition("cluster", "topic", partition)
        record = BusRecord(data, where, len(records), 7 + len(records), key, headers)
        records.append(record)
        return record


class MemorySource:
    """One member of the group."""

    kind = topic = "memory"

    def __init__(self, bus: MemoryBus) -> None:
        self.bus = bus
        self._at = dict.fromkeys(range(len(bus.partitions)), 0)
        self._at.update({each.number: at for each, at in bus.committed.items()})

    def poll(self, most: int, timeout: float) -> SourceBatch:
        records: list[BusRecord] = []
        for number, at in self._at.items():
            if number not in self.bus.lost:
                records += self.bus.partitions[number][at : at + most - len(records)]
        following = {each.partition: each.offset + 1 for each in records}
        self._at.update((each.number, at) for each, at in following.items())
        return SourceBatch(tuple(records), following)

    def rest(self) -> None:
        self.bus.rests += 1

    def done(self, positions: Mapping[BusPartition, int]) -> None:
        assert not {each.number for each in positions} & self.bus.lost
        self.bus.committed.update(positions)

    def owns(self, partition: BusPartition) -> bool:
        return partition.number not in self.bus.lost

    def lag(self) -> int:
        each = self._at.items()
        return sum(len(self.bus.partitions[number]) - at for number, at in each if number not in self.bus.lost)

    def rewind(self) -> None:
        raise AssertionError("a forwarder has no store that could be set back")

    def close(self) -> None: ...


class ScriptedForwarder:
    """Raises what its script says, one thing for each call, and then accepts everything."""

    def __init__(self, *script: Exception | Callable[[Sequence[BusEvent]], Awaitable[None]] | None) -> None:
        self.script = list(script)
        self.calls: list[list[Event]] = []
        self.received: list[Event] = []

    async def handle(self, batch: Sequence[BusEvent]) -> None:
        self.calls.append([each.event for each in batch])
        act = self.script.pop(0) if self.script else None
        if isinstance(act, Exception):
            raise act
        if act is not None:
            await act(batch)
        self.received += [each.event for each in batch]


def settings(**keys: str) -> ForwarderSettings:
    return read_settings("target", {"type": "x", **{key.replace("_", "."): value for key, value in keys.items()}})


class Stage:
    """A bus, the state on disk, and runners one after the other."""

    def __init__(self, folder: Path, partitions: int = 1) -> None:
        self.bus = MemoryBus(partitions)
        self.state = ForwarderState(folder, "target")
        self.lineage = LineageCache(self.state)

    def runner(self, forwarder: Forwarder, *, until_end: bool = True, **more: Any) -> ForwarderRunner:
        waits = more.pop("waits", QUICK)
        return ForwarderRunner(
            forwarder,
            MemorySource(self.bus),
            self.state,
            more.pop("settings", None) or settings(**more),
            lineage=self.lineage,
            until_end=until_end,
            waits=waits,
            idle=0.0,
        )

    def forward(self, forwarder: Forwarder, **more: Any) -> ForwarderRunner:
        """Run until the end of the bus."""
        runner = self.runner(forwarder, **more)

        async def run() -> None:
            await asyncio.wait_for(runner.run(), LONG)

        asyncio.run(run())
        return runner

    @property
    def committed(self) -> dict[int, int]:
        return {each.number: at for each, at in self.bus.committed.items()}


async def until(condition: Callable[[], bool]) -> None:
    """Let others run until the condition holds."""
    with suppress(asyncio.TimeoutError):
        await asyncio.wait_for(_poll(condition), LONG)
    assert condition()


async def cancelled_when(condition: Callable[[], bool], call: Coroutine[Any, Any, None]) -> None:
    """Give a call up once the condition holds, and not sooner: as a time-out does on a machine that is quick enough."""
    task = asyncio.create_task(call)
    await until(condition)
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
    assert task.cancelled()


async def _poll(condition: Callable[[], bool]) -> None:
    while not condition():  # noqa: ASYNC110 - what is waited for has no event
        await asyncio.sleep(0.001)


LAKE = "s3://lake"


def letters_in(stage: Stage, state: DeadLetterState | None = None) -> list[DeadLetter]:
    """The dead letters of the forwarder."""
    return [each for _, each in stage.state.letters.dead_letters(state)]


def retry_letters(stage: Stage) -> None:
    """Mark all as `headwater dead-letter retry --all` does."""
    names = [name for name, _ in stage.state.letters.dead_letters()]
    stage.state.letters.mark_dead_letters(names, DeadLetterState.RETRY)
