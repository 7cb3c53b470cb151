"""Records of a bus as columns of a DataFrame, and as they come to an executor's Python in Arrow batches.

A frame of records has the columns of `COLUMNS`. A row whose `gap_end` is set is no record: it says that the bus has
lost the offsets from `offset` up to `gap_end`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from headwater.consumers.sources import BusRecord, OffsetGap, SourceBatch
from headwater.events.health import GapReason
from headwater.lineage.bulk import BusPartition, DeadLetter

COLUMNS: Final = ("value", "partition", "offset", "append_time", "key", "headers", "gap_end", "gap_reason")
SCHEMA: Final = (
    "value binary, partition int, offset bigint, append_time bigint, key binary, "
    "headers array<struct<key: string, value: binary>>, gap_end bigint, gap_reason string"
)


def records_to_arrow(found: SourceBatch, end: int) -> Any:
    """Return the records of a part, and its gaps as far as they lie before `end`, as an Arrow batch."""
    import pyarrow as pa  # noqa: PLC0415 - an executor of Spark has it

    rows = [
        {"partition": gap.partition.number, "offset": gap.first, "gap_reason": gap.reason.value, "gap_end": lost_until}
        for gap in found.gaps
        for lost_until in [end if gap.end is None else min(gap.end, end)]
        if gap.first < end
    ]
    records = (
        {
            "value": each.data,
            "partition": each.partition.number,
            "offset": each.offset,
            "append_time": each.append_time,
            "key": each.key,
            "headers": [{"key": key, "value": value} for key, value in each.headers],
        }
        for each in found.records
    )
    pairs = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
    types = (pa.binary(), pa.int32(), pa.int64(), pa.int64(), pa.binary(), pairs, pa.int64(), pa.string())
    return pa.RecordBatch.from_pylist([*rows, *records], schema=pa.schema(zip(COLUMNS, types, strict=True)))


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
