"""Has Spark's tasks store the events of range sources: a replay by Spark, into a database or a lake."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, TypeAlias

from headwater.consumers.replay.ranges import Positions, RangeSource
from headwater.consumers.spark.pipeline.batch_writer import BatchSettings, OrderedBatches, PipelineFigures
from headwater.consumers.spark.pipeline.range_frames import KafkaSettings, RangeBatch
from headwater.consumers.spark.pipeline.ranges import PartitionRange, portions
from headwater.consumers.spark.pipeline.reading_tasks import BusReading
from headwater.lineage.bulk import BulkLineageMeta, BusPartition

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

WriterMaker: TypeAlias = Callable[[BusReading, BatchSettings, PipelineFigures], OrderedBatches]


class SparkRangeReader:
    """Stores ranges of sources, portion by portion. Interrupted, it goes on at the store's offsets."""

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
        number after each portion. Raises StopRequested where it is stopped."""
        available = {where: PartitionRange(*each) for where, each in source.ranges().items()}
        figures = PipelineFigures()
        by_topic: dict[tuple[str, str], dict[BusPartition, PartitionRange]] = {}
        for where, each in _left(available, self._meta.offsets(self._settings.group), end).items():
            by_topic.setdefault(where[:2], {})[where] = each
        for (cluster, topic), ranges in sorted(by_topic.items()):
            bus = BusReading(
                source.kind, cluster, topic, source.topic, self._most_invalid, as_copy=self._meta.takes_copies()
            )
            writer = self._make_writer(bus, self._settings, figures)
            writer.begin([])
            for portion in portions(
                ranges, {each: found.end for each, found in ranges.items()}, self._settings.most_records
            ):
                writer.write(RangeBatch(self._spark, source, self._kafka, portion, available))
                report(figures.events)
        return figures.events


def _left(
    available: Mapping[BusPartition, PartitionRange], stored: Positions, end: Positions
) -> dict[BusPartition, PartitionRange]:
    """Return what is to be read of each partition."""
    left = {}
    for where, last in end.items():
        if where in available:
            found = PartitionRange(max(available[where].first, stored.get(where, 0)), min(last, available[where].end))
            if found.size:
                left[where] = found
    return left
