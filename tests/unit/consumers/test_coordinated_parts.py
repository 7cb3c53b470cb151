"""The parts of the coordinated pipeline that need no store."""

from __future__ import annotations

import threading

import pytest

from headwater.consumers.sources import BusRecord, SourceBatch
from headwater.consumers.writer.coordinated.buckets import Assigner, Bucket
from headwater.consumers.writer.coordinated.instants import OpenInstant
from headwater.consumers.writer.coordinated.limits import PollSize, split_batch
from headwater.consumers.writer.record_reader import ReadResult
from headwater.lineage.bulk import BusPartition
from headwater.lineage.rows import Row
from headwater.lineage.rows import tables as t
from headwater.lineage.rows.copy_format import CopyRows

WHERE = BusPartition("cluster", "topic")
ROWS = [Row(t.TAG, bytes([0] * 15 + [number % 256]), (number,)) for number in range(1_000)]


def taken(*sizes: int) -> tuple[BusRecord, ...]:
    return tuple(BusRecord(b"x" * size, WHERE, number, None) for number, size in enumerate(sizes))


def test_a_bucket_keeps_what_is_not_acknowledged() -> None:
    bucket = Bucket(10)
    bucket.add(ROWS[:4])
    assert bucket.request_flush() == 4
    assert bucket.wait_until_due() == ROWS[:4]
    bucket.add(ROWS[4:6])
    assert bucket.wait_until_due() == ROWS[:6], "it failed, and is repeated with what came meanwhile"
    bucket.acknowledge(6)
    assert (bucket.stored, bucket.waiting, bucket.end) == (6, 0, 6)


def test_a_bucket_with_many_rows_is_due_by_itself() -> None:
    bucket, given = Bucket(10), list[list[Row] | None]()
    waiting = threading.Thread(target=lambda: given.append(bucket.wait_until_due()))
    waiting.start()
    bucket.add(ROWS[:9])
    bucket.add(ROWS[9:10])
    waiting.join(30)
    assert given == [ROWS[:10]]


def test_a_bucket_that_is_closed_lets_go() -> None:
    bucket, given = Bucket(10), list[list[Row] | None]()
    waiting = threading.Thread(target=lambda: given.append(bucket.wait_until_due()))
    waiting.start()
    bucket.close()
    waiting.join(30)
    assert given == [None]


def test_what_was_refused_is_known_of_the_instants_that_it_was_in() -> None:
    bucket = Bucket(10)
    bucket.add(ROWS[:10])
    bucket.acknowledge(4)
    bucket.mark_refused(3)
    bucket.acknowledge(3)
    assert not bucket.was_refused(0, 4)
    assert bucket.was_refused(4, 5)
    assert bucket.was_refused(6, 8)
    assert not bucket.was_refused(7, 10)


def test_each_key_has_one_bucket() -> None:
    buckets = [Bucket(10_000) for _ in range(3)]
    Assigner(buckets).assign(ROWS)
    Assigner(buckets).assign(ROWS)
    for each in buckets:
        each.request_flush()
    found = [{row.id for row in each.wait_until_due() or ()} for each in buckets]
    assert sum(map(len, found)) == len(set.union(*found)) == 256
    assert all(found)


@pytest.mark.parametrize(("sizes", "expected"), [((5, 5, 5), [2, 1]), ((50, 5), [1, 1]), ((), [0]), ((10,), [1])])
def test_only_the_last_piece_says_what_comes_next(sizes: tuple[int, ...], expected: list[int]) -> None:
    batch = SourceBatch(taken(*sizes), {WHERE: 7})
    pieces = list(split_batch(batch, 10))
    assert [len(each.records) for each in pieces] == expected
    assert tuple(record for each in pieces for record in each.records) == batch.records
    assert [dict(each.next) for each in pieces] == [{}] * (len(expected) - 1) + [{WHERE: 7}]


def test_of_long_events_fewer_are_polled() -> None:
    portion = PollSize(5_000, 1 << 20)
    portion.update(taken(100, 100))
    assert portion.count == 5_000
    portion.update(taken(1 << 20))
    assert portion.count == 2
    portion.update(taken(8 << 20))
    assert portion.count == 1


@pytest.mark.parametrize(("left_out", "epoch", "again"), [([ROWS[0]], 4, True), ([ROWS[0]], 5, False), ([], 4, False)])
def test_what_was_left_out_by_older_knowledge_is_written_after_all(
    left_out: list[Row], epoch: int, *, again: bool
) -> None:
    instant = OpenInstant(1, epoch=5, begins=[0])
    instant.add(SourceBatch(taken(1)), ReadResult([], [], [], left_out, CopyRows()), [], epoch)
    assert instant.must_rewrite is again


def test_a_partition_that_came_back_takes_no_offset_back() -> None:
    instant = OpenInstant(1, epoch=5, begins=[0])
    for following in (7, 3):
        instant.add(SourceBatch(taken(1), {WHERE: following}), ReadResult([], [], [], [], CopyRows()), [], 5)
    assert [each.next for each in instant.work("g", "log", "t").offsets] == [7]
