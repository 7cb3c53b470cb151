"""The archiver: each record is archived once, whatever the bus gives twice and whoever else archives."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import pytest

from headwater.consumers.archive.archiver import Archiver, FlushSettings
from headwater.consumers.archive.arrow import ArrowTable
from headwater.consumers.archive.ordered_rows import missing_offsets
from headwater.consumers.archive.table import ArchivedRange, EventArchive, OffsetsTakenError
from headwater.consumers.sources import BusRecord, OffsetGap, SourceBatch
from headwater.errors import TransientError
from headwater.events.health import GapReason
from headwater.lineage.bulk import BusPartition
from tests.kit.archive.records import FIRST, SECOND, ScriptedSource, append, in_order, read_all, records

pytestmark = pytest.mark.slow
FOUND = [each for pair in zip(records(FIRST, 0, 200), records(SECOND, 0, 200), strict=True) for each in pair]
SMALL = FlushSettings(size=20_000, batch=30, idle=0)


@pytest.fixture
def archive(tmp_path: Path) -> EventArchive:
    return EventArchive.create(tmp_path / "archive")


def run(source: ScriptedSource, archive: EventArchive, settings: FlushSettings = SMALL) -> Archiver:
    archiver = Archiver(source, archive, settings, until_end=True)
    asyncio.run(archiver.run())
    return archiver


def expect_all(archive: EventArchive) -> None:
    assert in_order(read_all(archive.address)) == {FIRST: records(FIRST, 0, 200), SECOND: records(SECOND, 0, 200)}


def test_all_is_archived_in_several_commits_and_then_confirmed(archive: EventArchive) -> None:
    source = ScriptedSource(FOUND, archive.next_offsets)
    archiver = run(source, archive)
    expect_all(archive)
    assert source.confirmed == {FIRST: 200, SECOND: 200}
    assert archiver.metrics.flushes > 2
    assert archiver.metrics.records == len(FOUND)
    assert archiver.metrics.conflicts == 0


def test_what_another_process_archived_meanwhile_is_not_archived_again(archive: EventArchive) -> None:
    class Rival(ScriptedSource):
        def poll(self, most: int, timeout: float) -> SourceBatch:
            batch = super().poll(most, timeout)
            if self.rewinds == 0 and self.lag() < 200:
                at = archive.next_offsets("cluster").get(FIRST, 0)
                with suppress(OffsetsTakenError):  # the archiver was quicker
                    append(EventArchive.create(archive.address), records(FIRST, at, min(at + 33, 200)))
            return batch

    source = Rival(FOUND, archive.next_offsets)
    archiver = run(source, archive)
    assert archiver.metrics.conflicts == source.rewinds > 0
    expect_all(archive)


def test_what_the_bus_gives_twice_is_archived_once(archive: EventArchive) -> None:
    class Repeating(ScriptedSource):
        """As after a rebalance, which begins at what the archive has."""

        polls = 0

        def poll(self, most: int, timeout: float) -> SourceBatch:
            self.polls += 1
            if self.polls % 4 == 0:
                self.rewind()
            return super().poll(most, timeout)

        def lag(self) -> int:
            return 1 if self.polls % 4 == 3 else super().lag()

    run(Repeating(FOUND, archive.next_offsets), archive)
    expect_all(archive)


def test_an_archive_that_is_away_is_waited_for(archive: EventArchive) -> None:
    class Away(EventArchive):
        attempts = 0

        def append(self, rows: ArrowTable, ranges: Sequence[ArchivedRange]) -> None:
            self.attempts += 1
            if self.attempts % 2:
                raise TransientError("no space left on the device")
            super().append(rows, ranges)

    source = ScriptedSource(FOUND[:60], archive.next_offsets)
    archiver = run(source, Away.create(archive.address))
    assert len(read_all(archive.address)) == 60
    assert archiver.metrics.waits_by["the archive"] > 0
    assert archiver.metrics.is_ready


def test_an_error_behind_the_commit_leaves_nothing_twice(archive: EventArchive) -> None:
    class Unlucky(EventArchive):
        attempts = 0

        def append(self, rows: ArrowTable, ranges: Sequence[ArchivedRange]) -> None:
            super().append(rows, ranges)
            self.attempts += 1
            if self.attempts == 2:
                raise TransientError("the answer was lost")

    archiver = run(ScriptedSource(FOUND, archive.next_offsets), Unlucky.create(archive.address))
    assert archiver.metrics.conflicts == 1
    expect_all(archive)


def test_gaps_of_the_bus_are_archived_with_the_records(archive: EventArchive) -> None:
    source = ScriptedSource(records(FIRST, 40, 60), archive.next_offsets)
    gap = OffsetGap(FIRST, 10, 40, GapReason.LOG_EXPIRED)
    append(archive, records(FIRST, 0, 10))
    source.gaps = [gap]
    run(source, archive)
    state = archive.refresh()
    assert [each for each, _ in missing_offsets(archive, state.files)] == [gap]
    assert state.partitions[FIRST][1:3] == (0, 60)


def test_partitions_that_went_to_another_process_are_left_to_it(archive: EventArchive) -> None:
    class Shared(ScriptedSource):
        def owns(self, partition: BusPartition) -> bool:
            return partition == SECOND

    source = Shared(FOUND, archive.next_offsets)
    run(source, archive, FlushSettings(idle=0))
    assert in_order(read_all(archive.address)) == {SECOND: records(SECOND, 0, 200)}
    assert source.confirmed == {SECOND: 200}


def test_rows_that_are_old_enough_are_written(archive: EventArchive) -> None:
    class Endless(ScriptedSource):
        def lag(self) -> int:
            return 0 if archive.next_offsets("cluster") else 1

    run(Endless(FOUND[:5], archive.next_offsets), archive, FlushSettings(age=0.05, idle=0))
    assert len(read_all(archive.address)) == 5


def test_stopping_archives_what_was_polled(archive: EventArchive) -> None:
    class Stopping(ScriptedSource):
        archiver: Archiver
        loop: asyncio.AbstractEventLoop

        def poll(self, most: int, timeout: float) -> SourceBatch:
            batch = super().poll(most, timeout)
            if self.lag() < 300:
                self.loop.call_soon_threadsafe(self.archiver.stop)
            return batch

    source = Stopping(FOUND, archive.next_offsets)

    async def stopped() -> None:
        source.loop = asyncio.get_running_loop()
        source.archiver = Archiver(source, archive, FlushSettings(batch=30, idle=0))
        await source.archiver.run()

    asyncio.run(stopped())
    found: list[BusRecord] = read_all(archive.address)
    assert 60 < len(found) < len(FOUND)
    assert found_next(found) == source.confirmed


def found_next(found: Sequence[BusRecord]) -> Mapping[BusPartition, int]:
    return {where: each[-1].offset + 1 for where, each in in_order(found).items()}
