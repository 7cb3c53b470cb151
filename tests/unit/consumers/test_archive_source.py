"""An archive as a source: records as they came, in the order of their offsets, from any offset on."""

from __future__ import annotations

from pathlib import Path

import pytest

from headwater.consumers.archive.table import EventArchive
from headwater.consumers.sources import BusRecord, EventSource, OffsetGap
from headwater.consumers.sources.archive import ArchiveSource
from headwater.events.health import GapReason
from tests.kit.archive.records import DAY, FIRST, NOON, SECOND, TOPIC, append, in_order, read_all, records

pytestmark = pytest.mark.slow


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


@pytest.mark.parametrize("most", [1, 7, 1_000])
def test_all_records_come_in_order(archive: EventArchive, most: int) -> None:
    assert in_order(read_all(archive.address, most=most)) == EXPECTED


def test_reading_begins_at_the_offsets_that_a_store_has(archive: EventArchive) -> None:
    found = in_order(
        read_all(archive.address, lambda cluster: {FIRST: 57, SECOND: 161} if cluster == "cluster" else {})
    )
    assert found == {FIRST: EXPECTED[FIRST][57:]}


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


def test_rewinding_goes_back_to_what_was_confirmed(archive: EventArchive) -> None:
    source = ArchiveSource(archive.address, "group", None)
    first = source.poll(83, 0)
    source.rewind()
    assert source.poll(83, 0) == first


def test_what_is_archived_meanwhile_comes_too(archive: EventArchive) -> None:
    source = ArchiveSource(archive.address, "group", None)
    assert source.lag() == 261
    while source.poll(100, 0).records:
        pass
    assert source.lag() == 0
    append(archive, records(FIRST, 200, 210))
    assert source.lag() == 10
    assert list(source.poll(100, 5).records) == records(FIRST, 200, 210)


def test_gaps_are_reported_with_their_ends(archive: EventArchive) -> None:
    gap = OffsetGap(SECOND, 161, 170, GapReason.LOG_EXPIRED)
    append(archive, records(SECOND, 161, 161) + records(FIRST, 200, 201), gap)
    source = ArchiveSource(archive.address, "group", lambda _: {FIRST: 200, SECOND: 161})
    assert source.poll(10, 0).gaps == (gap,)


def test_it_names_the_bus_that_the_records_came_from(archive: EventArchive) -> None:
    source = ArchiveSource(archive.address, "group", None)
    assert (source.kind, source.topic) == ("kafka", TOPIC)
