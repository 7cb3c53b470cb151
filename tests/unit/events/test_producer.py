"""A producer gives each event its place, and a place only to what was appended."""

from __future__ import annotations

import multiprocessing
import multiprocessing.connection
import os
import threading
from uuid import UUID

import pytest

from headwater.events.avro import Codec
from headwater.events.catalog import CatalogContext, DropTag
from headwater.events.clock import ProducerClock, moment_of
from headwater.events.envelope import Event
from headwater.events.health import Heartbeat
from headwater.events.jobs import Committed, ErrorDetails, Input, Output, StatementFailed
from headwater.events.names import DatasetId, TableName
from headwater.events.parts import join
from headwater.events.producer import Producer


class Appended:
    """Where events go in these tests."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.data: list[bytes] = []

    def __call__(self, event: Event, data: bytes) -> None:
        self.events.append(event)
        self.data.append(data)


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


def test_an_event_that_could_not_be_appended_leaves_no_hole() -> None:
    appended, producer = Appended(), Producer()

    def full(event: Event, data: bytes) -> None:
        raise OSError("no space left on device")

    producer.emit(Heartbeat(), appended)
    with pytest.raises(OSError, match="no space"):
        producer.emit(Heartbeat(), full)
    producer.emit(Heartbeat(), appended)
    assert [e.sequence for e in appended.events] == [1, 2]


def test_the_time_is_the_producers_clock() -> None:
    times = iter([5_000_000, 4_000_000, 6_000_000])
    appended, producer = Appended(), Producer(clock=ProducerClock(lambda: next(times)))
    for _ in range(3):
        producer.emit(Heartbeat(), appended)
    assert [e.time for e in appended.events] == [moment_of(t) for t in (5_000_000, 5_000_000, 6_000_000)]


def test_a_large_event_becomes_parts_that_follow_each_other() -> None:
    inputs = tuple(Input(dataset=DatasetId(namespace="s3://b", name=f"path/{n}" * 10)) for n in range(20_000))
    draft = Committed(
        barrier=1,
        fingerprint=bytes(16),
        inputs=inputs,
        outputs=(Output(dataset=DatasetId(namespace="s3://b", name="o"), made_from=(0, 19_999)),),
    )
    appended, producer = Appended(), Producer()
    producer.emit(Heartbeat(), appended)
    parts = producer.emit(draft, appended)
    producer.emit(Heartbeat(), appended)
    assert [e.sequence for e in appended.events] == list(range(1, len(parts) + 3))
    assert max(map(len, appended.data)) <= 256 * 1024
    whole = join(parts)
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
