"""Has the records of a micro-batch read by tasks, and merges their rows into the tables of a lake."""

from __future__ import annotations

import pickle
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Final

from headwater.consumers.spark.pipeline.batch_writer import BatchSettings, OrderedBatches, PipelineFigures, SparkBatch
from headwater.consumers.spark.pipeline.lake.arrow import SCHEMA, BucketReply, TableShare, bucket_task
from headwater.consumers.spark.pipeline.lake.meta import LakeBulkMeta
from headwater.consumers.spark.pipeline.reading_tasks import BusReading, reading_task
from headwater.consumers.spark.pipeline.shares import SCHEMA as SHARES
from headwater.consumers.spark.pipeline.writing_tasks import TaskReply

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_ROWS_OF_A_TASK: Final = 50_000
_TABLES_AT_ONCE: Final = 4
"""So many tables are merged at the same time: most are small, and Spark waits more than it works."""


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
        for reply in replies:
            reply.rows = 0
        if replies:
            replies[0].rows = sum(changed)
