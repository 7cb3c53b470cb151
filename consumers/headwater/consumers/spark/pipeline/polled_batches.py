"""Forms micro-batches of a bus that is asked what it has: a local log, an archive, and whatever a replay reads.

Only the store's offsets say how far the bus was read; there is no checkpoint. Interrupted, the next run goes on there.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Final, TypeAlias

from headwater.consumers.replay.ranges import BusRange, Positions, RangeSource
from headwater.consumers.retrying import StopRequested
from headwater.consumers.sources.api import CLOCK_SKEW_MICROS
from headwater.consumers.spark.pipeline.batch_writer import BatchSettings, OrderedBatches, PipelineFigures
from headwater.consumers.spark.pipeline.range_frames import KafkaSettings, RangeBatch, RangesByPartition
from headwater.consumers.spark.pipeline.ranges import BatchOffsets
from headwater.consumers.spark.pipeline.reading_tasks import BusReading
from headwater.events.clock import wall_micros
from headwater.lineage.bulk import BulkLineageMeta, BusPartition

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_PAUSE_SECONDS: Final = 0.2
WriterMaker: TypeAlias = Callable[[BusReading, BatchSettings, PipelineFigures], OrderedBatches]


class PolledBatches:
    """Has the micro-batches of a source written, those of a topic in their order."""

    def __init__(
        self,
        spark: SparkSession,
        source: RangeSource,
        make_writer: Callable[[str, str], OrderedBatches],
        *,
        most_records: int,
        is_first_hand: bool = False,
        kafka: KafkaSettings = lambda _: {},
    ) -> None:
        """`make_writer` gets the cluster and the topic of partitions. Drivers write to what is `is_first_hand`, so that
        a store that has all of it is complete until now; an archive may lack what they have sent last."""
        self._spark = spark
        self._source = source
        self._kafka = kafka
        self._make_writer = make_writer
        self._writers: dict[tuple[str, str], OrderedBatches] = {}
        self._most_records = most_records
        self._is_first_hand = is_first_hand

    def run(self, is_stopping: Callable[[], bool], *, interval: float | None) -> None:
        """Run until stopped, with a batch each `interval` seconds; with None until the end that the bus has now."""
        asked = wall_micros() - CLOCK_SKEW_MICROS
        last = self._source.ranges()
        with suppress(StopRequested):
            while not is_stopping():
                began = time.monotonic()
                is_done = self._write_next(last if interval is None else self._source.ranges())
                if interval is None and is_done:
                    self._record_ends(last, asked)
                    return
                while is_done and interval is not None and not is_stopping() and time.monotonic() - began < interval:
                    time.sleep(_PAUSE_SECONDS)

    def write_until(self, last: RangesByPartition) -> Iterator[None]:
        """Write what comes before these ends, a batch of each topic each time. Raises StopRequested if stopped."""
        while not self._write_next(last):
            yield

    def _write_next(self, there: RangesByPartition) -> bool:
        """Write one batch of each topic. Return whether nothing is left of what is there."""
        is_done = True
        for topic, available in sorted(_by_topic(there).items()):
            writer = self._writer(topic, available)
            stored = writer.stored_offsets()
            left = {
                each: BusRange(first, found.end)
                for each, found in available.items()
                if (first := max(found.first, stored.get(each, 0))) < found.end
            }
            if left:
                is_done = False
                share = max(1, self._most_records // len(left))
                batch = {
                    each: BusRange(found.first, min(found.end, found.first + share)) for each, found in left.items()
                }
                offsets = BatchOffsets(batch, available)
                writer.write(RangeBatch(self._spark, self._source, self._kafka, offsets))
        return is_done

    def _writer(self, topic: tuple[str, str], available: RangesByPartition) -> OrderedBatches:
        if topic not in self._writers:
            self._writers[topic] = self._make_writer(*topic)
            self._writers[topic].begin(list(available) if self._is_first_hand else [])
        return self._writers[topic]

    def _record_ends(self, last: RangesByPartition, asked: int) -> None:
        if self._is_first_hand:
            for topic, available in _by_topic(last).items():
                self._writer(topic, available).record_ends(available, asked)


class SparkRangeReader:
    """Has Spark's tasks store ranges of sources: a replay by Spark, into a database or a lake."""

    def __init__(
        self,
        spark: SparkSession,
        meta: BulkLineageMeta,
        make_writer: WriterMaker,
        settings: BatchSettings,
        *,
        kafka: KafkaSettings,
        most_invalid: int,
    ) -> None:
        """`meta` is the store that `make_writer` writes into."""
        self._spark = spark
        self._meta = meta
        self._make_writer = make_writer
        self._settings = settings
        self._kafka = kafka
        self._most_invalid = most_invalid

    def read(self, source: RangeSource, end: Positions, report: Callable[[int], None]) -> int:
        """Store what a source has from the store's offsets up to these. Return the number of events. `report` gets that
        number after each batch. Raises StopRequested where it is stopped."""
        figures = PipelineFigures()

        def make(cluster: str, topic: str) -> OrderedBatches:
            bus = BusReading(source.kind, cluster, topic, source.topic, self._most_invalid)
            return self._make_writer(bus, self._settings, figures)

        batches = PolledBatches(self._spark, source, make, most_records=self._settings.most_records, kafka=self._kafka)
        there = source.ranges()
        wanted = {
            where: BusRange(there[where].first, min(last, there[where].end))
            for where, last in end.items()
            if where in there
        }
        for _ in batches.write_until(wanted):
            report(figures.events)
        return figures.events


def _by_topic(available: RangesByPartition) -> dict[tuple[str, str], dict[BusPartition, BusRange]]:
    found: dict[tuple[str, str], dict[BusPartition, BusRange]] = {}
    for partition, each in available.items():
        found.setdefault(partition[:2], {})[partition] = each
    return found
