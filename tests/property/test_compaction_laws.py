"""A compacted journal is read as before: every record, offset and time, wherever a reader or its writer just was."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from headwater.journal import Entry, Fsync, Journal, JournalOptions, JournalReader, Record, StorageError, Tail
from headwater.journal.files import OS_FILES
from headwater.journal.segment import list_bases, read_header, segment_path
from tests.faults.journal_faults import Fault, FaultyFiles
from tests.property.effort import examples

OPTIONS = JournalOptions(fsync=Fsync.NONE, segment_bytes=9000, max_bytes=None, compact_after=0, reserve_bytes=0)
WORDS = st.sampled_from(
    [b"", b"orders", bytes(range(256)), b"lake.sales.orders " * 20, b"\xf5\xc1HB" * 9, b"\xf5\xc1HW" * 9]
)
VALUES = st.one_of(WORDS, st.binary(max_size=90))
HEADERS = st.lists(st.tuples(st.text(max_size=5), st.binary(max_size=9)), max_size=2).map(tuple)
ENTRIES = st.one_of(VALUES, st.builds(Entry, VALUES, st.none() | st.binary(max_size=9), HEADERS))
LOGS = st.lists(st.lists(ENTRIES, min_size=1, max_size=30), min_size=1, max_size=20)
"""Entries, and where segments end beside where they are full."""


@pytest.fixture(autouse=True, scope="module")
def _two_are_merged() -> Iterator[None]:
    """As small logs have few segments."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("headwater.journal.compaction.MERGED_AT_ONCE", 2)
        yield


@contextmanager
def place() -> Generator[Path]:
    directory = Path(tempfile.mkdtemp())
    try:
        yield directory
    finally:
        shutil.rmtree(directory)


def write(directory: Path, log: list[list[bytes | Entry]]) -> list[Record]:
    """What can be read before anything was compacted."""
    with Journal.open(directory, OPTIONS) as journal:
        for entries in log:
            journal.append_many(entries)
            journal.finish_segment(1)
    records = read_from(directory, 0)
    given = [entry if isinstance(entry, Entry) else Entry(entry) for entries in log for entry in entries]
    assert [(each.value, each.key, each.headers) for each in records] == [tuple(each) for each in given]
    return records


def read_from(directory: Path, offset: int, at_once: int = 7) -> list[Record]:
    with JournalReader.open(directory).tail(offset) as tail:
        return rest(tail, at_once)


def rest(tail: Tail, at_once: int) -> list[Record]:
    """What is left to read, of which nothing is lost."""
    found: list[Record] = []
    while batch := tail.read(at_once):
        assert not batch.lost
        assert batch.position == batch.records[-1].offset + 1
        found += batch.records
    return found


def compact(directory: Path, files: FaultyFiles | None = None, pieces: int = 1 << 30) -> int:
    """How many pieces there were to compact."""
    with Journal.open(directory, OPTIONS, files=files or OS_FILES) as journal:
        done = 0
        while done < pieces and (piece := journal.compact()) is not None:
            event(f"of {min(piece.segments, 2)} or more")
            done += 1
        return done


def check_files(directory: Path) -> None:
    """Nothing is left that is of no use to anybody."""
    following = 0
    for base in list_bases(OS_FILES, directory):
        header = read_header(OS_FILES, segment_path(directory, base))
        assert header is not None
        assert base >= following
        following = header.following or 0
    assert not list(directory.glob("*.new"))


@given(LOGS, st.lists(st.integers(0, 400), max_size=5), st.integers(0, 20))
@settings(max_examples=examples(60), deadline=None)
def test_readers_see_what_they_saw(log: list[list[bytes | Entry]], at: list[int], pieces: int) -> None:
    with place() as directory:
        records = write(directory, log)
        positions = sorted({position % (len(records) + 1) for position in at})
        tails = [JournalReader.open(directory).tail(0) for _ in positions]
        seen = [
            list(tail.read(position).records) if position else []
            for tail, position in zip(tails, positions, strict=True)
        ]
        compact(directory, pieces=pieces)
        compact(directory)
        assert read_from(directory, 0) == records
        for position in positions:
            assert read_from(directory, position, 1) == records[position:]
        for tail, before in zip(tails, seen, strict=True):
            with tail:
                assert before + rest(tail, 3) == records
        check_files(directory)
        with Journal.open(directory, OPTIONS) as journal:
            assert journal.append(b"next") == len(records)


@given(
    LOGS,
    st.integers(0, 250),
    st.sampled_from([Fault.NO_ROOM, Fault.IO_ERROR, Fault.LATE_ERROR, Fault.SHORT_THEN_NO_ROOM]),
)
@settings(max_examples=examples(60), deadline=None)
def test_a_disk_that_fails_at_any_call_takes_nothing(log: list[list[bytes | Entry]], at: int, fault: Fault) -> None:
    with place() as directory:
        records = write(directory, log)
        files = FaultyFiles(at, fault)
        try:
            compact(directory, files)
        except StorageError:
            assert files.struck
        assert read_from(directory, 0) == records
        compact(directory)
        assert read_from(directory, 0) == records
        check_files(directory)


@given(LOGS, st.integers(0, 9999), st.integers(1, 255))
@settings(max_examples=examples(60), deadline=None)
def test_damage_to_a_compacted_segment_is_told(log: list[list[bytes | Entry]], at: int, flip: int) -> None:
    """Whatever is damaged, each record comes out as it was or is told as lost, and no other."""
    with place() as directory:
        records = write(directory, log)
        compact(directory)
        paths = sorted(directory.glob("*.segment"))
        path = paths[at % len(paths)]
        data = bytearray(path.read_bytes())
        data[at % len(data)] ^= flip
        path.write_bytes(data)
        left = {record.offset: record for record in records}
        with JournalReader.open(directory).tail(0) as tail:
            while batch := tail.read(5):
                for record in batch.records:
                    assert left.pop(record.offset) == record
                for lost in batch.lost:
                    assert lost.path == path or not lost.path
                    for offset in range(lost.first, lost.following):
                        del left[offset]
        assert not left or path == paths[-1]
