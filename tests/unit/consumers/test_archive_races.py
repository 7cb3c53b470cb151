"""Two processes on one archive, between the steps of one of them: no record is lost, and none is there twice.

What the operating system may do between two steps is done here by hand, at that step.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from pyarrow import parquet

from headwater.consumers.archive import directory, exchange, upkeep
from headwater.consumers.archive.directory import PENDING, ParquetArchive
from headwater.consumers.archive.state import ArchiveFile
from tests.kit.archive.records import DAY, FIRST, NOON, append, in_order, read_all, records

Call = Callable[..., Any]


@pytest.fixture
def archive(tmp_path: Path) -> ParquetArchive:
    """Of several commits of one day."""
    archive = ParquetArchive.create(tmp_path / "archive")
    for at in range(0, 40, 10):
        append(archive, records(FIRST, at, at + 10))
    return archive


@pytest.fixture
def rival(archive: ParquetArchive) -> ParquetArchive:
    """The same archive in another process."""
    return ParquetArchive.create(archive.directory)


def files_of(archive: ParquetArchive) -> list[ArchiveFile]:
    """The files of one kind, in their order."""
    return sorted((each for each in archive.refresh().files.values() if each.kind == "Committed"), key=lambda f: f.name)


def at_first_call(
    patched: pytest.MonkeyPatch, owner: Any, name: str, work: Callable[[Call, Sequence[Any]], Any]
) -> None:
    """Replace the first call of a function."""
    original: Call = getattr(owner, name)
    calls: list[int] = []

    def replaced(*args: Any, **named: Any) -> Any:
        calls.append(1)
        return original(*args, **named) if len(calls) > 1 else work(original, args)

    patched.setattr(owner, name, replaced)


def listed(archive: ParquetArchive) -> list[int]:
    """The offsets in all files of the directory."""
    return sorted(
        offset
        for each in archive.directory.glob("events/*/*/*.parquet")
        for offset in parquet.ParquetFile(each).read(["offset"])["offset"].to_pylist()
    )


def assert_whole(archive: ParquetArchive, count: int) -> None:
    """Nothing is lost, neither for the readers of the log nor for who lists the directory, and nothing waits."""
    assert in_order(read_all(archive.directory)) == {FIRST: records(FIRST, 0, count)}
    assert listed(archive) == list(range(count))
    assert list((archive.directory / PENDING).iterdir()) == []


def while_published(patched: pytest.MonkeyPatch, name: str, work: Callable[[Call, Sequence[Any]], Any]) -> None:
    """Replace the first call of a function of `os` while a committed file is brought to its place."""

    def publish(original: Call, args: Sequence[Any]) -> None:
        at_first_call(patched, os, name, work)
        original(*args)

    at_first_call(patched, directory, "publish_file", publish)


def test_a_file_that_comes_into_a_directory_which_was_exchanged_meanwhile(
    archive: ParquetArchive, rival: ParquetArchive, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The system finds a directory by its name, and puts the file into it only when the rival has looked through it for
    the last time and is about to remove it."""
    group = files_of(rival)

    def link(original: Call, args: Sequence[Any]) -> None:
        waiting, place = map(Path, args)
        found = os.open(place.parent, os.O_RDONLY)

        def remove(rmtree: Call, of_rival: Sequence[Any]) -> None:
            original(waiting, place.name, dst_dir_fd=found)
            rmtree(*of_rival)

        at_first_call(monkeypatch, shutil, "rmtree", remove)
        upkeep.merge_files(rival, group)
        os.close(found)

    while_published(monkeypatch, "link", link)
    append(archive, records(FIRST, 40, 50))
    assert len(files_of(archive)) == 2
    assert_whole(archive, 50)


def test_a_directory_that_expiry_removed_just_before_a_file_comes_into_it(
    archive: ParquetArchive, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody else's last file of that day and kind has expired: the directory is made again."""

    def link(original: Call, args: Sequence[Any]) -> None:
        place = Path(args[1]).parent
        shutil.rmtree(place)
        place.parent.rmdir()
        original(*args)

    while_published(monkeypatch, "link", link)
    append(archive, records(FIRST, 40, 50, time=NOON + DAY))
    assert in_order(read_all(archive.directory)) == {
        FIRST: records(FIRST, 0, 40) + records(FIRST, 40, 50, time=NOON + DAY)
    }
    assert listed(archive) == list(range(50))
    assert list((archive.directory / PENDING).iterdir()) == []


def test_a_file_that_was_replaced_before_it_came_to_its_place(
    archive: ParquetArchive, rival: ParquetArchive, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rival has exchanged the directory, and finds nothing left to remove: the file comes just then."""

    def link(original: Call, args: Sequence[Any]) -> None:
        def erase(erase_pending: Call, of_rival: Sequence[Any]) -> None:
            original(*args)
            erase_pending(*of_rival)

        at_first_call(monkeypatch, ParquetArchive, "_erase_pending", erase)
        upkeep.merge_files(rival, files_of(rival))
        original(*args)

    while_published(monkeypatch, "link", link)
    append(archive, records(FIRST, 40, 50))
    assert len(files_of(archive)) == 1
    assert_whole(archive, 50)


def test_two_processes_that_exchange_the_same_directory_at_once(
    archive: ParquetArchive, rival: ParquetArchive, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The directory that comes second was made of what stood in the one before the first."""
    one, two, three, four = files_of(archive)

    def exchange_both(original: Call, args: Sequence[Any]) -> bool:
        upkeep.merge_files(rival, [three, four])
        return bool(original(*args))

    at_first_call(monkeypatch, exchange, "_exchange", exchange_both)
    upkeep.merge_files(archive, [one, two])
    assert len(files_of(archive)) == 2
    assert_whole(archive, 40)
