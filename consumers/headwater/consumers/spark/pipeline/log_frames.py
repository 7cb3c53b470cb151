"""Reads a local log, which Spark has no source for: tasks read its files by ranges.

Where executors are on other machines, the log's directory has to be on a disk that all of them see, under the same
path.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from headwater.consumers.replay.ranges import BusRange
from headwater.consumers.sources.api import CLOCK_SKEW_MICROS
from headwater.consumers.sources.local_log import REASONS
from headwater.consumers.spark.pipeline.records import COLUMNS, SCHEMA
from headwater.errors import ConfigurationError
from headwater.events.clock import wall_micros
from headwater.journal import LocalLog
from headwater.lineage.bulk import BusPartition

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_AT_ONCE: Final = 2_000
_BYTES_AT_ONCE: Final = 4 << 20


def log_frame(spark: SparkSession, directory: Path, ranges: Mapping[BusPartition, BusRange]) -> DataFrame:
    """Return the records of ranges, read by as many tasks as there are cores: parts of a range follow each other."""
    parallelism = spark.sparkContext.defaultParallelism
    size = max(1, -(-sum(each.size for each in ranges.values()) // parallelism))
    parts = [
        (partition.number, first, min(each.end, first + size))
        for partition, each in ranges.items()
        for first in range(each.first, each.end, size)
    ]
    frame = spark.createDataFrame(parts, "number int, first bigint, end bigint")
    return frame.repartition(len(parts)).mapInArrow(range_reader(str(directory)), SCHEMA)


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
