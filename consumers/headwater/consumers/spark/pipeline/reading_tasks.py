"""On executors: turns records into rows, and packs them by buckets. The rows are those of the writer, by its own code.

A Python worker of Spark lives on from task to task, and so do the names that it remembers.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from headwater.consumers.replay.ranges import LogRange
from headwater.consumers.sources import SourceBatch
from headwater.consumers.spark.pipeline.records import ArrowRecords, records_to_arrow
from headwater.consumers.spark.pipeline.shares import Share, reached_by, shares_of
from headwater.consumers.tuning import tune_garbage_collection
from headwater.consumers.writer.record_reader import RecordReader
from headwater.errors import ConfigurationError

MOST_EVENTS: Final = 20_000
"""So many events are mapped together. More of them have fewer rows each, since events repeat rows, and take memory."""
MOST_BYTES: Final = 8 << 20
_OF_LOG: Final = 2_000
"""So many records of a log go to Spark together."""
_readers: dict[tuple[Any, ...], RecordReader] = {}


@dataclass(frozen=True)
class BusReading:
    """What tasks have to know of a bus."""

    kind: str
    """`kafka` or `log`, as in dead letters."""
    cluster: str
    topic: str
    topic_name: str
    most_invalid: int

    def records(self) -> ArrowRecords:
        return ArrowRecords(self.cluster, self.topic)

    def take_reader(self) -> RecordReader:
        """Return the reader of this worker, or a new one. Whoever raises an error doesn't give it back."""
        tune_garbage_collection(freeze=False)
        known = _readers.pop(self._key, None)
        return known or RecordReader(self.kind, self.topic_name, most_invalid=self.most_invalid)

    def give_back(self, reader: RecordReader) -> None:
        _readers[self._key] = reader

    @property
    def _key(self) -> tuple[Any, ...]:
        return (self.kind, self.topic_name, self.most_invalid)


def reading_task(bus: BusReading, keys: list[int]) -> Callable[[Iterable[Any]], Iterable[Any]]:
    """Return the function that Spark calls with the Arrow batches of a partition; `keys` are those of the buckets."""

    def read(batches: Iterable[Any]) -> Iterator[Any]:
        for records in gather(bus, batches):
            reader = bus.take_reader()
            yield _pack(records, reader, keys)
            bus.give_back(reader)

    return read


def log_task(directory: str) -> Callable[[Iterable[Any]], Iterable[Any]]:
    """Return the function by which tasks read ranges of a local log's partitions: `number`, `first` and `end`."""

    def read(batches: Iterable[Any]) -> Iterator[Any]:
        if not Path(directory).is_dir():
            raise ConfigurationError(
                f"{directory} isn't on this executor ({socket.gethostname()}): a log is read by executors only from a "
                "disk that all of them see; use local[*], or a bus of Kafka"
            )
        with closing(LogRange(directory, Path(directory), dict)) as source:
            partitions = {each.number: each for each in source.ranges()}
            for part in (part for batch in batches for part in batch.to_pylist()):
                where = partitions[part["number"]]
                source.read({where: part["first"]}, {where: part["end"]})
                while found := _next_of(source):
                    yield records_to_arrow(found, part["end"])

    return read


def _next_of(source: LogRange) -> SourceBatch | None:
    """Return what comes next, or None where nothing does."""
    found = source.poll(_OF_LOG, 0) if source.lag() else SourceBatch()
    return found if found.records or found.gaps else None


def gather(bus: BusReading, batches: Iterable[Any]) -> Iterator[ArrowRecords]:
    """Yield records, as many together as are mapped together."""
    records = bus.records()
    for batch in batches:
        for start in range(0, len(batch), MOST_EVENTS):
            records.add(batch.slice(start, MOST_EVENTS))
            if len(records) >= MOST_EVENTS or records.size >= MOST_BYTES:
                yield records
                records = bus.records()
    if records.records or records.gaps:
        yield records


def _pack(records: ArrowRecords, reader: RecordReader, keys: list[int]) -> Any:
    read = reader.read(records.records)
    shares = shares_of(read.rows, len(keys))
    letters = records.complete(read.dead_letters)
    first = shares[0]
    shares[0] = Share(first.rows, letters, reached_by(records.records), records.gaps)
    return to_arrow([(key, share.pack()) for key, share in zip(keys, shares, strict=True) if any(share)])


def to_arrow(rows: list[tuple[int, bytes]]) -> Any:
    """Return an Arrow batch of `shares.SCHEMA`."""
    import pyarrow as pa  # noqa: PLC0415 - an executor of Spark has it

    keys, data = zip(*rows, strict=True)
    return pa.RecordBatch.from_arrays([pa.array(keys, pa.int32()), pa.array(data, pa.binary())], ["key", "data"])
