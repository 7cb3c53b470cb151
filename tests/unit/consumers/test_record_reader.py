"""Events that can't become rows harm no others: whatever the law makes of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from uuid import UUID

import pytest

from headwater.consumers.sources import BusRecord
from headwater.consumers.writer import record_reader
from headwater.consumers.writer.record_reader import MappingFailedError, RecordReader
from headwater.errors import TransientError
from headwater.events import Committed, DatasetId, Event, Input, JobName, Output
from headwater.events.avro import Codec
from headwater.lineage.bulk import BusPartition, DeadLetterReason
from headwater.lineage.mapping import BatchMapper, map_event
from headwater.lineage.mapping import events as mapping
from headwater.lineage.mapping.events import add_rows
from headwater.lineage.mapping.row_builder import RowBuilder
from headwater.lineage.rows import Row, RowSet
from headwater.testing.examples import EXAMPLES

WHERE = BusPartition("cluster", "topic", 0)
BAD = 3


def commit(number: int) -> Event:
    source = Input(dataset=DatasetId(namespace="s3://lake", name="raw"), snapshot=number)
    output = Output(dataset=DatasetId(namespace="s3://lake", name="daily"), snapshot=number)
    return Committed(
        producer=UUID(int=7),
        sequence=number,
        family_sequence=number,
        job=JobName(name="etl"),
        barrier=number,
        inputs=(source,),
        outputs=(output,),
    )


def taken(events: list[Event]) -> list[BusRecord]:
    return [BusRecord(Codec().encode(event), WHERE, number, 7) for number, event in enumerate(events)]


def digest(rows: Iterable[Row]) -> str:
    state = RowSet()
    state.merge(rows)
    return state.digest()


def by_law(events: list[Event]) -> str:
    return digest([row for event in events for row in map_event(event, 7)])


@pytest.fixture
def no_law(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the commit of number BAD nobody can make rows: it fails in the midst of them."""

    def broken(event: Event, appended: int | None = None) -> Iterator[Row]:
        for number, row in enumerate(map_event(event, appended)):
            if event.sequence == BAD and number == 2:
                raise OverflowError("int too big to convert")
            yield row

    def breaking(event: Event, appended: int | None, build: RowBuilder) -> None:
        add_rows(event, appended, build)
        if event.sequence == BAD:
            raise OverflowError("int too big to convert")

    monkeypatch.setattr(record_reader, "map_event", broken)
    monkeypatch.setattr(mapping, "add_rows", breaking)


@pytest.mark.usefixtures("no_law")
def test_one_whose_rows_cannot_be_made_is_a_letter_and_leaves_nothing_behind() -> None:
    events = [commit(number) for number in range(1, 7)]
    reader = RecordReader("log", "events")
    rows, (letter,), *_ = reader.read(taken(events))
    good = [event for event in events if event.sequence != BAD]
    assert digest(rows) == by_law(good)
    assert (letter.reason, letter.position, letter.kind) == (DeadLetterReason.INVALID, BAD - 1, "Committed")
    assert letter.event == events[BAD - 1].event_id
    assert "OverflowError: int too big to convert (test_record_reader.py:" in letter.error
    rows, letters, *_ = reader.read(taken([commit(number) for number in (11, 12)]))
    assert (digest(rows), letters) == (by_law([commit(11), commit(12)]), [])


@pytest.mark.usefixtures("no_law")
def test_one_that_comes_alone_is_a_letter_too() -> None:
    rows, (letter,), *_ = RecordReader("log", "events").read(taken([commit(BAD)]))
    assert (rows, letter.reason) == ([], DeadLetterReason.INVALID)


@pytest.mark.usefixtures("no_law")
def test_event_by_event_it_is_passed_over() -> None:
    mapped = list(RecordReader("log", "events").event_rows(taken([commit(number) for number in range(1, 7)])))
    assert len(mapped) == 5


def test_where_nothing_at_all_becomes_rows_it_is_not_the_events_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> Iterator[Row]:
        raise AttributeError("no such thing")

    monkeypatch.setattr(record_reader, "map_event", broken)
    monkeypatch.setattr(mapping, "add_rows", broken)
    reader = RecordReader("log", "events", most_invalid=5)
    assert len(reader.read(taken([commit(1), commit(2)])).dead_letters) == 2
    undecodable = BusRecord(b"no event", WHERE, 3, 7)
    assert len(reader.read([undecodable] * 9).dead_letters) == 9, "what never was an event says nothing of the program"
    assert len(reader.read(taken([commit(4), commit(5)])).dead_letters) == 2
    with pytest.raises(
        MappingFailedError, match=r"5 events in a row .* AttributeError: no such thing .*--most-invalid 0"
    ):
        reader.read(taken([commit(6)]))
    assert len(RecordReader("log", "events", most_invalid=0).read(taken([commit(1)] * 200)).dead_letters) == 200


@pytest.mark.usefixtures("no_law")
def test_a_good_one_between_them_says_that_the_program_is_well() -> None:
    reader = RecordReader("log", "events", most_invalid=2)
    for _ in range(3):
        assert len(reader.read(taken([commit(BAD), commit(1)])).dead_letters) == 1


@pytest.mark.parametrize("error", [MemoryError, KeyboardInterrupt, TransientError])
def test_what_is_no_fault_of_an_event_is_raised(monkeypatch: pytest.MonkeyPatch, error: type[BaseException]) -> None:
    def broken(*_: object) -> Iterator[Row]:
        raise error

    monkeypatch.setattr(record_reader, "map_event", broken)
    monkeypatch.setattr(mapping, "add_rows", broken)
    with pytest.raises(error):
        RecordReader("log", "events").read(taken([commit(1)]))


def test_both_ways_end_in_the_same_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    records = taken([*EXAMPLES, *[commit(number) for number in range(1, 7)]])
    quick_way = RecordReader("log", "events").read(records)

    def stumbles(*_: object) -> None:
        raise RuntimeError

    monkeypatch.setattr(BatchMapper, "add", stumbles)
    slow_way = RecordReader("log", "events").read(records)
    assert digest(quick_way.rows) == digest(slow_way.rows)
    assert quick_way.dead_letters == slow_way.dead_letters == []
