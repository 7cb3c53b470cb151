"""Forms micro-batches of a bus that Spark has no source for: a local log, or an archive.

Only the store's offsets say how far the bus was read; there is no checkpoint.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Final, Protocol

from headwater.consumers.retrying import StopRequested
from headwater.consumers.sources.api import CLOCK_SKEW_MICROS
from headwater.consumers.spark.pipeline.batch_writer import OrderedBatches, SparkBatch
from headwater.consumers.spark.pipeline.ranges import BatchOffsets, PartitionRange
from headwater.events.clock import wall_micros
from headwater.lineage.bulk import BusPartition

_PAUSE_SECONDS: Final = 0.2


class PolledBus(Protocol):
    """A bus that is asked what it has."""

    @property
    def is_first_hand(self) -> bool:
        """Whether drivers write to it, so that a store that has all of it is complete until now."""
        ...

    def available(self) -> Mapping[BusPartition, PartitionRange]:
        """Return the offsets of each partition that can be read now."""
        ...

    def batch(self, offsets: BatchOffsets) -> SparkBatch:
        """Return a micro-batch of one topic."""
        ...


class PolledBatches:
    """Has the micro-batches of a bus written, those of a topic in their order."""

    def __init__(self, bus: PolledBus, make_writer: Callable[[str, str], OrderedBatches], *, most_records: int) -> None:
        """`make_writer` gets the cluster and the topic of partitions."""
        self._bus = bus
        self._make_writer = make_writer
        self._writers: dict[tuple[str, str], OrderedBatches] = {}
        self._most_records = most_records

    def run(self, is_stopping: Callable[[], bool], *, interval: float | None) -> None:
        """Run until stopped, with a batch each `interval` seconds; with None until the end that the bus has now."""
        asked = wall_micros() - CLOCK_SKEW_MICROS
        last = self._bus.available()
        with suppress(StopRequested):
            while not is_stopping():
                began = time.monotonic()
                is_done = self._write_next(last if interval is None else self._bus.available())
                if interval is None and is_done:
                    self._record_ends(last, asked)
                    return
                while is_done and interval is not None and not is_stopping() and time.monotonic() - began < interval:
                    time.sleep(_PAUSE_SECONDS)

    def _write_next(self, there: Mapping[BusPartition, PartitionRange]) -> bool:
        """Write one batch of each topic. Return whether nothing is left of what is there."""
        is_done = True
        for topic, available in sorted(_by_topic(there).items()):
            writer = self._writer(topic, available)
            stored = writer.stored_offsets()
            left = {
                each: PartitionRange(first, found.end)
                for each, found in available.items()
                if (first := stored.get(each, found.first)) < found.end
            }
            if left:
                is_done = False
                share = max(1, self._most_records // len(left))
                batch = {
                    each: PartitionRange(found.first, min(found.end, found.first + share))
                    for each, found in left.items()
                }
                writer.write(self._bus.batch(BatchOffsets(batch, available)))
        return is_done

    def _writer(self, topic: tuple[str, str], available: Mapping[BusPartition, PartitionRange]) -> OrderedBatches:
        if topic not in self._writers:
            self._writers[topic] = self._make_writer(*topic)
            self._writers[topic].begin(list(available) if self._bus.is_first_hand else [])
        return self._writers[topic]

    def _record_ends(self, last: Mapping[BusPartition, PartitionRange], asked: int) -> None:
        if self._bus.is_first_hand:
            for topic, available in _by_topic(last).items():
                self._writer(topic, available).record_ends(available, asked)


def _by_topic(
    available: Mapping[BusPartition, PartitionRange],
) -> dict[tuple[str, str], dict[BusPartition, PartitionRange]]:
    found: dict[tuple[str, str], dict[BusPartition, PartitionRange]] = {}
    for partition, each in available.items():
        found.setdefault(partition[:2], {})[partition] = each
    return found
