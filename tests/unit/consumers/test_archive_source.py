"""An archive as a source: records as they came, in the order of their offsets, from any offset on."""

from __future__ import annotations

from pathlib import Path

import pytest

from headwater.consumers.archive.table import EventArchive
from headwater.consumers.sources import BusRecord, EventSource, OffsetGap
from headwater.consumers.sources.archive import ArchiveSource
from headwater.consumers.sources.local_log import MOST_BYTES, LocalLogSource
from headwater.consumers.writer.offsets import bus_work
from headwater.events.clock import wall_micros
from headwater.events.health import GapReason
from headwater.journal import Journal, JournalOptions, LocalLog
from tests.kit.archive.records import DAY, FIRST, NOON, SECOND, TOPIC, append, in_order, read_all, records


@pytest.fixture
def archive(tmp_path: Path) -> EventArchive:
    """Of three commits, over two days and two partitions."""
    archive = EventArchive.create(tmp_path / "archive")
    append(archive, records(FIRST, 0, 50) + records(SECOND, 100, 120))
    append(archive, records(SECOND, 120, 160) + records(FIRST, 50, 60))
    append(archive, records(FIRST, 60, 200, time=NOON + DAY) + records(SECOND, 160, 161))
    return archive


EXPECTED = {
    FIRST: records(FIRST, 0, 60) + records(FIRST, 60, 200, time=NOON + DAY),
    SECOND: records(SECOND, 100, 161),
}


@pytest.mark.slow
@pytest.mark.parametrize("most", [1, 7, 1_000])
def test_all_records_come_in_order(archive: EventArchive, most: int) -> None:
    assert in_order(read_all(archive.address, most=most)) == EXPECTED


@pytest.mark.slow
def test_reading_begins_at_the_offsets_that_a_store_has(archive: EventArchive) -> None:
    found = in_order(
        read_all(archive.address, lambda cluster: {FIRST: 57, SECOND: 161} if cluster == "cluster" else {})
    )
    assert found == {FIRST: EXPECTED[FIRST][57:]}


@pytest.mark.slow
def test_a_group_goes_on_where_it_confirmed(archive: EventArchive) -> None:
    source: EventSource = ArchiveSource(archive.address, "group", None)
    first = source.poll(83, 0)
    source.done(first.next)
    source.poll(10, 0)
    again = ArchiveSource(archive.address, "group", None)
    rest: list[BusRecord] = []
    while batch := again.poll(50, 0):
        rest += batch.records
    assert in_order([*first.records, *rest]) == EXPECTED
    assert in_order(read_all(archive.address)) == EXPECTED  # another group has its own


@pytest.mark.slow
def test_rewinding_goes_back_to_what_was_confirmed(archive: EventArchive) -> None:
    source = ArchiveSource(archive.address, "group", None)
    first = source.poll(83, 0)
    source.rewind()
    assert source.poll(83, 0) == first


@pytest.mark.slow
def test_what_is_archived_meanwhile_comes_too(archive: EventArchive) -> None:
    source = ArchiveSource(archive.address, "group", None)
    assert source.lag() == 261
    while source.poll(100, 0).records:
        pass
    assert source.lag() == 0
    append(archive, records(FIRST, 200, 210))
    assert source.lag() == 10
    assert list(source.poll(100, 5).records) == records(FIRST, 200, 210)


@pytest.mark.slow
def test_gaps_are_reported_with_their_ends(archive: EventArchive) -> None:
    gap = OffsetGap(SECOND, 161, 170, GapReason.LOG_EXPIRED)
    append(archive, records(SECOND, 161, 161) + records(FIRST, 200, 201), gap)
    source = ArchiveSource(archive.address, "group", lambda _: {FIRST: 200, SECOND: 161})
    assert source.poll(10, 0).gaps == (gap,)


@pytest.mark.slow
def test_it_names_the_bus_that_the_records_came_from(archive: EventArchive) -> None:
    source = ArchiveSource(archive.address, "group", None)
    assert (source.kind, source.topic) == ("kafka", TOPIC)


# What a source gives of a local log at once.


LARGE = 1 << 20


@pytest.mark.slow
def test_a_batch_of_large_events_is_bounded_by_their_bytes(tmp_path: Path) -> None:
    count = 2 * MOST_BYTES // LARGE + 1
    with LocalLog.open(tmp_path / "log").writer() as journal:
        for number in range(count):
            journal.append(b"%d" % (number % 10) * LARGE)
    source = LocalLogSource(tmp_path / "log", "group")
    batches = [source.poll(5_000, 1) for _ in range(4)]
    source.close()
    sizes = [sum(len(record.data) for record in batch.records) for batch in batches]
    assert max(sizes) <= MOST_BYTES
    assert sum(sizes) == count * LARGE
    following = [at for batch in batches for at in batch.next.values()]
    assert following == [16, 32, 33]


IN_2031 = 1_925_000_000_000_000


def test_a_writer_from_2031_dates_nothing(tmp_path: Path) -> None:
    """Its records count as appended with those before them: who bounds times by the log's isn't led astray, and the
    partition isn't taken for read until 2031."""
    before = wall_micros()
    for clock, value in ((lambda: before, b"a"), (lambda: IN_2031, b"b"), (lambda: before + 5, b"c")):
        with Journal.open(tmp_path / "log" / "partition-0000", JournalOptions(clock=clock)) as journal:
            journal.append(value)
    source = LocalLogSource(tmp_path / "log", "group")
    batch = source.poll(2, 1)
    assert [(each.data, each.append_time) for each in batch.records] == [(b"a", before), (b"b", before)]
    assert [each.until for each in bus_work(batch, "g", "log", "log").ingests] == [before]
    assert [(each.data, each.append_time) for each in source.poll(2, 1).records] == [(b"c", before + 5)]
    source.close()


def test_a_log_that_begins_in_2031_is_dated_now(tmp_path: Path) -> None:
    with LocalLog.open(tmp_path / "log", JournalOptions(clock=lambda: IN_2031)).writer() as journal:
        journal.append(b"a")
    source = LocalLogSource(tmp_path / "log", "group")
    (record,) = source.poll(2, 1).records
    source.close()
    assert record.append_time is not None
    assert record.append_time <= wall_micros()
