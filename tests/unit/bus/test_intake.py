"""What a listener learns of holes in its spool: each once, when it has got past it, from what it dealt with on."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from uuid import UUID

import pytest

from headwater.events import Event, Gap
from headwater.events.envelope import EventFamily
from headwater.events.keys import headers_of
from headwater.events.producer import Producer
from headwater.journal import (
    Cursor,
    Fsync,
    Journal,
    JournalOptions,
    JournalReader,
    JournalRecord,
    MissingReason,
    MissingRecords,
)
from headwater.listeners.bus.gap_tracker import GapTracker, LostRange
from headwater.listeners.bus.options import BusOptions
from headwater.listeners.bus.spool_reader import SpoolReader
from headwater.testing.examples import DRAFTS

JOB, CATALOG = frozenset({EventFamily.JOB}), EventFamily.CATALOG
PRODUCER = str(UUID(int=7)).encode()


@dataclass
class Bench:
    """A spool of small segments, and what its one reader learns."""

    journal: Journal
    cursor: Cursor
    intake: SpoolReader
    reported: list[tuple[MissingRecords, Gap | None]] = field(default_factory=list)

    def append(self, first: int, last: int, family: EventFamily = EventFamily.JOB) -> None:
        for number in range(first, last + 1):
            headers = (("family", family.value.encode()), ("producer", PRODUCER), ("sequence", b"%d" % number))
            self.journal.append(bytes(700), headers=headers)

    def drop_oldest(self) -> int:
        """All but the last segment; what the last one begins with."""
        segments = sorted(self.journal.directory.glob("*.segment"))
        for segment in segments[:-1]:
            segment.unlink()
        return int(segments[-1].stem)


@contextmanager
def bench(directory: Path) -> Generator[Bench]:
    options = JournalOptions(segment_bytes=4096, fsync=Fsync.NONE, reserve_bytes=0)
    with Journal.open(directory, options) as journal, journal.cursor("mine") as cursor:

        def on_lost(name: str, holes: GapTracker, hole: LostRange) -> None:
            made.reported.append((hole.lost, holes.gap(name, hole)))

        intake = SpoolReader("mine", journal, cursor, JOB, BusOptions(batch_count=10), on_lost=on_lost)
        made = Bench(journal, cursor, intake)
        yield made


def test_a_hole_is_reported_once_and_when_it_is_passed(tmp_path: Path) -> None:
    """Of ten that were handed over three are dealt with when all is given up; then most of it is dropped."""
    with bench(tmp_path) as spool:
        spool.append(1, 40)
        assert len(spool.intake.read(0, 0)) > 3
        spool.intake.acknowledge(3)
        spool.intake.rewind()
        spool.cursor.rewind()
        following = spool.drop_oldest()
        read = spool.intake.read(3, 0)
        assert read[0].offset == following
        spool.intake.acknowledge(3)
        assert spool.reported == [], "it may still grow"
        spool.intake.rewind()
        spool.cursor.rewind()
        spool.append(41, 60)
        following = spool.drop_oldest()
        spool.intake.read(3, 0)
        spool.intake.acknowledge(following + 1)
        spool.intake.acknowledge(following + 2)
        ((_, gap),) = spool.reported
        assert gap is not None
        assert (gap.first_sequence, gap.last_sequence) == (4, following)


def test_a_hole_is_not_reported_again_when_what_is_behind_it_is_read_again(tmp_path: Path) -> None:
    """The listener fails behind the hole, before the cursor has got there."""
    with bench(tmp_path) as spool:
        spool.append(1, 40)
        following = spool.drop_oldest()
        spool.intake.read(0, 0)
        spool.intake.acknowledge(following + 1)
        assert len(spool.reported) == 1
        spool.intake.rewind()
        spool.cursor.rewind()
        read = spool.intake.read(following + 1, 0)
        assert read[0].offset == following + 1
        spool.intake.acknowledge(read[-1].offset + 1)
        assert len(spool.reported) == 1


def test_damage_that_held_no_record_is_no_hole(tmp_path: Path) -> None:
    """Only the header of a segment is unreadable; the records behind it are all there."""
    with bench(tmp_path) as spool:
        spool.append(1, 40)
        with sorted(tmp_path.glob("*.segment"))[1].open("r+b") as segment:
            segment.write(b"damaged!")
        damaged = list[MissingRecords]()
        with spool.journal.tail(0) as tail:
            while read := tail.read():
                damaged += read.missing
        assert [each.end_offset - each.first for each in damaged] == [0]
        while spool.cursor.position < 40:
            spool.intake.read(0, 0)
        spool.intake.acknowledge(40)
        assert spool.reported == []


def test_what_was_handed_over_behind_a_hole_is_not_reported_as_missing(tmp_path: Path) -> None:
    """It is dropped before the hole is reported."""
    with bench(tmp_path) as spool:
        spool.append(1, 40)
        following = spool.drop_oldest()
        read = spool.intake.read(0, 0)
        assert read[0].offset == following
        spool.append(41, 60)
        assert spool.drop_oldest() > read[-1].offset
        spool.intake.acknowledge(read[-1].offset + 1)
        ((_, gap),) = spool.reported
        assert gap is not None
        assert (gap.first_sequence, gap.last_sequence) == (1, following)


def test_a_hole_does_not_reach_beyond_the_next_one(tmp_path: Path) -> None:
    """The first record of a family that is behind both says nothing of what the first one lacks of it."""
    families = frozenset({EventFamily.JOB, EventFamily.CATALOG})
    with bench(tmp_path) as spool:
        spool.append(1, 40)
        following = spool.drop_oldest()
        holes = GapTracker(spool.journal, families, begins=True)
        read = spool.cursor.read(1)
        spool.append(41, 60)
        spool.append(61, 80, CATALOG)
        spool.drop_oldest()
        (lost,) = read.missing
        hole = holes.find_range(lost, read.records)
        assert [each.offset for each in hole.next_records] == [following]


def test_what_is_none_of_its_business_is_known_and_not_kept(tmp_path: Path) -> None:
    with bench(tmp_path) as spool:
        spool.append(1, 1)
        spool.append(2, 200, CATALOG)
        while spool.cursor.position < 200:
            spool.intake.read(0, 0)
        assert len(vars(spool.intake)["_unacknowledged"]) <= 2, "the listener hasn't answered for the first yet"
        spool.append(201, 240)
        following = spool.drop_oldest()
        while spool.cursor.position < 240:
            spool.intake.read(0, 0)
        spool.intake.acknowledge(240)
        (_, gap) = spool.reported[-1]
        assert gap is not None
        assert (gap.first_sequence, gap.last_sequence) == (201, following)


@pytest.mark.parametrize("is_seen_between", [True, False], ids=["looked ahead", "never seen"])
def test_what_one_hole_lacks_is_not_counted_with_the_next_one(tmp_path: Path, is_seen_between: bool) -> None:
    """Between the holes come events of one family only. The first of the other family is seen by looking ahead, and is
    lost with the second hole; or it comes only behind that."""
    events: list[tuple[Event, bytes]] = []
    producer = Producer("application_1")

    def emit(drafts: Sequence[Event]) -> None:
        for draft in drafts:
            producer.emit(draft, lambda event, data: events.append((event, data)))

    jobs = [each for each in DRAFTS if each.family is EventFamily.JOB][:1]
    catalogs = [each for each in DRAFTS if each.family is CATALOG][:1]
    emit([*jobs * 20, *catalogs * 20])  # lost
    emit(catalogs * 3)  # dealt with
    emit([*jobs * (5 if is_seen_between else 0), *catalogs * 7])  # lost
    emit([*jobs, *catalogs])
    second, end = 43, len(events) - 2
    records = [
        JournalRecord(number, 0, None, headers_of(event, b""), data) for number, (event, data) in enumerate(events)
    ]
    families = frozenset({EventFamily.JOB, CATALOG})
    gaps = GapTracker(JournalReader.open(tmp_path), families, begins=True)
    ahead = (records[second],) if is_seen_between else ()
    one = gaps.gap("mine", LostRange(MissingRecords(0, 40, MissingReason.DROPPED), (records[40], *ahead)))
    gaps.note(records[40:second])
    other = gaps.gap("mine", LostRange(MissingRecords(second, end, MissingReason.DROPPED), tuple(records[end:])))
    assert one is not None
    assert other is not None
    assert (one.missed, other.missed) == (40, end - second)
