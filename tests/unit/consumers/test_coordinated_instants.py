"""What belongs to an instant, and what goes between the processes of a writer."""

from __future__ import annotations

import pickle
from collections import defaultdict

import pytest

from headwater.consumers.sources import BusRecord, SourceBatch
from headwater.consumers.writer.processes.instants import Instant, Splitter
from headwater.consumers.writer.processes.slice_reader import ReadReply, ReadRequest, SliceReaderRole
from headwater.consumers.writer.runner import join
from headwater.events import Committed
from headwater.events.avro import Codec
from headwater.lineage.bulk import BusPartition, PackedRows, StoreSetBack
from headwater.testing.examples import EXAMPLES

WHERE = BusPartition("cluster", "topic")
ROLE = SliceReaderRole("kafka", "topic", 100, 3)


def records(keys: list[bytes | None]) -> list[BusRecord]:
    return [BusRecord(b"", WHERE, number, None, key) for number, key in enumerate(keys)]


def test_events_of_one_key_are_for_one_process() -> None:
    given = records([b"job-%d" % (number % 50) for number in range(1_000)])
    parts = Splitter(3).split(given)
    assert sorted(record.offset for part in parts for record in part) == list(range(1_000))
    of_keys = defaultdict(set)
    for number, part in enumerate(parts):
        for record in part:
            of_keys[record.key].add(number)
    assert sum(len(each) == 1 for each in of_keys.values()) > 40
    assert max(map(len, parts)) <= 1.1 * 1_000 / 3 + 1


@pytest.mark.parametrize("key", [None, b"the only job"])
def test_one_key_of_all_events_doesnt_leave_processes_idle(key: bytes | None) -> None:
    assert min(map(len, Splitter(3).split(records([key] * 90)))) >= 20


@pytest.mark.parametrize(("left_out", "epoch", "again"), [(1, 4, True), (1, 5, False), (0, 4, False)])
def test_what_was_left_out_by_older_knowledge_is_written_after_all(left_out: int, epoch: int, *, again: bool) -> None:
    read = [ReadReply({0: b"rows"}, (), (), 0, 5), ReadReply({0: b"more"}, (), (), left_out, epoch)]
    instant = Instant(1, SourceBatch(), epoch=5, parts=read)
    assert instant.shares() == ([] if again else [(0, b"rows"), (0, b"more")])
    assert instant.must_rewrite is again


def test_a_partition_that_came_back_takes_no_offset_back() -> None:
    one, other = (SourceBatch(tuple(records([None])), {WHERE: at}, ends={WHERE: at}) for at in (7, 3))
    joined = join(one, other)
    assert (len(joined.records), joined.next, joined.ends) == (2, {WHERE: 7}, {WHERE: 7})


def test_each_key_has_one_bucket_and_rows_go_in_the_order_of_ids() -> None:
    commit = next(each for each in EXAMPLES if isinstance(each, Committed))
    data = [
        Codec().encode(commit.model_copy(update={"sequence": number, "family_sequence": number, "barrier": number}))
        for number in range(1, 301)
    ]
    given = [BusRecord(each, WHERE, number, None) for number, each in enumerate(data)]
    reply = pickle.loads(pickle.dumps(ROLE)).start()(ReadRequest(given, None, ()))  # noqa: S301 - our own
    packed: dict[int, list[PackedRows]] = {number: pickle.loads(share) for number, share in reply.shares.items()}  # noqa: S301
    assert sorted(packed) == [0, 1, 2]
    commits = [each for some in packed.values() for each in some if each.name == "commits"]
    assert sum(len(each.rows) for each in commits) == 300
    assert all(each.rows == sorted(each.rows, key=lambda row: (row[1], row[0])) for each in commits)


def test_what_cant_be_sent_is_found_by_the_coordinator(monkeypatch: pytest.MonkeyPatch) -> None:
    """A number that is too large for its column, say, which only packing notices."""

    def overflow(*_: object, **__: object) -> None:
        raise OverflowError

    monkeypatch.setattr("headwater.consumers.writer.processes.slice_reader.pack_rows", overflow)
    given = [BusRecord(Codec().encode(EXAMPLES[0]), WHERE, 0, None)]
    reply = ROLE.start()(ReadRequest(given, None, ()))
    assert reply.is_refused
    instant = Instant(1, SourceBatch(tuple(given)), parts=[reply])
    assert instant.shares() == []
    assert instant.must_rewrite


def test_errors_of_another_process_can_be_raised_here() -> None:
    error = pickle.loads(pickle.dumps(StoreSetBack()))  # noqa: S301 - our own
    assert isinstance(error, StoreSetBack)
    assert "failover" in str(error)
