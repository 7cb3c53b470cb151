"""Records of a bus as columns of a DataFrame, and as they come to an executor's Python in Arrow batches.

A frame of records has the columns of `COLUMNS`. A row whose `gap_end` is set is no record: it says that the bus has
lost the offsets from `offset` up to `gap_end`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from headwater.consumers.replay.ranges import BusRange
from headwater.consumers.sources import BusRecord, OffsetGap
from headwater.consumers.spark.session import functions
from headwater.errors import ConfigurationError
from headwater.events.health import GapReason
from headwater.lineage.bulk import BusPartition, DeadLetter

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

COLUMNS: Final = ("value", "partition", "offset", "append_time", "key", "headers", "gap_end", "gap_reason")
SCHEMA: Final = (
    "value binary, partition int, offset bigint, append_time bigint, key binary, "
    "headers array<struct<key: string, value: binary>>, gap_end bigint, gap_reason string"
)
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


def from_kafka(frame: DataFrame) -> DataFrame:
    """Return the records of a frame with the columns of Spark's Kafka source; `key` and `headers` may be missing.

    Only Kafka's own time counts as a record's append time, not one that a producer wrote.

    Records go through a shuffle, so that tasks read them on Spark's own threads: those that feed Python must not be
    interrupted while they use Kafka's client (KAFKA-1894), and Spark warns of that for each record. By it the events of
    a job meet in one task, which learns their shapes once, and all cores have something to do.
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


def kafka_options(settings: Mapping[str, str], tasks: int) -> dict[str, str]:
    """Return the options of Spark's Kafka source; `settings` are those of Kafka's Java client."""
    return {
        **{f"kafka.{key}": value for key, value in settings.items()},
        "kafka.isolation.level": "read_committed",
        "includeHeaders": "true",
        "failOnDataLoss": "false",
        "minPartitions": str(tasks),
    }


def kafka_frame(
    spark: SparkSession, options: Mapping[str, str], topic: str, ranges: Mapping[BusPartition, BusRange]
) -> DataFrame:
    """Return the records of ranges of a topic."""
    first = {str(each.number): found.first for each, found in ranges.items()}
    end = {str(each.number): found.end for each, found in ranges.items()}
    reader = spark.read.format("kafka").options(
        **options,
        assign=json.dumps({topic: sorted(each.number for each in ranges)}),
        startingOffsets=json.dumps({topic: first}),
        endingOffsets=json.dumps({topic: end}),
    )
    return from_kafka(reader.load())


class ArrowRecords:
    """The records of some Arrow batches. Keys and headers are read only for dead letters, because they cost as much as
    all else."""

    def __init__(self, cluster: str, topic: str) -> None:
        self._cluster, self._topic = cluster, topic
        self._partitions: dict[int, BusPartition] = {}
        self._batches: list[tuple[int, Any]] = []
        self.records: list[BusRecord] = []
        self.gaps: list[OffsetGap] = []
        self.size = 0
        """Bytes of the events."""

    def __len__(self) -> int:
        return len(self.records)

    def add(self, batch: Any) -> None:
        columns = {name: batch.column(number) for number, name in enumerate(COLUMNS)}
        if columns["gap_end"].null_count < len(batch):
            self._add_gaps(columns)
            batch = batch.filter(columns["gap_end"].is_null())
            columns = {name: batch.column(number) for number, name in enumerate(COLUMNS)}
        values, partition = columns["value"].to_pylist(), self._partition
        numbers, offsets = columns["partition"].to_pylist(), columns["offset"].to_pylist()
        times = columns["append_time"].to_pylist()
        self._batches.append((len(self.records), batch))
        self.records += [
            BusRecord(value or b"", partition(number), offset, time)
            for value, number, offset, time in zip(values, numbers, offsets, times, strict=True)
        ]
        self.size += columns["value"].nbytes

    def complete(self, letters: Sequence[DeadLetter]) -> list[DeadLetter]:
        """Return dead letters with their records' keys and headers."""
        if not letters:
            return []
        places = {(each.partition, each.offset): at for at, each in enumerate(self.records)}
        return [self._completed(letter, places[letter.partition, letter.position]) for letter in letters]

    def complete_records(self) -> list[BusRecord]:
        """Return all records with their keys and headers."""
        found = []
        for at, each in enumerate(self.records):
            key, headers = self._rest(at)
            found.append(each._replace(key=key, headers=headers))
        return found

    def _completed(self, letter: DeadLetter, at: int) -> DeadLetter:
        key, headers = self._rest(at)
        return replace(letter, key=key, headers=headers)

    def _rest(self, at: int) -> tuple[bytes | None, tuple[tuple[str, bytes], ...]]:
        start, batch = next(each for each in reversed(self._batches) if each[0] <= at)
        key, headers = (batch.column(COLUMNS.index(name))[at - start].as_py() for name in ("key", "headers"))
        return key, tuple((each["key"], each["value"] or b"") for each in headers or ())

    def _add_gaps(self, columns: dict[str, Any]) -> None:
        names = ("partition", "offset", "gap_end", "gap_reason")
        for number, first, end, reason in zip(*(columns[name].to_pylist() for name in names), strict=True):
            if end is not None:
                self.gaps.append(OffsetGap(self._partition(number), first, end, GapReason(reason)))

    def _partition(self, number: int) -> BusPartition:
        known = self._partitions.get(number)
        if known is None:
            known = self._partitions[number] = BusPartition(self._cluster, self._topic, number)
        return known
