"""Frames with the records of a bus from offsets to offsets, read by executors: of Kafka, a local log or an archive.

Spark has no source for a local log: tasks read its files. Where executors are on other machines, the directory of a log
or an archive has to be on a disk that all of them see, under the same path.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

from headwater.consumers.archive.columns import EXPIRED, MISSING
from headwater.consumers.archive.table import ArchiveFile
from headwater.consumers.replay.archive_range import ArchiveRange
from headwater.consumers.replay.kafka_range import KafkaRange
from headwater.consumers.replay.ranges import LogRange, RangeSource
from headwater.consumers.spark.pipeline.batch_writer import RangesByPartition
from headwater.consumers.spark.pipeline.reading_tasks import log_task
from headwater.consumers.spark.pipeline.records import SCHEMA
from headwater.consumers.spark.session import functions
from headwater.errors import ConfigurationError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

KafkaSettings: TypeAlias = Callable[[str], Mapping[str, str]]
"""Returns the settings of Kafka's Java client for a source's address."""
_OF_KAFKA: Final = {
    "value": "value",
    "partition": "partition",
    "offset": "offset",
    "append_time": "CASE WHEN timestampType = 1 THEN unix_micros(timestamp) END AS append_time",
    "key": "key",
    "headers": "headers",
    "gap_end": "CAST(NULL AS BIGINT) AS gap_end",
    "gap_reason": "CAST(NULL AS STRING) AS gap_reason",
}
_NEEDED: Final = ("value", "partition", "offset", "timestamp", "timestampType")
_ABSENT: Final = {
    "key": "CAST(NULL AS BINARY) AS key",
    "headers": "CAST(NULL AS ARRAY<STRUCT<key: STRING, value: BINARY>>) AS headers",
}
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


def frame_of(
    spark: SparkSession, source: RangeSource, ranges: RangesByPartition, kafka: KafkaSettings = lambda _: {}
) -> DataFrame:
    """Return the records of ranges of a source, all of one topic."""
    if isinstance(source, KafkaRange):
        return kafka_frame(spark, kafka(source.address), source.topic, ranges)
    if isinstance(source, LogRange):
        return log_frame(spark, source.directory, ranges)
    if isinstance(source, ArchiveRange):
        files = source.archive.refresh().files
        paths = [each.path for each in files if has_records_in(each, ranges)]
        return archive_frame(spark, source.archive.address, paths, ranges)
    raise ConfigurationError(f"{source.address} can't be read by Spark: leave out --by spark")


def from_kafka(frame: DataFrame) -> DataFrame:
    """Return the records of a frame with the columns of Spark's Kafka source; `key` and `headers` may be missing.

    Only Kafka's own time counts as a record's append time, not one that a producer wrote.

    Records go through a shuffle, so that tasks read them on Spark's own threads: those that feed Python must not be
    interrupted while they use Kafka's client (KAFKA-1894), and Spark warns of that for each record. By it the events of
    a job meet in one task, where they share rows, and all cores have something to do.
    """
    missing = [name for name in _NEEDED if name not in frame.columns]
    if missing:
        raise ConfigurationError(
            f"the frame has no column {missing[0]}, but {', '.join(frame.columns)}: it needs the columns of Spark's "
            f"Kafka source, {', '.join(_NEEDED)}, and has key and headers if it can"
        )
    absent = {name: words for name, words in _ABSENT.items() if name not in frame.columns}
    return by_key(frame.selectExpr(*({**_OF_KAFKA, **absent}.values())))


def by_key(records: DataFrame) -> DataFrame:
    """Return records shuffled by their keys, those without one by their offsets."""
    key = functions().expr("if(key IS NULL, offset, hash(key))")
    return records.repartition(max(1, records.sparkSession.sparkContext.defaultParallelism), key)


def kafka_frame(spark: SparkSession, settings: Mapping[str, str], topic: str, ranges: RangesByPartition) -> DataFrame:
    """Return the records of ranges of a topic; `settings` are those of Kafka's Java client."""
    first = {str(each.number): found.first for each, found in ranges.items()}
    end = {str(each.number): found.end for each, found in ranges.items()}
    options = {
        **{f"kafka.{key}": value for key, value in settings.items()},
        "kafka.isolation.level": "read_committed",
        "includeHeaders": "true",
        "failOnDataLoss": "false",
        "minPartitions": str(max(len(ranges), spark.sparkContext.defaultParallelism)),
        "assign": json.dumps({topic: sorted(each.number for each in ranges)}),
        "startingOffsets": json.dumps({topic: first}),
        "endingOffsets": json.dumps({topic: end}),
    }
    return from_kafka(spark.read.format("kafka").options(**options).load())


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


def has_records_in(file: ArchiveFile, ranges: RangesByPartition) -> bool:
    found = ranges.get(file.partition)
    return found is not None and file.first < found.end and file.end > found.first


def log_frame(spark: SparkSession, directory: Path, ranges: RangesByPartition) -> DataFrame:
    """Return the records of ranges, read by as many tasks as there are cores: parts of a range follow each other."""
    parallelism = spark.sparkContext.defaultParallelism
    size = max(1, -(-sum(each.size for each in ranges.values()) // parallelism))
    parts = [
        (partition.number, first, min(each.end, first + size))
        for partition, each in ranges.items()
        for first in range(each.first, each.end, size)
    ]
    frame = spark.createDataFrame(parts, "number int, first bigint, end bigint")
    return frame.repartition(len(parts)).mapInArrow(log_task(str(directory)), SCHEMA)
