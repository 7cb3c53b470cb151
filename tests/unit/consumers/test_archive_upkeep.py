"""Compaction, retention and verification: what readers see meanwhile, and what is found."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from headwater.consumers.archive import table as table_module
from headwater.consumers.archive.columns import TableBuilder
from headwater.consumers.archive.ordered_rows import UnarchivedOffsets, Verification
from headwater.consumers.archive.table import ArchivedRange, EventArchive, OffsetsTakenError
from headwater.consumers.archive.upkeep import ArchiveUpkeep, compact, expire
from headwater.consumers.sources import BusRecord, OffsetGap
from headwater.consumers.sources.archive import ArchiveSource
from headwater.errors import TerminalError
from headwater.events.health import GapReason
from tests.kit.archive.records import DAY, FIRST, NOON, SECOND, TOPIC, append, damage_page, in_order, read_all, records

pytestmark = pytest.mark.slow
EXPECTED = {FIRST: records(FIRST, 0, 40) + records(FIRST, 40, 60, time=NOON + DAY), SECOND: records(SECOND, 0, 40)}
LIBRARY = "write_deltalake"
SECOND_DAY, THIRD_DAY = date(2026, 3, 2), date(2026, 3, 3)


@pytest.fixture
def archive(tmp_path: Path) -> EventArchive:
    """Of several commits and two days."""
    archive = EventArchive.create(tmp_path / "archive")
    for at in range(0, 40, 10):
        append(archive, records(FIRST, at, at + 10) + records(SECOND, at, at + 10))
    append(archive, records(FIRST, 40, 60, time=NOON + DAY))
    return archive


@pytest.fixture
def rival(archive: EventArchive) -> EventArchive:
    """The same archive in another process."""
    return EventArchive.open(archive.address)


def verify(archive: EventArchive) -> Verification:
    verification = Verification(archive)
    assert len(list(verification.run())) == len(archive.refresh().files)
    return verification


def expect_whole(archive: EventArchive) -> None:
    assert in_order(read_all(archive.address)) == EXPECTED
    assert DeltaTable(archive.address).to_pyarrow_dataset().count_rows() == 100
    assert verify(archive).damages == []


def test_small_files_become_one_of_each_day_and_partition(archive: EventArchive) -> None:
    done = compact(archive, before=SECOND_DAY)
    assert (done.files_before, done.files_after, done.records) == (8, 2, 80)
    assert sorted((each.day, each.records) for each in archive.refresh().files) == [
        (date(2026, 3, 1), 40),
        (date(2026, 3, 1), 40),
        (SECOND_DAY, 20),
    ]
    expect_whole(archive)
    assert compact(archive, before=SECOND_DAY).files_before == 0
    assert archive.vacuum() == 0, "somebody may still read them"


def test_columns_stay_as_they_are(archive: EventArchive) -> None:
    def rows() -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = DeltaTable(archive.address).to_pyarrow_table().to_pylist()
        return sorted(found, key=lambda row: (row["partition"], row["offset"]))

    before = rows()
    compact(archive, before=THIRD_DAY)
    assert rows() == before


def while_writing(patched: pytest.MonkeyPatch, work: Callable[[], object]) -> None:
    """Do something before the next write of the library begins, after our process has looked."""
    original, is_first = getattr(table_module, LIBRARY), [True]

    def write(*args: Any, **named: Any) -> None:
        if is_first and is_first.pop():
            work()
        original(*args, **named)

    patched.setattr(table_module, LIBRARY, write)


def test_of_two_compactions_at_once_the_slower_one_leaves_it(
    archive: EventArchive, rival: EventArchive, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It finds the library's OPTIMIZE: both are committed, and each record is there twice."""
    while_writing(monkeypatch, lambda: compact(rival, before=THIRD_DAY))
    done = compact(archive, before=THIRD_DAY)
    assert (done.files_before, done.conflicts) == (0, 2)
    expect_whole(archive)


def test_what_expires_while_it_is_compacted_does_not_come_back(
    archive: EventArchive, rival: EventArchive, monkeypatch: pytest.MonkeyPatch
) -> None:
    while_writing(monkeypatch, lambda: expire(rival, SECOND_DAY))
    assert compact(archive, before=SECOND_DAY).files_before == 0
    assert read_all(archive.address) == EXPECTED[FIRST][40:]


def test_what_is_compacted_while_it_expires_goes_at_the_next_attempt(
    archive: EventArchive, rival: EventArchive, monkeypatch: pytest.MonkeyPatch
) -> None:
    while_writing(monkeypatch, lambda: compact(rival, before=SECOND_DAY))
    assert expire(archive, SECOND_DAY).conflicts == 1
    expect_whole(archive)
    assert expire(archive, SECOND_DAY).records == 80


@pytest.mark.parametrize("day", [NOON, NOON + DAY], ids=["to the same day", "to another day"])
def test_what_is_appended_while_it_is_compacted_stays(
    archive: EventArchive, rival: EventArchive, monkeypatch: pytest.MonkeyPatch, day: int
) -> None:
    late = records(FIRST, 60, 65, time=day)
    while_writing(monkeypatch, lambda: append(rival, late))
    done = compact(archive, before=SECOND_DAY)
    assert done.conflicts == (day == NOON)
    assert in_order(read_all(archive.address)) == {**EXPECTED, FIRST: EXPECTED[FIRST] + late}


def test_an_append_goes_on_over_a_compaction(
    archive: EventArchive, rival: EventArchive, monkeypatch: pytest.MonkeyPatch
) -> None:
    while_writing(monkeypatch, lambda: compact(rival, before=THIRD_DAY))
    append(archive, records(FIRST, 60, 65, time=NOON + DAY))
    assert in_order(read_all(archive.address))[FIRST] == EXPECTED[FIRST] + records(FIRST, 60, 65, time=NOON + DAY)


@pytest.mark.parametrize("taken", [1, 30, 75])
def test_a_reader_goes_on_while_files_are_replaced(archive: EventArchive, taken: int) -> None:
    """Also when those that it hadn't read yet are removed from the disk."""
    source = ArchiveSource(archive.address, "group", None)
    found = list(source.poll(taken, 0).records)
    old = [Path(archive.name_of(each)) for each in archive.refresh().files]
    compact(archive, before=THIRD_DAY)
    kept = {archive.name_of(each) for each in archive.refresh().files}
    for each in old:
        if str(each) not in kept:
            each.unlink()
    while (batch := source.poll(9, 0)).records:
        found += batch.records
    assert in_order(found) == EXPECTED


def test_files_of_others_that_overlap_and_are_not_sorted_are_read_in_order(archive: EventArchive) -> None:
    """As other programs' compactions leave them."""
    DeltaTable(archive.address).optimize.compact(max_concurrent_tasks=1)
    late = records(FIRST, 60, 70, time=NOON - DAY)
    append(archive, late)
    assert in_order(read_all(archive.address)) == {**EXPECTED, FIRST: EXPECTED[FIRST] + late}


def test_old_days_expire_and_readers_hear_of_it(archive: EventArchive) -> None:
    assert expire(archive, date(2026, 3, 1)).files_before == 0
    assert expire(archive, SECOND_DAY).records == 80
    assert expire(archive, SECOND_DAY).files_before == 0
    source = ArchiveSource(archive.address, "group", lambda _: {FIRST: 10, SECOND: 40})
    batch = source.poll(100, 0)
    assert batch.gaps == (OffsetGap(FIRST, 10, 40, GapReason.LOG_EXPIRED),)
    assert [*batch.records, *source.poll(100, 0).records] == EXPECTED[FIRST][40:]
    verification = verify(archive)
    assert verification.damages == []
    assert [(hole.partition, hole.first, hole.end, hole.why) for hole in verification.unarchived] == [
        (FIRST, 0, 40, "expired"),
        (SECOND, 0, 40, "expired"),
    ]
    append(archive, records(FIRST, 60, 70))  # archiving goes on behind what expired
    with pytest.raises(OffsetsTakenError):
        append(archive, records(SECOND, 0, 10))


def test_what_expires_later_is_one_gap_with_what_expired_before(archive: EventArchive) -> None:
    append(archive, records(FIRST, 60, 70, time=NOON + 2 * DAY))
    expire(archive, SECOND_DAY)
    expire(archive, THIRD_DAY)
    batch = ArchiveSource(archive.address, "group", lambda _: {SECOND: 40}).poll(100, 0)
    assert batch.gaps == (OffsetGap(FIRST, 0, 60, GapReason.LOG_EXPIRED),)
    assert batch.next == {FIRST: 70}


def test_what_stays_among_expired_offsets_is_read(archive: EventArchive) -> None:
    """Times of producers don't grow with offsets: a later offset can be of an earlier day."""
    append(archive, records(FIRST, 60, 65, time=NOON - 5 * DAY))
    expire(archive, date(2026, 2, 28))
    source = ArchiveSource(archive.address, "group", None)
    found: list[BusRecord] = []
    while batch := source.poll(7, 0):
        found += batch.records
    assert in_order(found) == EXPECTED


def test_a_reader_hears_of_what_expired_before_it_came_there(archive: EventArchive) -> None:
    source = ArchiveSource(archive.address, "group", lambda _: {FIRST: 10, SECOND: 40})
    assert list(source.poll(5, 0).records) == EXPECTED[FIRST][10:15]
    expire(archive, SECOND_DAY)
    for each in Path(archive.address).glob("day=2026-03-01/*/*/*.parquet"):
        if not any(archive.name_of(known) == str(each) for known in archive.refresh().files):
            each.unlink()  # a day later
    found: list[BusRecord] = []
    gaps: list[OffsetGap] = []
    while batch := source.poll(100, 0):
        found += batch.records
        gaps += batch.gaps
    (gap,) = gaps
    assert found == [*EXPECTED[FIRST][15 : gap.first], *EXPECTED[FIRST][40:]], "what it had read already comes whole"
    assert (gap.end, gap.reason) == (40, GapReason.LOG_EXPIRED)
    expire(archive, THIRD_DAY)
    assert source.poll(100, 0).gaps == (), "it had read all that expired then"


def test_damage_is_found(archive: EventArchive) -> None:
    files = [each for each in archive.refresh().files if each.partition == FIRST and each.records == 10]
    Path(archive.name_of(files[0])).unlink()
    damage_page(Path(archive.name_of(files[1])))
    verification = verify(archive)
    assert {each.path for each in verification.damages} == {each.path for each in files[:2]}
    assert {each.why for each in verification.unarchived} == {"no record"}
    assert sum(hole.end - hole.first for hole in verification.unarchived) == 20


def test_records_that_others_doubled_are_found(archive: EventArchive) -> None:
    first, second = DeltaTable(archive.address), DeltaTable(archive.address)
    for each in (first, second):
        each.optimize.compact()
    (damage, *_) = verify(archive).damages
    assert "40 records are there twice" in damage.error


def test_a_damaged_file_ends_a_compaction_with_its_name_and_changes_nothing(archive: EventArchive) -> None:
    (file, *_) = (each for each in archive.refresh().files if each.records == 10)
    path = Path(archive.name_of(file))
    whole = path.read_bytes()
    path.write_bytes(whole[:-5])
    with pytest.raises(TerminalError, match=file.path):
        compact(archive, before=THIRD_DAY)
    path.write_bytes(whole)
    expect_whole(archive)


def test_what_the_bus_had_lost_is_a_hole_with_its_reason(archive: EventArchive) -> None:
    append(archive, [], OffsetGap(SECOND, 40, 50, GapReason.LOG_EXPIRED))
    rows = TableBuilder(TOPIC).build(records(SECOND, 50, 60))
    archive.append(rows, [ArchivedRange(SECOND, 40, 60)])  # as an archiver does, which begins at the end
    assert verify(archive).unarchived == [UnarchivedOffsets(SECOND, TOPIC, 40, 50, "missing")]


def test_upkeep_runs_beside_an_archiver(archive: EventArchive) -> None:
    upkeep = ArchiveUpkeep(archive, keep_days=None)
    with upkeep:
        upkeep.run_once()
    assert len(archive.refresh().files) == 3
    ArchiveUpkeep(archive, keep_days=1).run_once()
    assert sum(each.records for each in archive.refresh().files) == 0
