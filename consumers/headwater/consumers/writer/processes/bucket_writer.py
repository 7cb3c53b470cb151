"""In a bucket's process: writes packed rows. No other process writes the bucket's keys, so nothing waits for locks."""

from __future__ import annotations

import pickle
import time
from dataclasses import dataclass
from typing import Final, NamedTuple

from headwater.lineage.bulk import DatabaseBulkMeta, WriteBatch, WriterMark, WriterMarks
from headwater.lineage.store.engines import engine_for
from headwater.lineage.store.options import StoreOptions


class FlushReply(NamedTuple):
    """The outcome of a flush."""

    rows: int
    retries: int
    seconds: float
    number: int
    """Of the bucket's mark."""


@dataclass(frozen=True)
class BucketWriterRole:
    """The settings of a bucket's process."""

    options: StoreOptions
    mark: bytes
    """The id of the mark that counts its transactions. The coordinator checks it before it moves offsets."""

    def start(self) -> BucketWriter:
        target = self.options.target
        return BucketWriter(DatabaseBulkMeta(engine_for(target), target.words), WriterMark(WriterMarks(), self.mark))


class BucketWriter:
    """Writes a share of an instant in one transaction. Rows are locked in the order of their kinds and ids, as in every
    transaction, so writers on other machines can't deadlock with it."""

    def __init__(self, meta: DatabaseBulkMeta, mark: WriterMark) -> None:
        self.meta: Final = meta
        self._mark = mark

    def __call__(self, share: bytes) -> FlushReply:
        began = time.monotonic()
        packed = pickle.loads(share)  # noqa: S301 - a reading process packed it
        merged = self.meta.merge(WriteBatch(packed=packed, mark=self._mark))
        return FlushReply(merged.rows, merged.retries, time.monotonic() - began, self._mark.acknowledged)
