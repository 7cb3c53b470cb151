"""An archive as a table: what it takes and refuses, what other programs see in it, and what damage ends in."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pytest
from deltalake import DeltaTable

from headwater.cli import main
from headwater.consumers.archive import table as table_module
from headwater.consumers.archive.columns import TableBuilder
from headwater.consumers.archive.decoding import UNDECODED
from headwater.consumers.archive.ordered_rows import ReplacedFileError, Verification, missing_offsets
from headwater.consumers.archive.table import DamagedFileError, EventArchive, OffsetsTakenError
from headwater.consumers.sources import OffsetGap
from headwater.errors import ConfigurationError, HeadwaterError, TerminalError, TransientError
from headwater.events.health import GapReason
from headwater.lineage.bulk import BusPartition
from tests.kit.archive.records import (
    DATA,
    DAY,
    FIRST,
    NOON,
    SECOND,
    TOPIC,
    append,
    damage_page,
    in_order,
    read_all,
    record,
    records,
)

pytestmark = pytest.mark.slow
LIBRARY = "write_deltalake"


@pytest.fixture
def archive(tmp_path: Path) -> EventArchive:
    return EventArchive.create(tmp_path / "archive")


@pytest.fixture
def rival(archive: EventArchive) -> EventArchive:
    """The same archive in another process."""
    return EventArchive.open(archive.address)


def test_rows_are_by_day_and_partition_and_anything_that_reads_delta_finds_them(archive: EventArchive) -> None:
    append(archive, records(FIRST, 0, 60) + records(SECOND, 0, 5) + records(FIRST, 60, 90, time=NOON + DAY))
    places = sorted((each.day.isoformat(), each.partition, each.records) for each in archive.refresh().files)
    assert places == [("2026-03-01", FIRST, 60), ("2026-03-01", SECOND, 5), ("2026-03-02", FIRST, 30)]
    events = DeltaTable(archive.address).to_pyarrow_dataset()
    assert events.count_rows() == 95
    query = 'SELECT count(DISTINCT ("partition", "offset")), min(day)::VARCHAR, max(day)::VARCHAR FROM events'
    assert duckdb.sql(query).fetchall() == [(95, "2026-03-01", "2026-03-02")]


def test_what_cannot_be_decoded_is_archived_all_the_same(archive: EventArchive) -> None:
    broken = [
        record(0)._replace(data=b""),
        record(1)._replace(data=b"\x00\x01\x02"),
        record(2)._replace(data=DATA[0][:-3]),
        record(3)._replace(data=DATA[0] + b"x"),
        record(4)._replace(data=b"\xc3\x01" + bytes(8) + b"abc", headers=(("kind", b"../../etc"),)),
    ]
    append(archive, broken)
    assert read_all(archive.address) == broken
    rows = DeltaTable(archive.address).to_pyarrow_table(columns=["kind", "error", "job", "producer"]).to_pylist()
    assert all(row["error"] for row in rows)
    assert {(row["kind"], row["job"], row["producer"]) for row in rows} == {(UNDECODED, None, None)}


def test_records_without_time_key_or_headers_come_back_as_they_were(archive: EventArchive) -> None:
    bare = [record(0, time=None, key=None)._replace(headers=()), record(1, time=None, key=b"")]
    append(archive, bare)
    assert read_all(archive.address) == bare
    (file,) = archive.refresh().files
    assert file.day.isoformat() == time.strftime("%Y-%m-%d", time.gmtime())


def test_the_names_of_a_log_s_directory_come_back_as_they_were(archive: EventArchive) -> None:
    """They are in the paths of the table's files."""
    log = BusPartition("log", "host:/srv/a b/%41'é[x]{y}=z/log", 3)
    append(archive, records(log, 5, 9))
    assert EventArchive.open(archive.address).next_offsets("log") == {log: 9}
    assert read_all(archive.address) == records(log, 5, 9)


def test_a_range_that_does_not_begin_where_the_archive_ends_is_refused_whole(
    archive: EventArchive, rival: EventArchive
) -> None:
    append(archive, records(FIRST, 0, 10))
    for late in (records(FIRST, 0, 10), records(FIRST, 5, 20), records(FIRST, 11, 20)):
        with pytest.raises(OffsetsTakenError, match=r"partition 0 is archived up to offset 10"):
            append(rival, records(SECOND, 0, 3) + late)
    assert read_all(archive.address) == records(FIRST, 0, 10)


def test_a_commit_between_the_look_and_the_commit_of_another_process_refuses_that(
    archive: EventArchive, rival: EventArchive, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It finds a fence that only looks at the offsets: both processes saw the same ones."""
    append(archive, records(FIRST, 0, 10))
    original, rivals = getattr(table_module, LIBRARY), [records(FIRST, 10, 15)]

    def write(*args: Any, **named: Any) -> None:
        if rivals:
            append(rival, rivals.pop())
        original(*args, **named)

    monkeypatch.setattr(table_module, LIBRARY, write)
    with pytest.raises(OffsetsTakenError, match="up to offset 15, and not to 10"):
        append(archive, records(FIRST, 10, 20))
    assert read_all(archive.address) == records(FIRST, 0, 15)
    rivals.append(records(FIRST, 15, 20))
    append(archive, records(SECOND, 0, 4))  # the other one takes offsets of another partition
    assert in_order(read_all(archive.address)) == {FIRST: records(FIRST, 0, 20), SECOND: records(SECOND, 0, 4)}


def test_many_that_make_an_archive_at_once_make_one(tmp_path: Path) -> None:
    first, second = (EventArchive.create(tmp_path / "archive") for _ in range(2))
    append(first, records(FIRST, 0, 3))
    append(second, records(SECOND, 0, 3))
    assert len(read_all(tmp_path / "archive")) == 6


def test_gaps_are_kept_and_come_again(archive: EventArchive) -> None:
    gap = OffsetGap(FIRST, 3, 5, GapReason.LOG_EXPIRED)
    lost = OffsetGap(SECOND, 7, None, GapReason.LOG_RECREATED)
    append(archive, [*records(FIRST, 0, 3), *records(FIRST, 5, 9)], gap, lost)
    found = missing_offsets(archive, archive.refresh().files)
    assert sorted(found, key=lambda each: each[0].first) == [(gap, "missing"), (lost, "missing")]


def test_another_place_is_refused(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(ConfigurationError, match="isn't empty"):
        EventArchive.create(tmp_path)
    with pytest.raises(ConfigurationError, match="isn't an archive"):
        EventArchive.open(tmp_path)
    with pytest.raises(ConfigurationError, match="isn't a directory"):
        EventArchive.create(tmp_path / "mine.txt")
    DeltaTable.create(str(tmp_path / "other"), TableBuilder(TOPIC).build([]).schema)
    with pytest.raises(ConfigurationError, match="no archive of events"):
        EventArchive.open(tmp_path / "other")


def last_commit(archive: EventArchive) -> Path:
    return max(Path(archive.address, "_delta_log").glob("*.json"))


def test_a_damaged_log_is_refused(archive: EventArchive) -> None:
    append(archive, records(FIRST, 0, 1))
    path = last_commit(archive)
    content = path.read_bytes()
    for damaged in (content[:-10], b"{", b"\xff\xfe"):
        path.write_bytes(damaged)
        with pytest.raises(TerminalError, match="_delta_log"):
            EventArchive.open(archive.address).refresh()


@pytest.mark.parametrize("planted", ["../../{name}", "/{root}/{name}", "file:///{root}/{name}"])
def test_a_log_that_leads_out_of_the_archive_reads_nothing_there(
    archive: EventArchive, tmp_path: Path, planted: str
) -> None:
    """The library keeps to the table's directory: what stands outside isn't found, and nothing of it is shown."""
    append(archive, records(FIRST, 0, 3))
    (file,) = archive.refresh().files
    (tmp_path / "secret.parquet").write_bytes(Path(archive.name_of(file)).read_bytes())
    path = last_commit(archive)
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    (added,) = (line["add"] for line in lines if "add" in line)
    added["path"] = planted.format(name="secret.parquet", root=str(tmp_path).strip("/"))
    path.write_text("\n".join(json.dumps(line) for line in lines))
    with pytest.raises(HeadwaterError, match=r"secret\.parquet"):
        read_all(archive.address)


@pytest.mark.parametrize(
    "damage",
    [damage_page, lambda path: path.write_bytes(path.read_bytes()[:-5]), lambda path: path.write_bytes(b"")],
    ids=["a page", "the footer", "everything"],
)
def test_a_damaged_file_ends_a_replay_with_its_name(
    archive: EventArchive, tmp_path: Path, damage: Callable[[Path], object], capsys: pytest.CaptureFixture[str]
) -> None:
    """It was tried again for ever, or ended with an error of Arrow's."""
    append(archive, records(FIRST, 0, 50))
    (file,) = archive.refresh().files
    path = Path(archive.name_of(file))
    damage(path)
    flags = ["--from", f"archive:{archive.address}", "--accept-loss"]
    assert main(["replay", "--store", str(tmp_path / "store.db"), *flags]) == 1
    error = capsys.readouterr().err
    assert f"{path} is damaged" in error
    assert "`headwater archive verify` lists all that are" in error
    assert main(["archive", "verify", "--archive", archive.address]) == 1


def test_no_flipped_byte_gives_other_records(archive: EventArchive) -> None:
    """Pages have no checksums of their own: it finds those that decode to something else without an error."""
    expected = records(FIRST, 0, 50)
    append(archive, expected)
    (file,) = archive.refresh().files
    path = Path(archive.name_of(file))
    whole, found = path.read_bytes(), list[str]()
    for at in range(4, len(whole) - 8, len(whole) // 97):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 0xFF]) + whole[at + 1 :])
        try:
            assert read_all(archive.address) == expected, "columns that no reader of records needs may be damaged"
        except DamagedFileError as e:
            found.append(str(e))
    assert len(found) > 20
    assert all(str(path) in each for each in found)


def test_a_file_that_is_gone_is_an_error_that_names_it(archive: EventArchive) -> None:
    append(archive, records(FIRST, 0, 1))
    (file,) = archive.refresh().files
    Path(archive.name_of(file)).unlink()
    with pytest.raises(ReplacedFileError, match=file.path):
        read_all(archive.address)
    verification = Verification(archive)
    assert [file] == list(verification.run())
    assert file.path in verification.damages[0].error


def test_a_disk_that_is_full_is_waited_for(archive: EventArchive, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError("No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(table_module, LIBRARY, full)
        with pytest.raises(TransientError, match="No space left"):
            append(archive, records(FIRST, 0, 3))
    append(archive, records(FIRST, 0, 3))
    assert read_all(archive.address) == records(FIRST, 0, 3)
