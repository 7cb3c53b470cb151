"""Micro-batches of a bus, without Spark: which offsets are asked for, what is lost, and when it ends."""

from __future__ import annotations

import random
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from headwater.consumers.replay.ranges import BusRange
from headwater.consumers.retrying import StopRequested
from headwater.consumers.sources import OffsetGap
from headwater.consumers.spark.pipeline import polled_batches
from headwater.consumers.spark.pipeline.batch_writer import SparkBatch
from headwater.consumers.spark.pipeline.kafka_topic import TopicRecreated
from headwater.consumers.spark.pipeline.polled_batches import PolledBatches
from headwater.events.health import GapReason
from headwater.lineage.bulk import BusPartition
from tests.kit.seeds import seed

OLD, NEW, OTHER = BusPartition("c", "old", 0), BusPartition("c", "new", 0), BusPartition("c", "new", 1)


class Bus:
    """A bus of two topics, that grows when it is asked to."""

    def __init__(self, **first: int) -> None:
        self.ends = {OLD: 5, NEW: 30, OTHER: 3}
        self.first = first

    def ranges(self) -> dict[BusPartition, BusRange]:
        return {each: BusRange(self.first.get(each.topic, 0), end) for each, end in self.ends.items()}


class Store:
    """Keeps the offsets of what it is given, which only go forward."""

    def __init__(self) -> None:
        self.next: dict[BusPartition, int] = {OLD: 2}
        self.calls: list[tuple[Any, ...]] = []

    def writer(self, cluster: str, topic: str) -> Any:
        return SimpleNamespace(
            begin=lambda partitions: self.calls.append(("begin", topic, len(partitions))),
            stored_offsets=lambda: dict(self.next),
            write=lambda batch: self.write(topic, batch),
            record_ends=lambda ends, _: self.calls.append(("ends", topic, {each.number for each in ends})),
            record_gaps=lambda gaps: self.record_gaps(topic, gaps),
        )

    def write(self, topic: str, batch: SparkBatch) -> bool:
        batch.available()
        self.calls.append(("write", topic, {each.number: tuple(found) for each, found in batch.ranges.items()}))
        self.move({each: found.end for each, found in batch.ranges.items()})
        return True

    def record_gaps(self, topic: str, gaps: Sequence[OffsetGap]) -> None:
        self.calls += [("gap", topic, (each.first, each.end, each.reason)) for each in gaps]
        self.move({each.partition: each.end or 0 for each in gaps})

    def move(self, following: dict[BusPartition, int]) -> None:
        self.next.update({each: max(self.next.get(each, 0), at) for each, at in following.items()})

    def of(self, *calls: str) -> list[tuple[Any, ...]]:
        return [each for each in self.calls if each[0] in calls]


def batches(bus: Any, store: Store, *, is_first_hand: bool = True, most: int = 20) -> PolledBatches:
    frame: Any = dict
    return PolledBatches(bus, frame, store.writer, most_records=most, is_first_hand=is_first_hand)


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


def test_what_is_read_is_what_lies_between_the_store_and_the_end_whatever_they_are() -> None:
    chance = random.Random(seed())
    for _ in range(300):
        store, first = Store(), chance.randrange(10)
        bus = Bus(new=first)
        bus.ends = {each: first + chance.randrange(30) for each in (NEW, OTHER)}
        store.next = {each: chance.randrange(bus.ends[each] + 1) for each in chance.sample([NEW, OTHER], 1)}
        before = dict(store.next)
        batches(bus, store, most=chance.randrange(1, 40)).run(never, interval=None)
        read = [
            (number, offset)
            for _, _, parts in store.of("write")
            for number, each in parts.items()
            for offset in range(*each)
        ]
        wanted = {
            (each.number, offset)
            for each, end in bus.ends.items()
            for offset in range(max(first, before.get(each, 0)), end)
        }
        assert sorted(read) == sorted(wanted)
        lost = {each: at for each, at in before.items() if at < first}
        assert store.of("gap") == [("gap", "new", (at, first, GapReason.LOG_EXPIRED)) for at in lost.values()]


def test_the_end_of_a_copy_is_not_the_end_of_what_drivers_sent() -> None:
    """An archive lacks what it hasn't archived yet: nothing is said to be complete."""
    store = Store()
    batches(Bus(), store, is_first_hand=False).run(never, interval=None)
    assert {call for call, *_ in store.calls} == {"begin", "write"}
    assert [count for call, _, count in store.calls if call == "begin"] == [0, 0]
    assert store.next == {OLD: 5, NEW: 30, OTHER: 3}


def test_with_an_interval_it_goes_on_with_what_comes_later(monkeypatch: pytest.MonkeyPatch) -> None:
    bus, store = Bus(), Store()

    def grown() -> bool:
        if store.next == {OLD: 5, NEW: 30, OTHER: 3}:
            bus.ends[OLD] = 9
        return store.next[OLD] == 9

    monkeypatch.setattr(polled_batches, "_PAUSE_SECONDS", 0)
    batches(bus, store).run(grown, interval=0)
    assert store.calls[-1] == ("write", "old", {0: (5, 9)})
    assert not store.of("ends")


def test_with_an_interval_partitions_to_which_nothing_comes_are_complete_now_and_then(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    store = Store()
    for name in ("_PAUSE_SECONDS", "END_CHECK_SECONDS"):
        monkeypatch.setattr(polled_batches, name, 0)
    batches(Bus(), store).run(lambda: len(store.of("ends")) >= 4, interval=0)
    assert store.of("ends")[:2] == [("ends", "old", {0}), ("ends", "new", {0, 1})]


def test_a_store_that_was_stopped_ends_it_without_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store()

    def stopped(*_: object) -> bool:
        raise StopRequested

    monkeypatch.setattr(store, "write", stopped)
    batches(Bus(), store).run(never, interval=None)
    assert [call for call, *_ in store.calls] == ["begin"]


def test_a_store_that_is_set_back_while_it_is_written_is_read_from_where_it_is_then(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    store, write = Store(), Store.write
    bus = Bus()
    bus.ends = {NEW: 30}

    def lose(topic: str, batch: SparkBatch) -> bool:
        if len(store.of("write")) == 1:
            store.calls.append(("lost",))
            store.next.clear()
            monkeypatch.setattr(store, "write", lambda *arguments: write(store, *arguments))
            return False
        return write(store, topic, batch)

    monkeypatch.setattr(store, "write", lose)
    batches(bus, store).run(never, interval=None)
    assert store.of("write", "lost") == [
        ("write", "new", {0: (0, 20)}),
        ("lost",),
        ("write", "new", {0: (0, 20)}),
        ("write", "new", {0: (20, 30)}),
    ]


def test_a_partition_that_lost_its_end_is_read_from_there_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its new records have offsets that the store has passed. They would be skipped in silence."""
    bus, store = Bus(), Store()
    bus.ends, store.next = {NEW: 30}, {NEW: 90}
    monkeypatch.setattr(polled_batches, "_PAUSE_SECONDS", 0)

    def grown() -> bool:
        if store.calls:
            bus.ends[NEW] = min(110, bus.ends[NEW] + 7)
        return store.next[NEW] == 110

    batches(bus, store).run(grown, interval=0)
    assert store.of("gap") == [("gap", "new", (30, 90, GapReason.LOG_RECREATED))]
    assert [each for _, _, parts in store.of("write") for each in range(*parts[0])] == list(range(30, 110))


def test_what_another_reader_of_the_group_has_stored_meanwhile_is_no_loss() -> None:
    """The ends that were asked for at the beginning are older than the store's offsets."""
    bus, store = Bus(), Store()
    bus.ends = {NEW: 30}

    class Growing(Bus):
        def ranges(self) -> dict[BusPartition, BusRange]:
            found = bus.ranges()
            bus.ends[NEW] = 95
            return found

    store.next = {NEW: 90}
    batches(Growing(), store).run(never, interval=None)
    assert not store.of("gap", "write")


def test_a_topic_that_is_made_anew_is_read_from_its_beginning_and_the_rest_of_the_old_one_is_lost() -> None:
    store = Store()

    class Recreated(Bus):
        def __init__(self) -> None:
            super().__init__()
            self.ends, self.asked = {OLD: 9}, 0

        def ranges(self) -> dict[BusPartition, BusRange]:
            self.asked += 1
            if self.asked == 2:  # while the first micro-batch is written
                seen, self.ends = super().ranges(), {NEW: 4}
                raise TopicRecreated("lineage", seen)
            return super().ranges()

    batches(Recreated(), store).run(never, interval=None)
    assert store.of("gap", "write", "ends") == [
        ("gap", "old", (2, 9, GapReason.LOG_RECREATED)),
        ("write", "new", {0: (0, 4)}),
        ("ends", "new", {0}),
    ]
