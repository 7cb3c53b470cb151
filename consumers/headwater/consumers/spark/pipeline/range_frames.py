"""Reads records of a bus from offsets to offsets, as batches for Spark."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, TypeAlias

from headwater.consumers.archive.columns import EXPIRED, MISSING
from headwater.consumers.archive.table import ArchiveFile
from headwater.consumers.replay.archive_range import ArchiveRange
from headwater.consumers.replay.kafka_range import KafkaRange
from headwater.consumers.replay.log_range import LogRange
from headwater.consumers.replay.ranges import BusRange, RangeSource
from headwater.consumers.spark.pipeline.log_frames import log_frame
from headwater.consumers.spark.pipeline.ranges import BatchOffsets
from headwater.consumers.spark.pipeline.records import SCHEMA, by_key, kafka_frame, kafka_options
from headwater.errors import ConfigurationError
from headwater.lineage.bulk import BusPartition

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

RangesByPartition: TypeAlias = Mapping[BusPartition, BusRange]
KafkaSettings: TypeAlias = Callable[[str], Mapping[str, str]]
"""Returns the settings of Kafka's Java client for a source's address."""
_OF_ARCHIVE: Final = (
    "data AS value",
    "partition",
    "offset",
    "unix_micros(append_time) AS append_time",
    "key",
    "CAST(headers AS ARRAY<STRUCT<key: STRING, value: BINARY>>) AS headers",
    "gap_end",
    "gap_reason",
)
_FILE_SCHEMA: Final = (
    "cluster string, offset bigint, append_time timestamp, key binary, data binary, "
    "headers array<struct<name: string, value: binary>>, gap_end bigint, gap_reason string, kind string, "
    "day date, topic_id string, partition int"
)


def archive_frame(spark: SparkSession, place: str, paths: Sequence[str], ranges: RangesByPartition) -> DataFrame:
    """Return the records of ranges out of files of an archive, and a row for each gap that begins in one of them.

    All ranges are of one topic, and `paths` are relative to the place of the archive.
    """
    if paths:
        root = place.rstrip("/").replace("s3://", "s3a://", 1)  # as Hadoop calls it
        one = next(iter(ranges))
        wanted = " OR ".join(
            f"(partition = {each.number} AND offset >= {found.first} AND offset < {found.end})"
            for each, found in ranges.items()
        )
        rows = spark.read.schema(_FILE_SCHEMA).option("basePath", root).parquet(*(f"{root}/{each}" for each in paths))
        rows = rows.where(f"kind NOT IN ('{MISSING}', '{EXPIRED}') OR gap_end IS NOT NULL")
        rows = rows.where(rows["cluster"] == one.cluster).where(rows["topic_id"] == one.topic).where(wanted)
        records = rows.selectExpr(*_OF_ARCHIVE)
    else:
        records = spark.createDataFrame([], SCHEMA)
    return by_key(records)


class RangeBatch:
    """Records of a range source, of one topic, that are stored together."""

    def __init__(self, spark: SparkSession, source: RangeSource, kafka: KafkaSettings, offsets: BatchOffsets) -> None:
        self._spark = spark
        self._source = source
        self._kafka = kafka
        self._offsets = offsets

    def offsets(self) -> BatchOffsets:
        return self._offsets

    def frame(self, ranges: RangesByPartition) -> DataFrame:
        source = self._source
        if isinstance(source, KafkaRange):
            tasks = max(len(ranges), self._spark.sparkContext.defaultParallelism)
            return kafka_frame(self._spark, kafka_options(self._kafka(source.address), tasks), source.topic, ranges)
        if isinstance(source, LogRange):
            return log_frame(self._spark, source.directory, ranges)
        if isinstance(source, ArchiveRange):
            files = source.archive.refresh().files
            paths = [each.path for each in files if has_records_in(each, ranges)]
            return archive_frame(self._spark, source.archive.address, paths, ranges)
        raise ConfigurationError(f"{source.address} can't be read by Spark: leave out --by spark")

    def check(self) -> None:
        """Raise an error if the topic was deleted and made again meanwhile."""
        self._source.ranges()


def has_records_in(file: ArchiveFile, ranges: RangesByPartition) -> bool:
    found = ranges.get(file.partition)
    return found is not None and file.first < found.end and file.end > found.first
