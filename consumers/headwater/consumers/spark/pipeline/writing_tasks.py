"""On executors: merges the shares of a bucket, and writes its rows into the store.

A task may run twice, at the same time too (a speculative one, or one whose executor is taken for dead and isn't): both
write the same rows, and the second one changes nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from headwater.consumers.sources import OffsetGap
from headwater.consumers.spark.pipeline.reading_tasks import BusReading, gather
from headwater.consumers.spark.pipeline.shares import MergedShares, Reached, Share, add_reached, reached_by
from headwater.errors import TransientError
from headwater.lineage.bulk import DatabaseBulkMeta, DeadLetter, WriteBatch, WriterMark, WriterMarks
from headwater.lineage.rows import Row
from headwater.lineage.sql.errors import StoreDataError
from headwater.lineage.store.engines import engine_for
from headwater.lineage.store.options import StoreOptions

T = TypeVar("T")
FLUSH_BYTES: Final = 48 << 20
"""With so many bytes of shares a bucket writes. As objects of Python they take about three times as much."""
_MOST_TOGETHER: Final = 500
"""So many events are a transaction where each event is written by itself."""
_LONGEST_WAIT: Final = 15.0
_MOST_SHOWN: Final = 20
"""Dead letters are written by tasks; the driver gets so many of each task, to log them."""


@dataclass
class TaskReply:
    """What the task of a bucket has done."""

    bucket: int
    rows: int = 0
    retries: int = 0
    mark_number: int = 0
    """What its mark counts now; 0 where it wrote nothing."""
    is_refused: bool = False
    """Whether the database refused a value."""
    is_stale: bool = False
    """Whether something was deleted from the store since the micro-batch began."""
    letters: int = 0
    shown_letters: list[DeadLetter] = field(default_factory=list)
    reached: dict[int, Reached] = field(default_factory=dict)
    gaps: list[OffsetGap] = field(default_factory=list)
    tombstones: list[Row] = field(default_factory=list)
    """Rows that the driver writes when all others are there."""

    def add_letters(self, letters: Iterable[DeadLetter]) -> None:
        more = list(letters)
        self.letters += len(more)
        self.shown_letters += more[: _MOST_SHOWN - len(self.shown_letters)]

    def add(self, held: MergedShares) -> None:
        """Add what isn't written by the task: how far it came, what is lost, and tombstones."""
        add_reached(self.reached, held.reached)
        self.gaps += held.gaps
        self.tombstones += held.tombstones


@dataclass(frozen=True)
class StoreWriting:
    """What tasks have to know of the store. It is pickled, with the password, and never printed."""

    options: StoreOptions
    patience: float
    """Seconds that a task waits for a store that doesn't answer."""

    def open(self) -> DatabaseBulkMeta:
        target = self.options.target
        return DatabaseBulkMeta(engine_for(target), target.words)


def writing_task(
    store: StoreWriting, keys: list[int], marks: list[bytes], epoch: int, after: int
) -> Callable[[Iterable[Any]], Iterator[TaskReply]]:
    """Return the function that Spark calls with the rows of a bucket.

    `marks` are the ids of the buckets' marks, whose numbers begin behind `after`. `epoch` is the store's when the
    micro-batch began: rows of a task that Spark gave up don't come back to a store that was purged meanwhile.
    """

    def write(rows: Iterable[Any]) -> Iterator[TaskReply]:
        bucket: _Bucket | None = None
        try:
            for key, data in rows:
                number = keys.index(key)
                if bucket is None:
                    bucket = _Bucket(store, number, WriterMark(WriterMarks(), marks[number], after=after), epoch)
                bucket.add(Share.unpack(data), len(data))
            if bucket is not None:
                yield bucket.finish()
        finally:
            if bucket is not None:
                bucket.close()

    return write


class _Bucket:
    """The rows of one bucket on their way into the store."""

    def __init__(self, store: StoreWriting, number: int, mark: WriterMark, epoch: int) -> None:
        self._meta = store.open()
        self._patience = store.patience
        self._mark = mark
        self._epoch = epoch
        self._held = MergedShares()
        self._reply = TaskReply(number)

    def add(self, share: Share, size: int) -> None:
        self._held.add(share, size)
        if self._held.size >= FLUSH_BYTES:
            self._flush()

    def finish(self) -> TaskReply:
        self._flush()
        return self._reply

    def close(self) -> None:
        self._meta.close()

    def _flush(self) -> None:
        held, self._held = self._held, MergedShares()
        reply = self._reply
        reply.add(held)
        rows = held.rows
        if reply.is_refused or reply.is_stale or not (rows or held.letters):
            return
        work = WriteBatch((), held.letters, mark=self._mark, packed=rows)
        try:
            merged = retry_transient(lambda: self._merge(work), self._patience)
        except StoreDataError:
            reply.is_refused = True
            return
        if merged is None:
            reply.is_stale = True
            return
        reply.rows += merged.rows
        reply.retries += merged.retries
        reply.mark_number = self._mark.acknowledged
        reply.add_letters(held.letters)

    def _merge(self, work: WriteBatch) -> Any:
        return self._meta.merge(work) if self._meta.epoch() == self._epoch else None


def single_events_task(bus: BusReading, store: StoreWriting) -> Callable[[Iterable[Any]], Iterable[Any]]:
    """Return the function by which tasks write events one by one, without a shuffle.

    It is for micro-batches with an event that the database refuses, and those during which something was deleted. All
    rows of an event are in one transaction. A refused event becomes a dead letter.
    """

    def write(batches: Iterable[Any]) -> Iterator[Any]:
        import pickle  # noqa: PLC0415

        from headwater.consumers.spark.pipeline.reading_tasks import to_arrow  # noqa: PLC0415

        meta, reply = store.open(), TaskReply(-1)
        try:
            for records in gather(bus, batches):
                _write_one_by_one(records, bus, store, meta, reply)
        finally:
            meta.close()
        yield to_arrow([(0, pickle.dumps(reply, pickle.HIGHEST_PROTOCOL))])

    return write


def _write_one_by_one(
    records: Any, bus: BusReading, store: StoreWriting, meta: DatabaseBulkMeta, reply: TaskReply
) -> None:
    reader = bus.take_reader()
    complete = records.complete_records()
    add_reached(reply.reached, reached_by(complete))
    reply.gaps += records.gaps
    for start in range(0, len(complete), _MOST_TOGETHER):
        some = complete[start : start + _MOST_TOGETHER]
        letters = reader.read(some).dead_letters
        events, work = list(reader.event_rows(some)), WriteBatch(dead_letters=letters)
        merged = retry_transient(lambda events=events, work=work: meta.merge_events(events, work), store.patience)  # type: ignore[misc]
        reply.rows += merged.rows
        reply.retries += merged.retries
        reply.add_letters([*letters, *merged.refused])
    bus.give_back(reader)


def retry_transient(work: Callable[[], T], seconds: float) -> T:
    """Repeat work that raises TransientErrors, with growing pauses, for so many seconds."""
    deadline, wait = time.monotonic() + seconds, 0.1
    while True:
        try:
            return work()
        except TransientError:
            if time.monotonic() + wait > deadline:
                raise
        time.sleep(wait)
        wait = min(2 * wait, _LONGEST_WAIT)
