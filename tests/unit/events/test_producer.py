"""A producer gives each event its place, and a place only to what was appended."""

from __future__ import annotations

import multiprocessing
import multiprocessing.connection
import os
import threading
from uuid import UUID

import pytest

from headwater.events.avro import MAX_EVENT_BYTES, Codec, EventTooLargeError
from headwater.events.catalog import CatalogContext, DropTag
from headwater.events.clock import ProducerClock, moment_of, uuid7
from headwater.events.column_lineage import MAX_EDGE_TEXT, MAX_EDGES, ColumnLineage, Derivation
from headwater.events.envelope import Event, UnknownEvent
from headwater.events.health import Gap, GapReason, Heartbeat
from headwater.events.jobs import (
    Committed,
    ErrorDetails,
    Input,
    JobLineage,
    JobStatus,
    Output,
    SinkSchema,
    SourceSchema,
    StatementFailed,
)
from headwater.events.names import DatasetId, JobName, TableName
from headwater.events.producer import EVENT_BYTES, NotAppendedError, Producer, ProducerTail, inferred_ends
from headwater.events.tables import Column


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


SMALL = 4_500


def large_commit() -> Committed:
    inputs = tuple(Input(dataset=DatasetId(namespace="s3://b", name=f"path/{n}" * 10)) for n in range(300))
    output = Output(dataset=DatasetId(namespace="s3://b", name="o"), made_from=(0, 299))
    return Committed(barrier=1, fingerprint=bytes(16), inputs=inputs, outputs=(output,))


def edge_of(number: int) -> ColumnLineage:
    path = (f"column_{number % 400:03}",)
    return ColumnLineage(output=0, input=0, source=path, target=path, derivation=Derivation.IDENTITY)


def wide_lineage(columns: int, edges: int, tables: int = 1) -> JobLineage:
    fields = tuple(Column(name=f"column_{n:03}", type='"string"') for n in range(columns))
    inputs = (DatasetId(namespace="s3://b", name=f"t{n}") for n in range(tables))
    output = SinkSchema(dataset=DatasetId(namespace="s3://b", name="o"), columns=fields)
    return JobLineage(
        job=JobName(name="etl"),
        run=UUID(int=1),
        statement=7,
        fingerprint=bytes(16),
        inputs=tuple(SourceSchema(dataset=each, columns=fields) for each in inputs),
        outputs=(output,),
        columns=tuple(map(edge_of, range(edges))),
    )


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


@pytest.mark.parametrize(("error", "place"), [(NotAppendedError("no room"), 2), (OSError("fsync failed"), 3)])
def test_an_event_that_fails_behind_its_gap_is_as_any_other(error: Exception, place: int) -> None:
    appended, producer = Appended(), Producer(event_bytes=SMALL)
    with pytest.raises(type(error)):
        producer.emit(wide_lineage(columns=4, edges=2_000), Failing(after=1, error=error, to=appended))
    producer.emit(Heartbeat(), appended)
    assert [(each.kind, each.sequence) for each in appended.events] == [("Gap", 1), ("Heartbeat", place)]


def test_nothing_is_appended_of_an_event_that_is_too_large_with_its_tables_alone() -> None:
    appended, producer = Appended(), Producer(event_bytes=SMALL)
    with pytest.raises(EventTooLargeError, match="this Committed takes more than the 4500 bytes that are allowed"):
        producer.emit(large_commit(), appended)
    assert appended.events == []
    producer.emit(Heartbeat(), appended)
    assert appended.events[0].sequence == 1


def test_the_time_is_the_producers_clock() -> None:
    times = iter([5_000_000, 4_000_000, 6_000_000])
    appended, producer = Appended(), Producer(clock=ProducerClock(lambda: next(times)))
    for _ in range(3):
        producer.emit(Heartbeat(), appended)
    assert [e.time for e in appended.events] == [moment_of(t) for t in (5_000_000, 5_000_000, 6_000_000)]


def test_column_lineage_that_is_too_large_is_left_out_and_a_gap_says_so() -> None:
    draft = wide_lineage(columns=4, edges=2_000)
    appended, producer = Appended(), Producer(event_bytes=SMALL)
    gap, lineage = producer.emit(draft, appended)
    assert isinstance(gap, Gap)
    assert isinstance(lineage, JobLineage)
    words = "a JobLineage has no column lineage: with that it takes more than 4500 bytes"
    assert (gap.detail, gap.job, gap.run, gap.statement) == (words, draft.job, draft.run, 7)
    assert (lineage.inputs, lineage.outputs, lineage.fingerprint) == (draft.inputs, draft.outputs, draft.fingerprint)
    assert (lineage.columns, lineage.columns_omitted) == ((), True)
    assert [each.sequence for each in appended.events] == [1, 2]
    assert [Codec().decode(each) for each in appended.data] == appended.events


def test_tables_stay_where_not_even_their_schemas_fit() -> None:
    """2,000 wide sources made 9 MB."""
    draft = wide_lineage(columns=20, edges=1, tables=30)
    gap, lineage = Producer(event_bytes=SMALL).emit(draft, Appended())
    assert isinstance(gap, Gap)
    assert isinstance(lineage, JobLineage)
    assert gap.detail.startswith("a JobLineage has no column lineage, no columns and options of its tables: with")
    assert [each.dataset for each in lineage.inputs] == [each.dataset for each in draft.inputs]
    assert {each.columns for each in lineage.inputs} == {each.columns for each in lineage.outputs} == {()}


@pytest.mark.slow
@pytest.mark.parametrize(
    "edges",
    [
        [edge_of(n) for n in range(MAX_EDGES + 1)],
        [edge_of(n).model_copy(update={"source": ("x" * (MAX_EDGE_TEXT // 2_000),)}) for n in range(1_001)],
    ],
    ids=["edges", "text"],
)
def test_what_readers_refuse_is_not_written(edges: list[ColumnLineage]) -> None:
    draft = wide_lineage(columns=1, edges=0).model_copy(update={"columns": tuple(edges)})
    _, lineage = Producer().emit(draft, Appended())
    assert isinstance(lineage, JobLineage)
    assert lineage.columns_omitted


def test_texts_for_people_lose_their_end() -> None:
    """That a text is shorter says so itself."""
    (event,) = Producer(event_bytes=SMALL).emit(Gap(reason=GapReason.OTHER, detail="m" * 5_096), Appended())
    assert isinstance(event, Gap)
    assert event.detail == f"{'m' * 4_096}… [1000 more characters]"


def test_the_largest_event_that_is_made_is_one_that_is_read() -> None:
    """Its place in the order comes last, and takes bytes too."""
    appended, name = Appended(), "x" * (EVENT_BYTES - 200)
    draft = Committed(barrier=1, outputs=(Output(dataset=DatasetId(namespace="file", name=name)),))
    Producer("application_1").emit(draft, appended)
    assert Codec().decode(appended.data[0]) == appended.events[0]
    assert EVENT_BYTES - 200 < len(appended.data[0]) < MAX_EVENT_BYTES


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
    assert mine.poll(60)
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


# Whoever finds a dead driver's spool tells the same end of its runs.


LAST = ProducerTail(Heartbeat(producer=uuid7(), sequence=41, family_sequence=30, application="app"), job_sequence=30)
RUNS: dict[UUID, JobName | None] = {uuid7(): JobName(name="etl"), uuid7(): None, uuid7(): JobName(name="clicks")}


def test_each_run_is_killed_after_the_last_event_of_its_producer() -> None:
    ends = inferred_ends(LAST, RUNS)
    assert [(e.sequence, e.family_sequence) for e in ends] == [(42, 31), (43, 32), (44, 33)]
    assert {(e.producer, e.time, e.application) for e in ends} == {(LAST.event.producer, LAST.event.time, "app")}
    assert {(e.status, e.inferred) for e in ends} == {(JobStatus.KILLED, True)}
    assert {e.run: e.job for e in ends} == RUNS


def test_every_shipper_makes_the_same_bytes() -> None:
    encode = Codec().encode
    again = inferred_ends(LAST, dict(reversed(RUNS.items())))
    assert [encode(e) for e in again] == [encode(e) for e in inferred_ends(LAST, RUNS)]
