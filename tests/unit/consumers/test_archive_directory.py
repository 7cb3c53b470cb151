"""The archive of Parquet files: what is in it, and what processes that die or race leave."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import duckdb
import pytest

from headwater.consumers.archive.columns import TableBuilder
from headwater.consumers.archive.commit_log import EVERY, CommitLog
from headwater.consumers.archive.decoding import UNDECODED
from headwater.consumers.archive.directory import PENDING, ParquetArchive
from headwater.consumers.archive.state import ArchiveCommit, ArchivedRange, OffsetsTakenError, Operation
from headwater.consumers.sources import OffsetGap
from headwater.errors import ConfigurationError, TerminalError, TransientError
from headwater.events.health import GapReason
from tests.kit.archive.records import DATA, DAY, FIRST, SECOND, TOPIC, append, in_order, read_all, record, records

pytestmark = pytest.mark.slow


@pytest.fixture
def archive(tmp_path: Path) -> ParquetArchive:
    return ParquetArchive.create(tmp_path / "archive")


def query(archive: ParquetArchive, sql: str) -> list[tuple[object, ...]]:
    files = f"read_parquet('{archive.directory}/events/*/*/*.parquet', hive_partitioning=true)"
    return duckdb.sql(sql.format(files=files)).fetchall()


def test_files_are_by_day_and_kind_and_sorted_by_key(archive: ParquetArchive) -> None:
    append(archive, records(FIRST, 0, 60) + records(FIRST, 60, 90, time=NEXT_DAY))
    paths = [each.relative_to(archive.directory).parts[:3] for each in archive.directory.glob("events/*/*/*.parquet")]
    assert {day for _, day, _ in paths} == {"day=2026-03-01", "day=2026-03-02"}
    assert len(set(paths)) == len(paths)
    for each in archive.refresh().files.values():
        rows = archive.read(each).to_pylist()
        assert [(row["key"], row["offset"]) for row in rows] == sorted((row["key"], row["offset"]) for row in rows)
    found = query(archive, "SELECT count(*), min(day)::VARCHAR, max(day)::VARCHAR FROM {files}")
    assert found == [(90, "2026-03-01", "2026-03-02")]


NEXT_DAY = 1_772_366_400_000_000 + DAY


def test_what_cannot_be_decoded_is_archived_all_the_same(archive: ParquetArchive) -> None:
    broken = [
        record(0)._replace(data=b""),
        record(1)._replace(data=b"\x00\x01\x02"),
        record(2)._replace(data=DATA[0][:-3]),
        record(3)._replace(data=DATA[0] + b"x"),
        record(4)._replace(data=b"\xc3\x01" + bytes(8) + b"abc", headers=(("kind", b"../../etc"),)),
    ]
    append(archive, broken)
    assert {each.kind for each in archive.refresh().files.values()} == {UNDECODED}
    assert read_all(archive.directory) == broken
    found = query(archive, 'SELECT "offset", error, job, producer FROM {files} ORDER BY 1')
    assert all(error for _, error, _, _ in found)
    assert {(job, producer) for _, _, job, producer in found} == {(None, None)}


def test_records_without_time_key_or_headers_come_back_as_they_were(archive: ParquetArchive) -> None:
    bare = [record(0, time=None, key=None)._replace(headers=()), record(1, time=None, key=b"")]
    append(archive, bare)
    assert read_all(archive.directory) == bare
    (file, *_) = archive.refresh().files.values()
    assert file.day.isoformat() == time.strftime("%Y-%m-%d", time.gmtime())


def test_a_range_that_does_not_begin_where_the_archive_ends_is_refused_whole(archive: ParquetArchive) -> None:
    append(archive, records(FIRST, 0, 10))
    other = ParquetArchive.create(archive.directory)
    for late in (records(FIRST, 0, 10), records(FIRST, 5, 20), records(FIRST, 11, 20)):
        with pytest.raises(OffsetsTakenError, match=r"partition 0 is archived up to offset 10"):
            append(other, records(SECOND, 0, 3) + late)
    assert read_all(archive.directory) == records(FIRST, 0, 10)
    assert list((archive.directory / PENDING).iterdir()) == []


def test_two_processes_take_turns_without_knowing_each_other(archive: ParquetArchive) -> None:
    other = ParquetArchive.create(archive.directory)
    for at in range(0, 40, 10):
        append(archive, records(FIRST, at, at + 10))
        append(other, records(SECOND, at, at + 10))
    expected = {FIRST: records(FIRST, 0, 40), SECOND: records(SECOND, 0, 40)}
    assert in_order(read_all(archive.directory)) == expected


def test_a_process_that_slept_through_many_commits_takes_no_old_version(archive: ParquetArchive) -> None:
    """The log removes old commits: their names are free, and mustn't be taken again."""
    sleeper = CommitLog(archive.directory)
    for at in range(3 * EVERY):
        archive.commit(ArchiveCommit(Operation.APPEND, (ArchivedRange(FIRST, TOPIC, at, at + 1),)))
    assert not (archive.directory / "_log" / f"{1:020}.json").exists()
    with pytest.raises(OffsetsTakenError):
        sleeper.commit(ArchiveCommit(Operation.APPEND, (ArchivedRange(FIRST, TOPIC, 0, 1),)))
    assert not (archive.directory / "_log" / f"{1:020}.json").exists()
    assert ParquetArchive.open(archive.directory).refresh().partitions[FIRST].next == 3 * EVERY


def test_a_commit_whose_files_are_not_in_place_is_finished_by_the_next_process(archive: ParquetArchive) -> None:
    """As if the process was killed right after the commit."""
    found = records(FIRST, 0, 20)
    files = archive.write(TableBuilder(TOPIC).build(found))
    CommitLog(archive.directory).commit(
        ArchiveCommit(Operation.APPEND, (ArchivedRange(FIRST, TOPIC, 0, 20),), (), tuple(files))
    )
    assert query_count(archive) == 0
    assert read_all(archive.directory) == found  # who reads by the log sees it at once
    ParquetArchive.create(archive.directory)
    assert query_count(archive) == 20
    assert list((archive.directory / PENDING).iterdir()) == []


def query_count(archive: ParquetArchive) -> int:
    if not list(archive.directory.glob("events/*/*/*.parquet")):
        return 0
    ((count,),) = query(archive, "SELECT count(*) FROM {files}")
    assert isinstance(count, int)
    return count


def test_files_that_nobody_committed_are_removed_a_day_later(archive: ParquetArchive) -> None:
    (file, *_) = archive.write(TableBuilder(TOPIC).build(records(FIRST, 0, 1)))
    path = archive.directory / PENDING / file.name
    ParquetArchive.create(archive.directory)
    assert path.exists()  # somebody may be about to commit it
    os.utime(path, (0, 0))
    ParquetArchive.create(archive.directory)
    assert not path.exists()


def test_gaps_are_kept_and_come_again(archive: ParquetArchive) -> None:
    gap = OffsetGap(FIRST, 3, 5, GapReason.LOG_EXPIRED)
    lost = OffsetGap(SECOND, 7, None, GapReason.LOG_RECREATED)
    append(archive, [*records(FIRST, 0, 3), *records(FIRST, 5, 9)], gap, lost)
    assert ParquetArchive.open(archive.directory).refresh().gaps == (gap, lost)


def test_another_directory_is_refused(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(ConfigurationError, match="isn't empty"):
        ParquetArchive.create(tmp_path)
    with pytest.raises(ConfigurationError, match="isn't an archive"):
        ParquetArchive.open(tmp_path)
    with pytest.raises(ConfigurationError, match="isn't a directory"):
        ParquetArchive.create(tmp_path / "mine.txt")


def test_a_damaged_log_is_refused(archive: ParquetArchive) -> None:
    append(archive, records(FIRST, 0, 1))
    path = archive.directory / "_log" / f"{1:020}.json"
    content = path.read_text()
    path.write_text(content[:-10])
    with pytest.raises(TerminalError, match="is damaged"):
        ParquetArchive.open(archive.directory).refresh()
    path.write_text(json.dumps({**json.loads(content), "format": 2}))
    with pytest.raises(TerminalError, match="newer headwater"):
        ParquetArchive.open(archive.directory).refresh()


def test_a_file_that_is_gone_is_an_error_that_names_it(archive: ParquetArchive) -> None:
    append(archive, records(FIRST, 0, 1))
    (file,) = archive.refresh().files.values()
    archive.path_of(file).unlink()
    with pytest.raises(TransientError, match=file.name):
        archive.read(file)
