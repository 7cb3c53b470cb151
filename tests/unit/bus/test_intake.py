"""What a listener is told of holes in its spool: each once, when it has got past it, from what it dealt with on."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from uuid import UUID

from headwater.events import Gap
from headwater.events.envelope import Family
from headwater.journal import Cursor, Fsync, Journal, JournalOptions, Lost
from headwater.listeners.bus.holes import Hole, Holes
from headwater.listeners.bus.intake import Intake
from headwater.listeners.bus.options import BusOptions

JOB, CATALOG = frozenset({Family.JOB}), Family.CATALOG
PRODUCER = str(UUID(int=7)).encode()


@dataclass
class Bench:
    """A spool of small segments, and what its one reader is told."""

    journal: Journal
    cursor: Cursor
    intake: Intake
    told: list[tuple[Lost, Gap | None]] = field(default_factory=list)

    def append(self, first: int, last: int, family: Family = Family.JOB) -> None:
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

        def on_lost(name: str, holes: Holes, hole: Hole) -> None:
            made.told.append((hole.lost, holes.gap(name, hole)))

        intake = Intake("mine", journal, cursor, JOB, BusOptions(batch_count=10), on_lost=on_lost)
        made = Bench(journal, cursor, intake)
        yield made


def test_a_hole_is_told_once_and_when_it_is_passed(tmp_path: Path) -> None:
    """Of ten that were handed over three are dealt with when all is given up; then most of it is dropped."""
    with bench(tmp_path) as spool:
        spool.append(1, 40)
        assert len(spool.intake.read(0, 0)) > 3
        spool.intake.dealt(3)
        spool.intake.give_up()
        spool.cursor.rewind()
        following = spool.drop_oldest()
        read = spool.intake.read(3, 0)
        assert read[0].offset == following
        spool.intake.dealt(3)
        assert spool.told == [], "it may still grow"
        spool.intake.give_up()
        spool.cursor.rewind()
        spool.append(41, 60)
        following = spool.drop_oldest()
        spool.intake.read(3, 0)
        spool.intake.dealt(following + 1)
        spool.intake.dealt(following + 2)
        ((_, gap),) = spool.told
        assert gap is not None
        assert (gap.first_sequence, gap.last_sequence) == (4, following)


def test_what_was_handed_over_behind_a_hole_is_not_told_as_missing(tmp_path: Path) -> None:
    """It is dropped before the hole is told."""
    with bench(tmp_path) as spool:
        spool.append(1, 40)
        following = spool.drop_oldest()
        read = spool.intake.read(0, 0)
        assert read[0].offset == following
        spool.append(41, 60)
        assert spool.drop_oldest() > read[-1].offset
        spool.intake.dealt(read[-1].offset + 1)
        ((_, gap),) = spool.told
        assert gap is not None
        assert (gap.first_sequence, gap.last_sequence) == (1, following)


def test_a_hole_does_not_reach_beyond_the_next_one(tmp_path: Path) -> None:
    """The first record of a family that is behind both says nothing of what the first one lacks of it."""
    families = frozenset({Family.JOB, Family.CATALOG})
    with bench(tmp_path) as spool:
        spool.append(1, 40)
        following = spool.drop_oldest()
        holes = Holes(spool.journal.directory, families, begins=True)
        read = spool.cursor.read(1)
        spool.append(41, 60)
        spool.append(61, 80, CATALOG)
        spool.drop_oldest()
        (lost,) = read.lost
        hole = holes.met(lost, read.records)
        assert [each.offset for each in hole.after] == [following]


def test_what_is_none_of_its_business_is_known_and_not_kept(tmp_path: Path) -> None:
    with bench(tmp_path) as spool:
        spool.append(1, 1)
        spool.append(2, 200, CATALOG)
        while spool.cursor.position < 200:
            spool.intake.read(0, 0)
        assert len(vars(spool.intake)["_ahead"]) <= 2, "the listener hasn't answered for the first yet"
        spool.append(201, 240)
        following = spool.drop_oldest()
        while spool.cursor.position < 240:
            spool.intake.read(0, 0)
        spool.intake.dealt(240)
        (_, gap) = spool.told[-1]
        assert gap is not None
        assert (gap.first_sequence, gap.last_sequence) == (201, following)
