"""What a replay decides without a server: holes in its sources, ranges, and progress."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from headwater.consumers.replay.filling import PhaseProgress
from headwater.consumers.replay.preparation import MissingOffsets, describe_missing_offsets, find_missing_offsets
from headwater.consumers.replay.ranges import BusRange, LogRange, Positions, RangePositions
from headwater.journal import LocalLog
from headwater.lineage.bulk import BusPartition

ONE, TWO = BusPartition("cluster", "id", 0), BusPartition("cluster", "id", 1)
OTHER = BusPartition("cluster", "older id", 0)


class TestHoles:
    @pytest.mark.parametrize(
        ("ranges", "start", "live", "holes"),
        [
            pytest.param([{ONE: (0, 9)}], {}, {ONE: 9}, [], id="all is there"),
            pytest.param([{ONE: (4, 9)}], {}, {ONE: 9}, [(ONE, 0, 4)], id="the beginning is gone"),
            pytest.param([{ONE: (4, 9)}], {ONE: 4}, {ONE: 9}, [], id="a copied store has it"),
            pytest.param([{ONE: (0, 6)}, {ONE: (5, 9)}], {}, {ONE: 9}, [], id="archive and topic overlap"),
            pytest.param([{ONE: (0, 5)}, {ONE: (5, 9)}], {}, {ONE: 9}, [], id="archive and topic meet"),
            pytest.param([{ONE: (0, 5)}, {ONE: (6, 9)}], {}, {ONE: 9}, [(ONE, 5, 6)], id="a hole between them"),
            pytest.param([{ONE: (0, 9)}], {}, {ONE: 9, OTHER: 3}, [(OTHER, 0, 3)], id="another topic was read too"),
            pytest.param([{ONE: (0, 5)}], {}, {ONE: 9}, [(ONE, 5, 9)], id="the topic ends before the live store"),
            pytest.param([{ONE: (0, 9), TWO: (2, 2)}], {}, {}, [(TWO, 0, 2)], id="an empty partition had events"),
        ],
    )
    def test_between_and_before_sources(
        self,
        ranges: list[dict[BusPartition, tuple[int, int]]],
        start: Positions,
        live: Positions,
        holes: list[tuple[BusPartition, int, int]],
    ) -> None:
        given = [{where: BusRange(*each) for where, each in source.items()} for source in ranges]
        assert find_missing_offsets(given, start, live) == [MissingOffsets(*each) for each in holes]

    def test_the_words_name_offsets_and_topics(self) -> None:
        words = describe_missing_offsets([MissingOffsets(ONE, 0, 42), MissingOffsets(OTHER, 0, 1)], {"id": "events"})
        assert "offsets 0 to 41 of partition 0 of events" in words
        assert "older id of cluster cluster, which no source is" in words
        assert describe_missing_offsets([MissingOffsets(ONE, 0, 1)] * 10, {}).endswith("and 2 more")


class TestPositions:
    def test_a_range_is_left_over_until_it_was_read(self) -> None:
        at = RangePositions()
        at.begin({ONE: 2}, {ONE: 5, TWO: 3}, 77)
        assert at.lag() == 6
        at.advance(ONE, 9)
        assert at.next[ONE] == 5
        assert at.open_partitions() == [TWO]
        assert at.finished() == {ONE: 77}
        assert at.finished() == {}, "it is said once"
        at.advance(TWO, 3)
        assert at.finished() == {TWO: 77}

    def test_a_start_behind_the_end_is_the_end(self) -> None:
        at = RangePositions()
        at.begin({ONE: 9}, {ONE: 5}, 0)
        assert at.lag() == 0
        assert at.finished() == {}


class TestLogRange:
    @pytest.fixture
    def source(self, tmp_path: Path) -> Iterator[LogRange]:
        with LocalLog.open(tmp_path / "log").writer() as writer:
            for number in range(10):
                writer.append(b"%d" % number)
        source = LogRange("log:x", tmp_path / "log", dict)
        yield source
        source.close()

    def test_it_reads_from_an_offset_to_an_offset(self, source: LogRange) -> None:
        (where, found), *_ = source.ranges().items()
        assert found == BusRange(0, 10)
        source.read({where: 2}, {where: 7}, 99)
        first = source.poll(3, 0)
        assert [each.offset for each in first.records] == [2, 3, 4][: len(first.records)]
        rest = list(first.records)
        while source.lag():
            rest += source.poll(3, 0).records
        assert [each.data for each in rest] == [b"2", b"3", b"4", b"5", b"6"]
        assert source.poll(3, 0).next == {}
        source.read({where: 7}, {where: 10})
        assert [each.offset for each in source.poll(10, 0).records] == [7, 8, 9]

    def test_rewinding_goes_to_the_offsets_of_the_store(self, source: LogRange) -> None:
        (where, _), *_ = source.ranges().items()
        source.read({where: 5}, {where: 10})
        source.poll(10, 0)
        source.rewind()
        assert source.lag() == 10


def test_progress_has_a_rate_and_the_time_that_is_left() -> None:
    progress = PhaseProgress("reading", "events", 100, 25)
    progress.began -= 5
    assert progress.rate == pytest.approx(5, rel=0.2)
    assert progress.seconds_left == pytest.approx(15, rel=0.2)
    assert PhaseProgress("reading", "events", 100).seconds_left is None
