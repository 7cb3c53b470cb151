"""The columns of the archive: each record as it came, and what a person asks for, decoded."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from headwater.consumers.archive.arrow import ArrowTable, pa, pc
from headwater.consumers.archive.column_decoding import ColumnDecoder
from headwater.consumers.archive.decoding import DECODED_FIELDS, TIME
from headwater.consumers.sources.api import BusRecord
from headwater.events.clock import wall_micros
from headwater.lineage.bulk import BusPartition

HEADERS: Final = pa.list_(pa.struct([pa.field("name", pa.string(), nullable=False), pa.field("value", pa.binary())]))
RECORD_FIELDS: Final = (
    pa.field("cluster", pa.string(), nullable=False),
    pa.field("topic_id", pa.string(), nullable=False),
    pa.field("topic", pa.string(), nullable=False),
    pa.field("partition", pa.int32(), nullable=False),
    pa.field("offset", pa.int64(), nullable=False),
    pa.field("append_time", TIME),
    pa.field("key", pa.binary()),
    pa.field("headers", HEADERS, nullable=False),
    pa.field("data", pa.binary(), nullable=False),
)
"""What a record is, to the byte."""
DAY: Final = "day"
KIND: Final = "kind"
FILE_SCHEMA: Final = pa.schema([*RECORD_FIELDS, *DECODED_FIELDS])
"""The columns of a file. `day` and `kind` are in its path."""
SCHEMA: Final = pa.schema([*FILE_SCHEMA, pa.field(DAY, pa.date32(), nullable=False), pa.field(KIND, pa.string())])
ORDER: Final = ((KIND, "ascending"), ("key", "ascending"), ("partition", "ascending"), ("offset", "ascending"))
"""The order of rows within a day."""
_DAY_MICROS: Final = 86_400_000_000


class TableBuilder:
    """Turns records into rows of the archive, for one thread."""

    def __init__(self, topic: str) -> None:
        self._topic = topic
        self._decoder = ColumnDecoder()

    def build(self, records: Sequence[BusRecord]) -> ArrowTable:
        """Return a row for each record, in their order. The day is that of the append time, else today."""
        data, partitions, offsets, times, keys, headers = zip(*records, strict=True) if records else ((),) * 6
        clusters, topics = _topic_columns(partitions)
        bytes_column = pa.array(data, pa.binary())
        append_times = pa.array(times, pa.int64())
        columns = [
            clusters,
            topics,
            pa.repeat(pa.scalar(self._topic, pa.string()), len(records)),
            pa.array([each.number for each in partitions], pa.int32()),
            pa.array(offsets, pa.int64()),
            append_times.cast(TIME),
            pa.array(keys, pa.binary()),
            _headers_column(headers),
            bytes_column,
        ]
        kinds, *decoded = self._decoder.decode(data)
        return pa.Table.from_arrays([*columns, *decoded, _days(append_times), kinds], schema=SCHEMA)


def _topic_columns(partitions: Sequence[BusPartition]) -> tuple[Any, Any]:
    """Return the clusters and the ids of topics. Nearly always there is one of each."""
    known = {each[:2] for each in set(partitions)}
    if len(known) == 1:
        cluster, topic = next(iter(known))
        count = len(partitions)
        return pa.repeat(pa.scalar(cluster, pa.string()), count), pa.repeat(pa.scalar(topic, pa.string()), count)
    return pa.array([each.cluster for each in partitions], pa.string()), pa.array(
        [each.topic for each in partitions], pa.string()
    )


def _headers_column(headers: Sequence[tuple[tuple[str, bytes], ...]]) -> Any:
    offsets, total = [0], 0
    for each in headers:
        total += len(each)
        offsets.append(total)
    names = pa.array([name for each in headers for name, _ in each], pa.string())
    values = pa.array([value for each in headers for _, value in each], pa.binary())
    items = pa.StructArray.from_arrays([names, values], fields=list(HEADERS.value_type))
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), items, type=HEADERS)


def _days(append_times: Any) -> Any:
    """Return the days. Where the bus has no times, the day is that of archiving: an event's own time can be wrong."""
    known = pc.fill_null(append_times, wall_micros())
    return pc.divide(known, _DAY_MICROS).cast(pa.int32()).cast(pa.date32())


def to_records(table: ArrowTable) -> list[BusRecord]:
    """Return the records of rows, as they came."""
    known: dict[tuple[str, str, int], BusPartition] = {}
    columns = [table.column(each.name).to_pylist() for each in RECORD_FIELDS if each.name != "append_time"]
    times = table.column("append_time").cast(pa.int64()).to_pylist()
    records: list[BusRecord] = []
    for cluster, topic_id, _, number, offset, key, headers, data, time in zip(*columns, times, strict=True):
        place = (cluster, topic_id, number)
        partition = known.get(place) or known.setdefault(place, BusPartition(*place))
        pairs = tuple((each["name"], each["value"]) for each in headers)
        records.append(BusRecord(data, partition, offset, time, key, pairs))
    return records
