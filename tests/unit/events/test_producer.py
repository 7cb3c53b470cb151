"""A producer gives each event its place, and a place only to what was appended."""

from __future__ import annotations

import multiprocessing
import multiprocessing.connection
import os
import threading
from uuid import UUID

import pytest

from headwater.events.avro import Codec, EventTooLargeError
from headwater.events.catalog import CatalogContext, DropTag
from headwater.events.clock import ProducerClock, moment_of
from headwater.events.envelope import Event, UnknownEvent
from headwater.events.health import Heartbeat
from headwater.events.jobs import Committed, ErrorDetails, Input, JobLineage, Output, StatementFailed
from headwater.events.names import DatasetId, TableName
from headwater.events.parts import merge_parts
from headwater.events.producer import NotAppendedError, Producer


class Appended:
    """Where events go in these tests."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.data: list[bytes] = []

    def __call__(self, event: Event, data: bytes) -> None:
        self.events.append(event)
        self.data.append(data)


class Failing:
    """Appends so many, then raises."""

    def __init__(self, after: int, error: BaseException, to: Appended | None = None) -> None:
        self._left, self._error, self._to = after, error, to or Appended()

    def __call__(self, event: Event, data: bytes) -> None:
        if not self._left:
            raise self._error
        self._left -= 1
        self._to(event, data)


SMALL = 64 * 1024


def large_commit() -> Committed:
    inputs = tuple(Input(dataset=DatasetId(namespace="s3://b", name=f"path/{n}" * 10)) for n in range(3_000))
    output = Output(dataset=DatasetId(namespace="s3://b", name="o"), made_from=(0, 2_999))
    return Committed(barrier=1, fingerprint=bytes(16), inputs=inputs, outputs=(output,))


def drop_tag() -> DropTag:
    context = CatalogContext(name="lake", class_name="C")
    return DropTag(context=context, identifier=TableName(catalog="lake", database="d", table="t"), tag="v1")


def test_events_are_counted_over_all_and_per_family() -> None:
    appended, producer = Appended(), Producer("app-1")
    for draft in (Heartbeat(), drop_tag(), Heartbeat()):
        producer.emit(draft, appended)
    assert [(e.sequence, e.family_sequence) for e in appended.events] == [(1, 1), (2, 1), (3, 2)]
    assert {(e.producer, e.application) for e in appended.events} == {(producer.id, "app-1")}


def test_what_is_appended_is_what_the_bytes_say() -> None:
    appended = Appended()
    (returned,) = Producer().emit(Heartbeat(), appended)
    assert Codec().decode(appended.data[0]) == appended.events[0] == returned


def test_an_event_that_is_surely_not_in_leaves_no_hole() -> None:
    appended, producer = Appended(), Producer()
    producer.emit(Heartbeat(), appended)
    with pytest.raises(NotAppendedError, match="no room"):
        producer.emit(Heartbeat(), Failing(after=0, error=NotAppendedError("no room")))
    producer.emit(Heartbeat(), appended)
    assert [(e.sequence, e.family_sequence) for e in appended.events] == [(1, 1), (2, 2)]


@pytest.mark.parametrize("error", [OSError("fsync failed"), KeyboardInterrupt()])
def test_the_place_of_an_event_that_may_be_in_is_never_given_again(error: BaseException) -> None:
    appended, producer = Appended(), Producer()
    with pytest.raises(type(error)):
        producer.emit(Heartbeat(), Failing(after=0, error=error))
    producer.emit(Heartbeat(), appended)
    assert [(e.sequence, e.family_sequence) for e in appended.events] == [(2, 2)]


@pytest.mark.slow
@pytest.mark.parametrize("error", [NotAppendedError("no room"), OSError("fsync failed")])
def test_parts_that_could_not_be_appended_are_a_hole(error: Exception) -> None:
    """The parts before are in, so whoever joins them must see that the others are missing."""
    appended, producer = Appended(), Producer(part_bytes=SMALL)
    with pytest.raises(type(error)):
        producer.emit(large_commit(), Failing(after=2, error=error, to=appended))
    parts = [event.part for event in appended.events]
    producer.emit(Heartbeat(), appended)
    assert parts[0] is not None
    assert [part.number for part in parts if part] == [1, 2]
    assert appended.events[-1].sequence == parts[0].of + 1


@pytest.mark.slow
def test_nothing_is_appended_of_an_event_with_an_element_too_large_for_any_part() -> None:
    appended, producer = Appended(), Producer()
    huge = Input(dataset=DatasetId(namespace="s3://b", name="x" * 1_100_000))
    with pytest.raises(EventTooLargeError, match="cut it into parts first"):
        producer.emit(large_commit().model_copy(update={"inputs": (*large_commit().inputs, huge)}), appended)
    assert appended.events == []
    producer.emit(Heartbeat(), appended)
    assert appended.events[0].sequence == 1


def test_the_time_is_the_producers_clock() -> None:
    times = iter([5_000_000, 4_000_000, 6_000_000])
    appended, producer = Appended(), Producer(clock=ProducerClock(lambda: next(times)))
    for _ in range(3):
        producer.emit(Heartbeat(), appended)
    assert [e.time for e in appended.events] == [moment_of(t) for t in (5_000_000, 5_000_000, 6_000_000)]


@pytest.mark.slow
def test_a_large_event_becomes_parts_that_follow_each_other() -> None:
    draft = large_commit()
    appended, producer = Appended(), Producer(part_bytes=SMALL)
    producer.emit(Heartbeat(), appended)
    parts = producer.emit(draft, appended)
    producer.emit(Heartbeat(), appended)
    assert [e.sequence for e in appended.events] == list(range(1, len(parts) + 3))
    assert len(parts) > 1
    assert max(map(len, appended.data)) <= SMALL
    whole = merge_parts(parts)
    assert (whole.inputs, whole.outputs) == (draft.inputs, draft.outputs)


def test_secrets_are_gone_before_an_event_exists() -> None:
    appended = Appended()
    error = ErrorDetails(type="E", message="cannot reach jdbc:postgresql://u:geheim@h/db?password=geheim")
    Producer().emit(StatementFailed(error=error), appended)
    assert b"geheim" not in appended.data[0]


def test_threads_append_in_the_order_of_the_sequences() -> None:
    appended, producer = Appended(), Producer()

    def tell() -> None:
        for _ in range(200):
            producer.emit(Heartbeat(), appended)

    threads = [threading.Thread(target=tell) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [e.sequence for e in appended.events] == list(range(1, 1_601))


def _identity(producer: Producer, pipe: multiprocessing.connection.Connection) -> None:
    (event,) = producer.emit(Heartbeat(), Appended())
    pipe.send((os.getpid(), event.producer.hex, event.sequence))


def _reported_in_child(producer: Producer, pipe: multiprocessing.connection.Connection) -> None:
    producer.emit(Heartbeat(), Appended())
    pipe.send(producer.next_barrier())


def test_a_child_forked_while_the_lock_is_held_can_tell_events() -> None:
    producer, appended = Producer(), Appended()
    mine, theirs = multiprocessing.Pipe()
    child = multiprocessing.get_context("fork").Process(target=_reported_in_child, args=(producer, theirs))

    def append_and_fork(event: Event, data: bytes) -> None:
        child.start()
        appended(event, data)

    producer.emit(Heartbeat(), append_and_fork)
    assert mine.poll(30)
    assert isinstance(mine.recv(), int)
    child.join()
    producer.emit(Heartbeat(), appended)
    assert [event.event_id for event in appended.events] == [(producer.id, 1), (producer.id, 2)]


def test_a_forked_child_is_another_producer() -> None:
    producer = Producer()
    producer.emit(Heartbeat(), Appended())
    mine, theirs = multiprocessing.Pipe()
    child = multiprocessing.get_context("fork").Process(target=_identity, args=(producer, theirs))
    child.start()
    pid, identity, sequence = mine.recv()
    child.join()
    assert pid == child.pid
    assert UUID(hex=identity) != producer.id
    assert sequence == 1


class PausedCodec(Codec):
    """Encodes a JobLineage only when it is let."""

    def __init__(self) -> None:
        super().__init__()
        self.reached, self.gate = threading.Event(), threading.Event()

    def encode(self, event: Event | UnknownEvent) -> bytes:
        if isinstance(event, JobLineage):
            self.reached.set()
            assert self.gate.wait(60)
        return super().encode(event)


def test_nobody_waits_while_a_large_event_is_encoded() -> None:
    """Encoding one of 2,000 sources took 12 seconds under the producer's lock."""
    codec, appended = PausedCodec(), Appended()
    producer = Producer(codec=codec)
    large = threading.Thread(target=producer.emit, args=(JobLineage(fingerprint=bytes(16), outputs=()), appended))
    large.start()
    try:
        assert codec.reached.wait(60)
        producer.emit(Heartbeat(), appended)
    finally:
        codec.gate.set()
        large.join()
    assert [(each.kind, each.sequence) for each in appended.events] == [("Heartbeat", 1), ("JobLineage", 2)]
    assert [Codec().decode(each) for each in appended.data] == appended.events
