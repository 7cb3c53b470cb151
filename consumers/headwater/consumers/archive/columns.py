"""The columns of the archive: each record as it came, and what a person asks for, decoded."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, datetime, timezone
from typing import Any, Final

from headwater.consumers.archive.arrow import ArrowTable, pa, pc
from headwater.consumers.archive.decoding import DECODED_FIELDS, TIME, EventReader, to_columns
from headwater.consumers.sources.api import BusRecord, OffsetGap
from headwater.events.clock import wall_micros
from headwater.events.health import GapReason
from headwater.lineage.bulk import BusPartition

MISSING: Final = "missing"
"""The kind of a row that is no record: it says which offsets the bus had lost, and why."""
EXPIRED: Final = "expired"
"""The kind of a row that says which offsets retention removed."""
PARTITIONED_BY: Final = ("day", "topic_id", "partition")
HEADERS: Final = pa.list_(pa.struct([pa.field("name", pa.string()), pa.field("value", pa.binary())]))
SCHEMA: Final = pa.schema(
    [
        pa.field("day", pa.date32()),
        pa.field("topic_id", pa.string()),
        pa.field("partition", pa.int32()),
        pa.field("cluster", pa.string()),
        pa.field("topic", pa.string()),
        pa.field("offset", pa.int64()),
        pa.field("append_time", TIME),
        pa.field("key", pa.binary()),
        pa.field("headers", HEADERS),
        pa.field("data", pa.binary()),
        pa.field("checksum", pa.int64()),
        pa.field("gap_end", pa.int64()),
        pa.field("gap_reason", pa.string()),
        *DECODED_FIELDS,
    ]
)
RECORD_COLUMNS: Final = tuple(SCHEMA.names[5:14])
"""What is read to have records and gaps again: from `offset` to `kind`."""
_DAY_MICROS: Final = 86_400_000_000
_ROWS: Final = 5_000


class TableBuilder:
    """Turns records into rows of the archive, for one thread."""

    def __init__(self, topic: str) -> None:
        self._topic = topic
        self._reader = EventReader()

    def build(self, records: Sequence[BusRecord]) -> ArrowTable:
        """Return a row for each record, in their order. The day is that of the append time, else today."""
        none = [None] * len(records)
        headers = [[{"name": name, "value": value} for name, value in record.headers] for record in records]
        times = pa.array([record.append_time for record in records], pa.int64())
        columns = [
            *_place_columns([record.partition for record in records], self._topic),
            pa.array([record.offset for record in records], pa.int64()),
            times.cast(TIME),
            pa.array([record.key for record in records], pa.binary()),
            pa.array(headers, HEADERS),
            pa.array([record.data for record in records], pa.binary()),
            pa.array([checksum(record) for record in records], pa.int64()),
            pa.array(none, pa.int64()),
            pa.array(none, pa.string()),
        ]
        decoded = to_columns(self._reader.read(record.data) for record in records)
        return pa.Table.from_arrays([_days(times), *columns, *decoded], schema=SCHEMA)


def gap_rows(
    gaps: Sequence[OffsetGap], topics: Mapping[BusPartition, str], kind: str = MISSING, day: date | None = None
) -> ArrowTable:
    """Return a row for each gap. The day is today unless it is given."""
    today = day or datetime.now(timezone.utc).date()
    rows = [
        {
            "day": today,
            "topic_id": gap.partition.topic,
            "partition": gap.partition.number,
            "cluster": gap.partition.cluster,
            "topic": topics[gap.partition],
            "offset": gap.first,
            "gap_end": gap.end,
            "gap_reason": gap.reason.value,
            "kind": kind,
        }
        for gap in gaps
    ]
    return pa.Table.from_pylist(rows, schema=SCHEMA)


def checksum(record: BusRecord) -> int:
    """Return the CRC-32 of a record: a damaged page can decode to other bytes without an error."""
    parts = [b"%d %d" % (record.offset, -1 if record.append_time is None else record.append_time), record.key or b""]
    for name, value in record.headers:
        parts += (name.encode(), value or b"")
    parts.append(record.data)
    return zlib.crc32(b"\0".join(parts))


def to_items(table: ArrowTable, partition: BusPartition) -> Iterator[BusRecord | OffsetGap]:
    """Yield the records and gaps of rows. Raises a ValueError at a record that isn't what was archived."""
    for batch in table.to_batches(max_chunksize=_ROWS):
        columns = {name: batch.column(name) for name in RECORD_COLUMNS}
        columns["append_time"] = columns["append_time"].cast(pa.int64())
        rows = zip(*(columns[name].to_pylist() for name in RECORD_COLUMNS), strict=True)
        for offset, time, key, headers, data, expected, gap_end, gap_reason, kind in rows:
            if kind in {MISSING, EXPIRED}:
                yield OffsetGap(partition, offset, gap_end, GapReason(gap_reason))
                continue
            pairs = tuple((header["name"], header["value"]) for header in headers)
            record = BusRecord(data, partition, offset, time, key, pairs)
            if checksum(record) != expected:
                raise ValueError(f"the record at offset {offset} has another checksum")
            yield record


def _place_columns(partitions: Sequence[BusPartition], topic: str) -> list[Any]:
    return [
        pa.array([partition.topic for partition in partitions], pa.string()),
        pa.array([partition.number for partition in partitions], pa.int32()),
        pa.array([partition.cluster for partition in partitions], pa.string()),
        pa.repeat(pa.scalar(topic, pa.string()), len(partitions)),
    ]


def _days(append_times: Any) -> Any:
    """Return the days. Where the bus has no times, the day is that of archiving: an event's own time can be wrong."""
    known = pc.fill_null(append_times, wall_micros())
    return pc.divide(known, _DAY_MICROS).cast(pa.int32()).cast(pa.date32())
