"""Compaction, retention and verification: what readers see meanwhile, and what is found."""

from __future__ import annotations

from datetime import date
from errno import ENOSPC
from pathlib import Path
from typing import Any

import duckdb
import pytest

from headwater.consumers.archive import directory as directory_module
from headwater.consumers.archive.columns import TableBuilder
from headwater.consumers.archive.directory import PENDING, ParquetArchive
from headwater.consumers.archive.exchange import replace_files
from headwater.consumers.archive.state import ArchivedRange, OffsetsTakenError
from headwater.consumers.archive.upkeep import ArchiveUpkeep, compact, expire
from headwater.consumers.archive.verification import UnarchivedOffsets, Verification
from headwater.consumers.sources import BusRecord, OffsetGap
from headwater.consumers.sources.archive import ArchiveSource
from headwater.errors import TransientError
from headwater.events.health import GapReason
from tests.kit.archive.records import DAY, FIRST, NOON, SECOND, TOPIC, append, in_order, read_all, records

pytestmark = pytest.mark.slow
EXPECTED = {FIRST: records(FIRST, 0, 40) + records(FIRST, 40, 60, time=NOON + DAY), SECOND: records(SECOND, 0, 40)}


@pytest.fixture
def archive(tmp_path: Path) -> ParquetArchive:
    """Of several commits and two days."""
    archive = ParquetArchive.create(tmp_path / "archive")
    for at in range(0, 40, 10):
        append(archive, records(FIRST, at, at + 10) + records(SECOND, at, at + 10))
    append(archive, records(FIRST, 40, 60, time=NOON + DAY))
    return archive


def count(archive: ParquetArchive) -> tuple[int, int]:
    """As somebody who reads the directory counts."""
    files = f"{archive.directory}/events/*/*/*.parquet"
    (found,) = duckdb.sql(f'SELECT count(*), count(DISTINCT ("partition", "offset")) FROM \'{files}\'').fetchall()
    return found[0], found[1]


def verify(archive: ParquetArchive) -> Verification:
    verification = Verification(archive)
    assert len(list(verification.run())) == len(archive.refresh().files)
    return verification


def test_small_files_become_one_of_each_day_and_kind(archive: ParquetArchive) -> None:
    before = len(archive.refresh().files)
    done = compact(archive, before=date(2026, 3, 2))
    files = archive.refresh().files.values()
    assert (done.files_before, done.files_after, done.rows) == (8, 2, 80)
    assert len(files) == before - 8 + 2
    assert sorted(each.path for each in files) == sorted(
        str(each.relative_to(archive.directory)) for each in archive.directory.glob("events/*/*/*.parquet")
    )
    assert in_order(read_all(archive.directory)) == EXPECTED
    assert count(archive) == (100, 100)
    assert list((archive.directory / PENDING).iterdir()) == []
    for each in files:
        rows = archive.read(each).to_pylist()
        assert [row["key"] for row in rows] == sorted(row["key"] for row in rows)
    assert verify(archive).damages == []
    assert compact(archive, before=date(2026, 3, 2)).files_before == 0


def test_files_that_are_large_enough_are_left_alone(archive: ParquetArchive) -> None:
    assert compact(archive, before=date(2026, 3, 2), target=1).files_before == 0


def test_where_directories_cannot_be_exchanged_files_are_replaced_one_by_one(
    archive: ParquetArchive, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(directory_module, "replace_files", lambda *_, **__: False)
    compact(archive, before=date(2026, 3, 3))
    assert in_order(read_all(archive.directory)) == EXPECTED
    assert count(archive) == (100, 100)


def test_a_file_that_comes_while_its_directory_is_exchanged_is_brought_back(tmp_path: Path) -> None:
    place = tmp_path / "place"
    place.mkdir()
    for name in ("old", "stays"):
        (place / name).write_text(name)
    new = tmp_path / "new"
    new.write_text("new")

    def wanted() -> set[str]:  # asked right after the exchange
        (aside,) = tmp_path.glob("aside")
        (aside / "late").write_text("late")  # put there by its old name, just before
        return {"new", "stays", "late"}

    assert replace_files(place, tmp_path / "aside", add=[new], gone={"old"}, wanted=wanted)
    assert sorted(each.name for each in place.iterdir()) == ["late", "new", "stays"]


def test_two_compactions_at_once_do_no_harm(archive: ParquetArchive, monkeypatch: pytest.MonkeyPatch) -> None:
    rival = ParquetArchive.create(archive.directory)
    original = ParquetArchive.write
    is_first = [True]

    def write(self: ParquetArchive, table: Any) -> Any:
        if is_first.pop() if is_first else False:
            compact(rival, before=date(2026, 3, 3))
        return original(self, table)

    monkeypatch.setattr(ParquetArchive, "write", write)
    done = compact(archive, before=date(2026, 3, 3))
    assert done.conflicts == 2
    assert in_order(read_all(archive.directory)) == EXPECTED
    assert count(archive) == (100, 100)
    assert list((archive.directory / PENDING).iterdir()) == []


def test_a_compaction_that_died_behind_its_commit_is_finished(
    archive: ParquetArchive, monkeypatch: pytest.MonkeyPatch
) -> None:
    def die(*_: object, **__: object) -> bool:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(directory_module, "replace_files", die)
        with pytest.raises(KeyboardInterrupt):
            compact(archive, before=date(2026, 3, 3))
    assert in_order(read_all(archive.directory)) == EXPECTED
    other = ParquetArchive.create(archive.directory)
    assert count(other) == (100, 100)
    assert in_order(read_all(archive.directory)) == EXPECTED


def test_a_compaction_that_failed_behind_its_commit_is_finished_before_the_next(
    archive: ParquetArchive, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> bool:
        raise OSError(ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(directory_module, "replace_files", fail)
        with pytest.raises(TransientError, match="No space left"):
            compact(archive, before=date(2026, 3, 2))
    assert expire(archive, date(2026, 3, 2)).rows == 80
    assert count(archive) == (20, 20)
    assert list((archive.directory / PENDING).iterdir()) == []


@pytest.mark.parametrize("taken", [1, 30, 75])
def test_a_reader_goes_on_while_files_are_replaced(archive: ParquetArchive, taken: int) -> None:
    source = ArchiveSource(archive.directory, "group", None)
    found = list(source.poll(taken, 0).records)
    compact(archive, before=date(2026, 3, 3))
    while (batch := source.poll(9, 0)).records:
        found += batch.records
    assert in_order(found) == EXPECTED


def test_old_days_expire_and_readers_hear_of_it(archive: ParquetArchive) -> None:
    assert expire(archive, date(2026, 3, 1)).files_before == 0
    done = expire(archive, date(2026, 3, 2))
    assert done.rows == 80
    assert [each.name for each in (archive.directory / "events").iterdir()] == ["day=2026-03-02"]
    source = ArchiveSource(archive.directory, "group", lambda _: {FIRST: 10, SECOND: 40})
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


def test_a_reader_hears_of_what_expired_before_it_came_there(archive: ParquetArchive) -> None:
    source = ArchiveSource(archive.directory, "group", lambda _: {FIRST: 10, SECOND: 40})
    assert list(source.poll(5, 0).records) == EXPECTED[FIRST][10:15]
    while batch := source.poll(5, 0):  # what it has read already comes whole
        if batch.records[-1].offset == 19:
            break
    expire(archive, date(2026, 3, 2))
    found: list[BusRecord] = []
    gaps: list[OffsetGap] = []
    while batch := source.poll(100, 0):
        found += batch.records
        gaps += batch.gaps
    assert gaps == [OffsetGap(FIRST, 20, 40, GapReason.LOG_EXPIRED)]
    assert found == EXPECTED[FIRST][40:]
    expire(archive, date(2026, 3, 3))
    assert source.poll(100, 0).gaps == (), "it had read all that expired then"


def test_damage_is_found(archive: ParquetArchive) -> None:
    files = list(archive.refresh().files.values())
    archive.path_of(files[0]).unlink()
    data = bytearray(archive.path_of(files[1]).read_bytes())
    data[len(data) // 2] ^= 1
    archive.path_of(files[1]).write_bytes(data)
    archive.path_of(files[2]).write_bytes(archive.path_of(files[3]).read_bytes())
    verification = verify(archive)
    assert {each.path for each in verification.damages} == {each.path for each in files[:3]}
    assert all(each.why == "no record" for each in verification.unarchived)
    missing = sum(hole.end - hole.first for hole in verification.unarchived)
    assert missing == sum(each.rows for each in files[:3])


def test_what_the_bus_had_lost_is_a_hole_with_its_reason(archive: ParquetArchive) -> None:
    rows = TableBuilder(TOPIC).build(records(SECOND, 50, 60))
    gap = OffsetGap(SECOND, 40, 50, GapReason.LOG_EXPIRED)
    archive.append(rows, [ArchivedRange(SECOND, TOPIC, 40, 60)], [gap])  # as an archiver does, which begins at the end
    assert verify(archive).unarchived == [UnarchivedOffsets(SECOND, TOPIC, 40, 50, "gap")]


def test_upkeep_runs_beside_an_archiver(archive: ParquetArchive) -> None:
    upkeep = ArchiveUpkeep(archive, keep_days=None)
    with upkeep:
        upkeep.run_once()
    assert len(archive.refresh().files) == 4
    ArchiveUpkeep(archive, keep_days=1).run_once()
    assert archive.refresh().files == {}
