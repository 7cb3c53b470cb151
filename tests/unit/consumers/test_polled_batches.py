"""Micro-batches of a bus that Spark has no source for, without Spark: which offsets are asked for, and when it ends."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from headwater.consumers.replay.ranges import BusRange
from headwater.consumers.retrying import StopRequested
from headwater.consumers.spark.pipeline.polled_batches import PolledBatches
from headwater.consumers.spark.pipeline.ranges import BatchOffsets
from headwater.lineage.bulk import BusPartition

OLD, NEW, OTHER = BusPartition("c", "old", 0), BusPartition("c", "new", 0), BusPartition("c", "new", 1)


class Bus:
    """A bus of two topics, that grows when it is asked to."""

    def __init__(self) -> None:
        self.ends = {OLD: 5, NEW: 30, OTHER: 3}

    def ranges(self) -> dict[BusPartition, BusRange]:
        return {each: BusRange(0, end) for each, end in self.ends.items()}


class Store:
    """Keeps the offsets of what it is given."""

    def __init__(self) -> None:
        self.next: dict[BusPartition, int] = {OLD: 2}
        self.calls: list[tuple[Any, ...]] = []

    def writer(self, cluster: str, topic: str) -> Any:
        return SimpleNamespace(
            begin=lambda partitions: self.calls.append(("begin", topic, len(partitions))),
            stored_offsets=lambda: dict(self.next),
            write=lambda batch: self.write(topic, batch.offsets()),
            record_ends=lambda ends, _: self.calls.append(("ends", topic, {each.number for each in ends})),
        )

    def write(self, topic: str, offsets: BatchOffsets) -> None:
        ranges = offsets.plan(self.next).ranges
        self.calls.append(("write", topic, {each.number: tuple(found) for each, found in ranges.items()}))
        self.next.update({each: found.end for each, found in ranges.items()})


def batches(bus: Any, store: Store, *, is_first_hand: bool = True) -> PolledBatches:
    nothing: Any = None
    return PolledBatches(nothing, bus, store.writer, most_records=20, is_first_hand=is_first_hand)


def never() -> bool:
    return False


def test_each_topic_is_stored_to_the_end_that_it_had_at_the_beginning() -> None:
    bus, store = Bus(), Store()
    batches(bus, store).run(never, interval=None)
    assert store.calls == [
        ("begin", "new", 2),
        ("write", "new", {0: (0, 10), 1: (0, 3)}),
        ("begin", "old", 1),
        ("write", "old", {0: (2, 5)}),
        ("write", "new", {0: (10, 30)}),
        ("ends", "old", {0}),
        ("ends", "new", {0, 1}),
    ]


def test_the_end_of_a_copy_is_not_the_end_of_what_drivers_sent() -> None:
    """An archive lacks what it hasn't archived yet: nothing is said to be complete."""
    store = Store()
    batches(Bus(), store, is_first_hand=False).run(never, interval=None)
    assert {call for call, *_ in store.calls} == {"begin", "write"}
    assert [count for call, _, count in store.calls if call == "begin"] == [0, 0]
    assert store.next == {OLD: 5, NEW: 30, OTHER: 3}


def test_with_an_interval_it_goes_on_with_what_comes_later() -> None:
    bus, store = Bus(), Store()

    def grown() -> bool:
        if store.next == {OLD: 5, NEW: 30, OTHER: 3}:
            bus.ends[OLD] = 9
        return store.next[OLD] == 9

    batches(bus, store).run(grown, interval=0)
    assert store.calls[-1] == ("write", "old", {0: (5, 9)})
    assert "ends" not in {call for call, *_ in store.calls}


def test_a_store_that_was_stopped_ends_it_without_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store()

    def stopped(*_: object) -> None:
        raise StopRequested

    monkeypatch.setattr(store, "write", stopped)
    batches(Bus(), store).run(never, interval=None)
    assert [call for call, *_ in store.calls] == ["begin"]
