"""What tests of the archive share: records as a bus has them, and a scripted source of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from pyarrow.parquet import ParquetFile

from headwater.consumers.archive.arrow import pa
from headwater.consumers.archive.columns import PARTITIONED_BY, SCHEMA, TableBuilder, gap_rows
from headwater.consumers.archive.table import ArchivedRange, EventArchive
from headwater.consumers.sources import BusRecord, OffsetGap, SourceBatch
from headwater.consumers.sources.api import StoredOffsets
from headwater.consumers.sources.archive import ArchiveSource
from headwater.events.avro import Codec
from headwater.lineage.bulk import BusPartition
from headwater.testing.examples import EXAMPLES

TOPIC = "headwater.events"
FIRST = BusPartition("cluster", "topic-id", 0)
SECOND = BusPartition("cluster", "topic-id", 1)
NOON = 1_772_366_400_000_000
"""2026-03-01 12:00 UTC."""
DAY = 86_400_000_000
KINDS = ("Committed", "CreateTable")
DATA = tuple(Codec().encode(each) for each in EXAMPLES if each.kind in KINDS)


def record(
    offset: int, partition: BusPartition = FIRST, *, time: int | None = NOON, key: bytes | None = b"k"
) -> BusRecord:
    data = DATA[offset % len(DATA)]
    return BusRecord(data, partition, offset, time, key, (("kind", b"x"), ("sequence", b"%d" % offset), ("kind", b"")))


def records(partition: BusPartition, first: int, end: int, *, time: int = NOON) -> list[BusRecord]:
    return [record(at, partition, time=time + at, key=b"key-%d" % (at % 3)) for at in range(first, end)]


def append(archive: EventArchive, found: Sequence[BusRecord], *gaps: OffsetGap) -> None:
    """As an archiver does that polled these."""
    lost = gap_rows(gaps, dict.fromkeys((each.partition for each in gaps), TOPIC))
    archive.append(pa.concat_tables([TableBuilder(TOPIC).build(found), lost]), ranges_of(found))


def ranges_of(found: Sequence[BusRecord]) -> list[ArchivedRange]:
    offsets: dict[BusPartition, list[int]] = {}
    for each in found:
        offsets.setdefault(each.partition, []).append(each.offset)
    return [ArchivedRange(where, min(at), max(at) + 1) for where, at in sorted(offsets.items())]


def read_all(place: Path | str, stored: StoredOffsets | None = None, *, most: int = 7) -> list[BusRecord]:
    """All records of an archive as its source gives them."""
    source = ArchiveSource(place, "test", stored)
    found: list[BusRecord] = []
    while (batch := source.poll(most, 0)).records or batch.gaps:
        found += batch.records
    assert source.lag() == 0
    return found


def in_order(found: Iterable[BusRecord]) -> dict[BusPartition, list[BusRecord]]:
    """The records of each partition, as they came."""
    by_partition: dict[BusPartition, list[BusRecord]] = {}
    for each in found:
        by_partition.setdefault(each.partition, []).append(each)
    return by_partition


def damage_page(path: Path) -> None:
    """Change a byte in the middle of the pages that have the events' bytes."""
    chunk = ParquetFile(path).metadata.row_group(0).column(SCHEMA.names.index("data") - len(PARTITIONED_BY) + 1)
    assert chunk.path_in_schema == "data"
    content = bytearray(path.read_bytes())
    content[chunk.data_page_offset + chunk.total_compressed_size // 2] ^= 0xFF  # it has no dictionary
    path.write_bytes(content)


class ScriptedSource:
    """A source of the given records, that begins where the archive ends, as Kafka's does."""

    kind = "kafka"
    topic = TOPIC

    def __init__(self, found: Sequence[BusRecord], stored: StoredOffsets) -> None:
        self.found = list(found)
        self.confirmed: dict[BusPartition, int] = {}
        self.gaps: list[OffsetGap] = []
        self._stored = stored
        self._left = self._unread()
        self.rewinds = 0

    def poll(self, most: int, timeout: float) -> SourceBatch:
        taken, self._left = self._left[:most], self._left[most:]
        gaps, self.gaps = tuple(self.gaps), []
        following = {each.partition: each.end for each in gaps if each.end is not None}
        return SourceBatch(tuple(taken), {**following, **{each.partition: each.offset + 1 for each in taken}}, gaps)

    def rest(self) -> None: ...

    def done(self, positions: Mapping[BusPartition, int]) -> None:
        self.confirmed.update(positions)

    def rewind(self) -> None:
        self.rewinds += 1
        self._left = self._unread()

    def _unread(self) -> list[BusRecord]:
        known = self._stored("cluster")
        return [each for each in self.found if each.offset >= known.get(each.partition, 0)]

    def lag(self) -> int:
        return len(self._left)

    def close(self) -> None: ...
