"""An archive as a source: records as they came, in the order of their offsets, from any offset on."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from headwater.cli import main
from headwater.consumers.archive.directory import ParquetArchive
from headwater.consumers.sources import BusRecord, EventSource, OffsetGap
from headwater.consumers.sources.archive import ArchiveSource
from headwater.errors import TerminalError
from headwater.events.health import GapReason
from tests.kit.archive.records import DAY, FIRST, NOON, SECOND, TOPIC, append, in_order, read_all, records

pytestmark = pytest.mark.slow


@pytest.fixture
def archive(tmp_path: Path) -> ParquetArchive:
    """Of three commits, over two days and two partitions."""
    archive = ParquetArchive.create(tmp_path / "archive")
    append(archive, records(FIRST, 0, 50) + records(SECOND, 100, 120))
    append(archive, records(SECOND, 120, 160) + records(FIRST, 50, 60))
    append(archive, records(FIRST, 60, 200, time=NOON + DAY) + records(SECOND, 160, 161))
    return archive


EXPECTED = {
    FIRST: records(FIRST, 0, 60) + records(FIRST, 60, 200, time=NOON + DAY),
    SECOND: records(SECOND, 100, 161),
}


@pytest.mark.parametrize("most", [1, 7, 1_000])
def test_all_records_come_in_order(archive: ParquetArchive, most: int) -> None:
    assert in_order(read_all(archive.directory, most=most)) == EXPECTED


def test_reading_begins_at_the_offsets_that_a_store_has(archive: ParquetArchive) -> None:
    found = in_order(
        read_all(archive.directory, lambda cluster: {FIRST: 57, SECOND: 161} if cluster == "cluster" else {})
    )
    assert found == {FIRST: EXPECTED[FIRST][57:]}


def test_a_group_goes_on_where_it_confirmed(archive: ParquetArchive) -> None:
    source: EventSource = ArchiveSource(archive.directory, "group", None)
    first = source.poll(83, 0)
    source.done(first.next)
    source.poll(10, 0)
    again = ArchiveSource(archive.directory, "group", None)
    rest: list[BusRecord] = []
    while batch := again.poll(50, 0):
        rest += batch.records
    assert in_order([*first.records, *rest]) == EXPECTED
    assert in_order(read_all(archive.directory)) == EXPECTED  # another group has its own


def test_rewinding_goes_back_to_what_was_confirmed(archive: ParquetArchive) -> None:
    source = ArchiveSource(archive.directory, "group", None)
    first = source.poll(83, 0)
    source.rewind()
    assert source.poll(83, 0) == first


def test_what_is_archived_meanwhile_comes_too(archive: ParquetArchive) -> None:
    source = ArchiveSource(archive.directory, "group", None)
    assert source.lag() == 261
    while source.poll(100, 0).records:
        pass
    assert source.lag() == 0
    append(archive, records(FIRST, 200, 210))
    assert source.lag() == 10
    assert list(source.poll(100, 5).records) == records(FIRST, 200, 210)


def test_gaps_are_reported_with_their_ends(archive: ParquetArchive) -> None:
    gap = OffsetGap(SECOND, 161, 170, GapReason.LOG_EXPIRED)
    append(archive, records(SECOND, 161, 161) + records(FIRST, 200, 201), gap)
    source = ArchiveSource(archive.directory, "group", lambda _: {FIRST: 200, SECOND: 161})
    assert source.poll(10, 0).gaps == (gap,)


def test_it_names_the_bus_that_the_records_came_from(archive: ParquetArchive) -> None:
    source = ArchiveSource(archive.directory, "group", None)
    assert (source.kind, source.topic) == ("kafka", TOPIC)


def flip(data: bytes) -> bytes:
    """A byte of the first page is another."""
    return data[:60] + bytes([data[60] ^ 0xFF]) + data[61:]


@pytest.mark.parametrize(
    "damage", [flip, lambda data: data[:-5], lambda _: b""], ids=["a page", "the footer", "everything"]
)
def test_a_damaged_file_ends_a_replay_with_its_name(
    archive: ParquetArchive, tmp_path: Path, damage: Callable[[bytes], bytes], capsys: pytest.CaptureFixture[str]
) -> None:
    """It was tried again for ever, or ended with an error of Arrow's."""
    file = next((archive.directory / "events").rglob("*.parquet"))
    file.write_bytes(damage(file.read_bytes()))
    flags = ["--from", f"archive:{archive.directory}", "--accept-loss"]
    assert main(["replay", "--store", str(tmp_path / "store.db"), *flags]) == 1
    error = capsys.readouterr().err
    assert f"{file} is damaged" in error
    assert "`headwater archive verify` lists all that are" in error
    assert main(["archive", "verify", "--archive", str(archive.directory)]) == 1


@pytest.mark.parametrize(
    "path", ["../../x.parquet", "events/day=2026-01-01/kind=x/../../{name}", "/etc/{name}", "{name}"]
)
def test_a_log_that_leads_out_of_the_archive_is_refused(archive: ParquetArchive, path: str) -> None:
    commit = max((archive.directory / "_log").glob("*.json"))
    content = json.loads(commit.read_text())
    content["add"][0]["path"] = path.format(name=content["add"][0]["path"].rpartition("/")[2])
    commit.write_text(json.dumps(content))
    with pytest.raises(TerminalError, match="which no file of an archive is called"):
        ParquetArchive.open(archive.directory).refresh()
