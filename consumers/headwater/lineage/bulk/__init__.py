"""Writes many rows at once, and keeps what a writer needs to resume: offsets, instants, dead letters.

api                the interface `BulkLineageMeta` and its parameters
database           its implementation in a database
transactions       retries transactions that conflict, and translates their errors
packing            rows by kind as tuples, in the order in which they are written
mysql, postgres    the fastest way of each database
positions          offsets, and up to which time the bus is stored
timeline           the instants of writers
dead_letters       events that couldn't be stored
marks              show a writer that the database was set back, or that rows were deleted
"""

from headwater.lineage.bulk.api import (
    EMPTY_BATCH,
    BulkLineageMeta,
    BusPartition,
    ConsumerOffset,
    DeadLetter,
    DeadLetterReason,
    DeadLetterState,
    EventRows,
    IngestProgress,
    InstantState,
    MergeResult,
    WriteBatch,
    WriterInstant,
)
from headwater.lineage.bulk.database import DatabaseBulkMeta, merge_packed, merge_rows
from headwater.lineage.bulk.marks import EpochChanged, StoreSetBack, WriterMark, WriterMarks, bump_epoch
from headwater.lineage.bulk.packing import PackedRows, pack_rows

__all__ = [
    "EMPTY_BATCH",
    "BulkLineageMeta",
    "BusPartition",
    "ConsumerOffset",
    "DatabaseBulkMeta",
    "DeadLetter",
    "DeadLetterReason",
    "DeadLetterState",
    "EpochChanged",
    "EventRows",
    "IngestProgress",
    "InstantState",
    "MergeResult",
    "PackedRows",
    "StoreSetBack",
    "WriteBatch",
    "WriterInstant",
    "WriterMark",
    "WriterMarks",
    "bump_epoch",
    "merge_packed",
    "merge_rows",
    "pack_rows",
]
