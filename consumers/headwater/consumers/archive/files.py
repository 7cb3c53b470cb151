"""Writes rows of the archive into Parquet files, and reads them."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator, Sequence
from datetime import date
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

from headwater.consumers.archive.arrow import ArrowTable, pa, pc, pq
from headwater.consumers.archive.columns import DAY, FILE_SCHEMA, KIND, ORDER
from headwater.consumers.archive.state import ArchiveFile, FileSpan
from headwater.events.clock import wall_micros
from headwater.lineage.bulk import BusPartition

EVENTS: Final = "events"
FILE_NAME: Final = re.compile(r"[0-9a-f]{16}-[0-9a-f]{12}\.parquet")
_ROW_GROUP: Final = 32_768
_UNIQUE: Final = frozenset({"data", "offset", "append_time", "event_time", "sequence", "barrier"})
"""Columns whose values hardly repeat: a dictionary of them would be thrown away."""
_SORTED: Final = ("key", "partition", "offset")
_BLOCK: Final = 1 << 20


def sort(table: ArrowTable) -> ArrowTable:
    """Return the rows by day, and within a day by kind, key, partition and offset."""
    return table.sort_by([(DAY, "ascending"), *ORDER]).combine_chunks()


def split(table: ArrowTable) -> Iterator[tuple[date, str, ArrowTable]]:
    """Yield the rows of each day and kind, of a sorted table."""
    if not table.num_rows:
        return
    runs = pc.run_end_encode(
        pc.binary_join_element_wise(table[DAY].cast(pa.string()), table[KIND], "/").combine_chunks()
    )
    begin = 0
    for end, label in zip(runs.run_ends.to_pylist(), runs.values.to_pylist(), strict=True):
        day, _, kind = label.partition("/")
        yield date.fromisoformat(day), kind, table.slice(begin, end - begin).select(FILE_SCHEMA.names)
        begin = end


def write_file(directory: Path, day: date, kind: str, table: ArrowTable) -> ArchiveFile:
    """Write one file into a directory, and bring it to the disk."""
    name = f"{wall_micros():016x}-{uuid4().hex[:12]}.parquet"
    path = directory / name
    with path.open("xb") as file:
        pq.write_table(table, file, **_options())
        file.flush()
        os.fsync(file.fileno())
    return ArchiveFile(
        path=f"{EVENTS}/{DAY}={day.isoformat()}/{KIND}={kind}/{name}",
        day=day,
        kind=kind,
        rows=table.num_rows,
        size=path.stat().st_size,
        sha256=digest_of(path),
        spans=spans_of(table),
        time=pc.min(table["append_time"].cast(pa.int64())).as_py() or 0,
        memory=table.nbytes,
    )


def _options() -> dict[str, Any]:
    repeated = [each.name for each in FILE_SCHEMA if each.name not in {*_UNIQUE, "headers", "datasets"}]
    nested = ["headers.list.element.name", "headers.list.element.value", "datasets.list.element"]
    return {
        "compression": "zstd",
        "compression_level": 1,
        "row_group_size": _ROW_GROUP,
        "use_dictionary": [*repeated, *nested],
        "write_statistics": [each.name for each in FILE_SCHEMA if each.name not in {"data", "headers", "datasets"}],
        "write_page_index": True,
        "write_page_checksum": True,
        "sorting_columns": pq.SortingColumn.from_ordering(FILE_SCHEMA, [(name, "ascending") for name in _SORTED]),
        "store_schema": False,
    }


def spans_of(table: ArrowTable) -> tuple[FileSpan, ...]:
    """Return which offsets of which partitions are in a table."""
    places = ["cluster", "topic_id", "partition"]
    found = table.select([*places, "offset"]).group_by(places)
    found = found.aggregate([("offset", "min"), ("offset", "max"), ("offset", "count")])
    columns: Sequence[list[Any]] = [found.column(name).to_pylist() for name in (*places, *_AGGREGATES)]
    return tuple(FileSpan(BusPartition(*row[:3]), *row[3:]) for row in sorted(zip(*columns, strict=True)))


_AGGREGATES: Final = ("offset_min", "offset_max", "offset_count")


def digest_of(path: Path) -> str:
    """Return the SHA-256 of a file."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            digest.update(block)
    return digest.hexdigest()


def read_file(path: Path, columns: Sequence[str] | None = None) -> ArrowTable:
    """Return the rows of a file, as a table of the archive's own types."""
    with pq.ParquetFile(path, page_checksum_verification=True) as file:
        table = file.read(columns=None if columns is None else list(columns))
    names = FILE_SCHEMA.names if columns is None else columns
    return table.select(list(names)).cast(pa.schema([FILE_SCHEMA.field(name) for name in names]))
