"""Reads a local log, which Spark has no source for: tasks read its files by ranges.

Where executors are on other machines, the log's directory has to be on a disk that all of them see, under the same
path.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from headwater.consumers.sources.api import CLOCK_SKEW_MICROS
from headwater.consumers.sources.local_log import KIND, REASONS
from headwater.consumers.spark.pipeline.ranges import BatchOffsets, PartitionRange
from headwater.consumers.spark.pipeline.records import COLUMNS, SCHEMA
from headwater.errors import ConfigurationError
from headwater.events.clock import wall_micros
from headwater.journal import LocalLog
from headwater.lineage.bulk import BusPartition

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_AT_ONCE: Final = 2_000
_BYTES_AT_ONCE: Final = 4 << 20


class LogBus:
    """A log, which is asked for batches. Drivers write to it."""

    def __init__(self, spark: SparkSession, directory: Path) -> None:
        self._spark = spark
        self._directory = directory
        self.is_first_hand: Final = True

    def available(self) -> dict[BusPartition, PartitionRange]:
        return available(self._directory)

    def batch(self, offsets: BatchOffsets) -> LogBatch:
        return LogBatch(self._spark, self._directory, offsets)


class LogBatch:
    """One batch of a log."""

    def __init__(self, spark: SparkSession, directory: Path, offsets: BatchOffsets) -> None:
        self._spark = spark
        self._directory = directory
        self._offsets = offsets

    def offsets(self) -> BatchOffsets:
        return self._offsets

    def frame(self, ranges: Mapping[BusPartition, PartitionRange]) -> DataFrame:
        """Return the records, read by as many tasks as there are cores: parts of a range follow each other."""
        parallelism = self._spark.sparkContext.defaultParallelism
        size = max(1, -(-sum(each.size for each in ranges.values()) // parallelism))
        parts = [
            (partition.number, first, min(each.end, first + size))
            for partition, each in ranges.items()
            for first in range(each.first, each.end, size)
        ]
        frame = self._spark.createDataFrame(parts, "number int, first bigint, end bigint")
        spread = frame.repartition(len(parts))
        return spread.mapInArrow(range_reader(str(self._directory)), SCHEMA)

    def check(self) -> None:
        """Do nothing: a log that was made anew begins with other partitions."""


def place_of(directory: Path) -> str:
    """Return the name of a log in the store's offsets: the same that the writer gives it on this host."""
    return f"{socket.gethostname()}:{directory.resolve()}"


def available(directory: Path) -> dict[BusPartition, PartitionRange]:
    """Return the offsets of each partition that can be read now."""
    if not directory.is_dir():
        raise ConfigurationError(
            f"{directory} isn't there: name the directory that drivers write to (spark.headwater.log.dir)"
        )
    log, place = LocalLog.open(directory), place_of(directory)
    found = {}
    for name in log.partitions():
        reader = log.reader(name)
        first = reader.first_offset()
        found[BusPartition(KIND, place, _number(name))] = PartitionRange(first, max(first, reader.next_offset()))
    return found


def range_reader(directory: str) -> Callable[[Iterable[Any]], Iterable[Any]]:
    """Return the function by which tasks read ranges of the log's partitions."""

    def read(batches: Iterable[Any]) -> Iterator[Any]:
        if not Path(directory).is_dir():
            raise ConfigurationError(
                f"{directory} isn't on this executor ({socket.gethostname()}): a log is read by executors only from a "
                "disk that all of them see; use local[*], or a bus of Kafka"
            )
        log = LocalLog.open(directory)
        names = {_number(name): name for name in log.partitions()}
        for batch in batches:
            for part in batch.to_pylist():
                yield from _read_range(log, names[part["number"]], part["number"], part["first"], part["end"])

    return read


def _read_range(log: LocalLog, name: str, number: int, first: int, end: int) -> Iterator[Any]:
    with log.reader(name).tail(first) as tail:
        while tail.position < end:
            found = tail.read(min(_AT_ONCE, end - tail.position), _BYTES_AT_ONCE)
            if not found:
                break
            rows: list[tuple[Any, ...]] = [
                (None, number, lost.first, None, None, None, min(lost.end_offset, end), REASONS[lost.reason].value)
                for lost in found.missing
                if lost.first < end
            ]
            rows += [
                (each.value, number, each.offset, _append_time(each.time), each.key, _headers(each.headers), None, None)
                for each in found.records
                if each.offset < end
            ]
            if rows:
                yield _to_arrow(rows)


def _append_time(time_of_record: int) -> int:
    """Return when a record was appended at the latest: a writer whose clock is ahead doesn't date what it writes."""
    now = wall_micros()
    return min(time_of_record, now) if time_of_record > now + CLOCK_SKEW_MICROS else time_of_record


def _headers(headers: Any) -> list[dict[str, Any]]:
    return [{"key": key, "value": value} for key, value in headers]


def _to_arrow(rows: list[tuple[Any, ...]]) -> Any:
    import pyarrow as pa  # noqa: PLC0415 - an executor of Spark has it

    pairs = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
    types = (pa.binary(), pa.int32(), pa.int64(), pa.int64(), pa.binary(), pairs, pa.int64(), pa.string())
    columns = [pa.array(values, kind) for values, kind in zip(zip(*rows, strict=True), types, strict=True)]
    return pa.RecordBatch.from_arrays(columns, list(COLUMNS))


def _number(name: str) -> int:
    return int(name.rpartition("-")[2])
