"""Has the records of a micro-batch read by tasks, and merges their rows into the tables of a lake."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from headwater.consumers.spark.pipeline.batch_writer import BatchSettings, OrderedBatches, PipelineFigures, SparkBatch
from headwater.consumers.spark.pipeline.lake.meta import LakeBulkMeta
from headwater.consumers.spark.pipeline.lake.tables import SCHEMA, pack, tuples_of
from headwater.consumers.spark.pipeline.reading_tasks import BusReading, reading_task
from headwater.consumers.spark.pipeline.shares import SCHEMA as SHARES
from headwater.consumers.spark.pipeline.shares import MergedShares, Share
from headwater.consumers.spark.pipeline.writing_tasks import TaskReply
from headwater.lineage.bulk.dead_letters import letter_row
from headwater.lineage.lake.merging import lake_tables
from headwater.lineage.sql.writer_tables import DEAD_LETTERS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_ROWS_OF_A_TASK: Final = 50_000
_TABLES_AT_ONCE: Final = 4
"""So many tables are merged at the same time: most are small, and Spark waits more than it works."""


class TableShare(NamedTuple):
    """How many rows of a table there are, and the least and the greatest value of the column by which MERGE skips
    files; zeros where there is none."""

    rows: int
    least: int = 0
    greatest: int = 0

    @classmethod
    def of(cls, name: str, values: Sequence[Sequence[Any]]) -> TableShare:
        table = lake_tables()[name]
        if table.partition is None:
            return cls(len(values))
        at = list(table.columns).index(table.partition)
        found = [each[at] for each in values]
        return cls(len(values), min(found), max(found))

    def with_other(self, other: TableShare) -> TableShare:
        least, greatest = min(self.least, other.least), max(self.greatest, other.greatest)
        return TableShare(self.rows + other.rows, least, greatest)


@dataclass
class BucketReply(TaskReply):
    """What the task of a bucket has made."""

    tables: dict[str, TableShare] = field(default_factory=dict)
    """The tables that it has rows of."""


def bucket_task(rows: Iterable[Any]) -> Iterator[tuple[str, bytearray]]:
    """Merge the shares of a bucket by key. Yield its rows by tables, and what was done.

    All of a bucket is merged before any of it goes on, because a MERGE wants each key once.
    """
    held, reply = MergedShares(), BucketReply(-1)
    for _, data in rows:
        held.add(Share.unpack(data), len(data))
    reply.add(held)
    reply.add_letters(held.letters)
    tables: dict[str, Sequence[Sequence[Any]]] = {each.name: each.rows for each in held.rows}
    if held.letters:
        letters = {row["id"]: row for row in map(letter_row, held.letters)}
        tables[str(DEAD_LETTERS.name)] = tuples_of(DEAD_LETTERS.name, letters.values())
    for name, values in tables.items():
        reply.tables[name] = TableShare.of(name, values)
        yield from pack(name, values)
    yield "", bytearray(pickle.dumps(reply, pickle.HIGHEST_PROTOCOL))


class LakeBatchWriter(OrderedBatches):
    """Writes micro-batches into a lake: one MERGE for each table that changes, then offsets.

    A driver that dies in between leaves some tables with the micro-batch's rows and others without. Its successor
    finds the offsets where they were, reads the same records, and merges the same rows: what is there doesn't change.
    """

    def __init__(
        self,
        meta: LakeBulkMeta,
        patience: float,
        bus: BusReading,
        settings: BatchSettings,
        figures: PipelineFigures,
    ) -> None:
        super().__init__(meta, patience, bus, settings, figures)
        self._tables = meta.tables

    def _run_tasks(self, batch: SparkBatch, frame: DataFrame, epoch: int) -> list[TaskReply]:
        shares = frame.mapInArrow(reading_task(self._bus, self._keys), SHARES)
        by_bucket = shares.repartition(len(self._keys), "key").rdd.mapPartitions(bucket_task)
        packed = self._tables.spark.createDataFrame(by_bucket, SCHEMA, verifySchema=False).persist()
        try:
            found = packed.where("name = ''").select("data").collect()
            replies: list[BucketReply] = [pickle.loads(row.data) for row in found]  # noqa: S301 - a task of ours packed it
            self._merge_all(packed, replies)
        finally:
            packed.unpersist()
        self._complete(batch, replies, epoch)
        return [*replies]

    def _merge_all(self, packed: DataFrame, replies: list[BucketReply]) -> None:
        shares: dict[str, TableShare] = {}
        for name, share in (each for reply in replies for each in reply.tables.items()):
            shares[name] = shares[name].with_other(share) if name in shares else share

        def merge(name: str) -> int:
            share = shares[name]
            rows = self._tables.unpacked(name, packed, tasks=1 + share.rows // _ROWS_OF_A_TASK)
            return self._tables.merge(name, rows, (share.least, share.greatest))

        with ThreadPoolExecutor(_TABLES_AT_ONCE, "headwater-merge") as pool:
            changed = list(pool.map(merge, shares))
        if replies:
            replies[0].rows = sum(changed)
