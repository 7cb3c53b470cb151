"""Which portions of a source Spark's tasks are given, without Spark."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import date
from typing import Any, cast

import pytest

from headwater.cli import main
from headwater.consumers.archive.table import ArchiveFile
from headwater.consumers.replay.filling import read_with_progress
from headwater.consumers.replay.ranges import BusRange, RangeSource
from headwater.consumers.spark.pipeline.batch_writer import BatchSettings, PipelineFigures, SparkBatch
from headwater.consumers.spark.pipeline.frames import frame_of, has_records_in
from headwater.consumers.spark.pipeline.polled_batches import SparkRangeReader
from headwater.consumers.spark.pipeline.reading_tasks import BusReading
from headwater.errors import ConfigurationError
from headwater.lineage.bulk import BusPartition

ONE, TWO, OLDER = BusPartition("c", "id", 0), BusPartition("c", "id", 1), BusPartition("c", "older id", 0)


class Source:
    """A source with so many offsets of each partition."""

    kind, topic, address = "kafka", "events", "kafka://x"

    def __init__(self, ranges: Mapping[BusPartition, tuple[int, int]]) -> None:
        self._ranges = {where: BusRange(*each) for where, each in ranges.items()}

    def ranges(self) -> Mapping[BusPartition, BusRange]:
        return self._ranges

    def lag(self) -> int:
        return 9


class Meta:
    def __init__(self, stored: dict[BusPartition, int]) -> None:
        self.stored = stored

    def offsets(self, _: str) -> dict[BusPartition, int]:
        return self.stored


class Writer:
    """Says what it was given, and moves the offsets."""

    def __init__(self, meta: Meta, figures: PipelineFigures) -> None:
        self._meta = meta
        self._figures = figures
        self.topics: list[str] = []
        self.written: list[dict[BusPartition, tuple[int, int]]] = []

    def begin(self, _: object) -> None: ...

    def stored_offsets(self) -> dict[BusPartition, int]:
        return self._meta.stored

    def record_gaps(self, gaps: object) -> None:
        assert not gaps

    def write(self, batch: SparkBatch) -> bool:
        self.written.append({where: (each.first, each.end) for where, each in batch.ranges.items()})
        self._meta.stored |= {where: each.end for where, each in batch.ranges.items()}
        self._figures.events += sum(each.size for each in batch.ranges.values())
        return True


class Reading:
    def __init__(self, stored: dict[BusPartition, int], most: int) -> None:
        self.meta, self.writers = Meta(stored), list[Writer]()
        self._settings = BatchSettings("g", 2, most)

    def _make(self, bus: BusReading, _: BatchSettings, figures: PipelineFigures) -> Any:
        writer = Writer(self.meta, figures)
        writer.topics.append(bus.topic)
        self.writers.append(writer)
        return writer

    def reader(self) -> SparkRangeReader:
        nothing: Any = None
        return SparkRangeReader(
            nothing, cast("Any", self.meta), self._make, self._settings, kafka=lambda _: {}, most_invalid=1
        )

    def read(
        self, source: Source, end: Mapping[BusPartition, int], report: Callable[[int], None] = lambda _: None
    ) -> int:
        return self.reader().read(cast("RangeSource", source), end, report)


def test_portions_begin_at_the_store_and_end_where_they_are_told() -> None:
    reading, seen = Reading({ONE: 2}, most=6), list[int]()
    source = Source({ONE: (0, 20), TWO: (1, 9)})
    assert reading.read(source, {ONE: 10, TWO: 5, OLDER: 7}, seen.append) == 12
    (writer,) = reading.writers
    assert writer.written == [{ONE: (2, 5), TWO: (1, 4)}, {ONE: (5, 8), TWO: (4, 5)}, {ONE: (8, 10)}]
    assert seen == [6, 10, 12]
    assert reading.read(source, {ONE: 10, TWO: 5}) == 0, "another run finds it all there"


def test_each_topic_of_an_archive_has_a_writer() -> None:
    reading = Reading({}, most=100)
    assert reading.read(Source({ONE: (0, 3), OLDER: (0, 4)}), {ONE: 3, OLDER: 4}) == 7
    assert [each.topics for each in reading.writers] == [["id"], ["older id"]]


def test_progress_ends_with_the_number_of_events() -> None:
    reading = Reading({}, most=2)
    source = cast("RangeSource", Source({ONE: (0, 5)}))
    assert read_with_progress(reading.reader(), source, {ONE: 5}, "reading", lambda _: None) == 5


def test_files_of_an_archive_that_concern_a_range() -> None:
    ranges = {ONE: BusRange(10, 20)}

    def file(first: int, last: int, where: BusPartition = ONE) -> ArchiveFile:
        return ArchiveFile("p", date(2026, 3, 1), where, "t", first, last + 1, 1, 0, 1)

    found = [
        has_records_in(each, ranges)
        for each in (file(0, 9), file(0, 10), file(19, 30), file(20, 30), file(10, 19, TWO))
    ]
    assert found == [False, True, True, False, False]


def test_what_spark_cannot_read_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="leave out --by spark"):
        frame_of(cast("Any", None), cast("RangeSource", Source({ONE: (0, 5)})), {})


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--by", "spark", "--processes", "2", "--store", "s.db"], "leave them out with --by spark"),
        (["--no-switch", "--store", "iceberg:lake.lineage"], "name another namespace"),
    ],
)
def test_what_does_not_go_together(flags: list[str], words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replay", "--from", "log:nowhere", *flags]) != 0
    assert words in " ".join(capsys.readouterr().err.split())
