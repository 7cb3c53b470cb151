"""Durable readers: where they go on, who may read, and what becomes of them when files are torn or lost."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

from headwater.journal import (
    ClosedError,
    Cursor,
    CursorError,
    CursorStart,
    Fsync,
    Journal,
    JournalOptions,
    JournalReader,
    JournalRecord,
    LockedError,
    MissingReason,
    OsFiles,
    StorageError,
    remove_journal,
)
from headwater.journal.scan import CHUNK

PLAIN = JournalOptions(fsync=Fsync.NONE, reserve_bytes=0)
DEADLINE = 60.0


def fill(directory: Path, count: int) -> None:
    with Journal.open(directory, PLAIN) as journal:
        for number in range(count):
            journal.append(b"%d" % number)


def test_it_goes_on_where_it_committed(tmp_path: Path) -> None:
    fill(tmp_path, 10)
    reader = JournalReader.open(tmp_path)
    with reader.cursor("c") as cursor:
        assert [record.offset for record in cursor.read(4).records] == [0, 1, 2, 3]
        cursor.commit(3)
    with reader.cursor("c") as cursor:
        assert [record.offset for record in cursor.read(2).records] == [3, 4]
        cursor.rewind()
        assert cursor.position == 3
        assert len(cursor.read().records) == 7
    with Journal.open(tmp_path, PLAIN) as journal, journal.cursor("c") as cursor:
        assert cursor.committed == 3


def test_a_new_one_begins_where_it_is_reported(tmp_path: Path) -> None:
    fill(tmp_path, 10)
    reader = JournalReader.open(tmp_path)
    with reader.cursor("late", start=CursorStart.LATEST) as cursor:
        assert cursor.position == 10
        fill(tmp_path, 1)
        assert [record.offset for record in cursor.read().records] == [10]
    with reader.cursor("late", start=CursorStart.EARLIEST) as cursor:
        assert cursor.position == 10, "it was registered there, though it never committed"
    assert reader.first_offset() == 0
    assert reader.next_offset() == 11


@pytest.mark.parametrize("wrong", [{"max_records": 0}, {"max_bytes": 0}])
def test_a_read_asks_for_something(tmp_path: Path, wrong: dict[str, int]) -> None:
    with JournalReader.open(tmp_path).tail(0) as tail, pytest.raises(ValueError, match="at least 1"):
        tail.read(**wrong)


def test_one_reader_for_each_name(tmp_path: Path) -> None:
    with Journal.open(tmp_path, PLAIN) as journal, journal.cursor("c"):
        with pytest.raises(LockedError, match="cursor 'c'"):
            journal.cursor("c")
        with pytest.raises(LockedError):
            JournalReader.open(tmp_path).cursor("c")
        with pytest.raises(LockedError):
            journal.forget_cursor("c")
        with journal.cursor("d"):
            pass


@pytest.mark.parametrize("name", ["", "a/b", "..", "ä", "x" * 101, ".hidden"])
def test_a_name_is_a_file_name(tmp_path: Path, name: str) -> None:
    with Journal.open(tmp_path, PLAIN) as journal, pytest.raises(CursorError, match="letters"):
        journal.cursor(name)


def test_only_what_was_read_can_be_committed(tmp_path: Path) -> None:
    fill(tmp_path, 5)
    with JournalReader.open(tmp_path).cursor("c") as cursor:
        cursor.read(3)
        with pytest.raises(CursorError, match="read up to 3"):
            cursor.commit(4)
        cursor.commit(2)
        with pytest.raises(CursorError, match="committed 2"):
            cursor.commit(1)
        cursor.commit(2)


def positions_of(directory: Path) -> list[Path]:
    """The two files of cursor c, the newer one first."""
    return sorted((directory / "cursors").glob("c.position*"), key=lambda path: path.read_bytes()[8:16], reverse=True)


@pytest.mark.parametrize("damage", [b"", b"HWCRSR", bytes(28), b"\xff" * 28])
def test_a_torn_position_falls_back_to_the_one_before(tmp_path: Path, damage: bytes) -> None:
    fill(tmp_path, 10)
    reader = JournalReader.open(tmp_path)
    with reader.cursor("c") as cursor:
        cursor.read()
        cursor.commit(4)
        cursor.commit(7)
    newer, older = positions_of(tmp_path)
    newer.write_bytes(damage)
    with reader.cursor("c") as cursor:
        assert cursor.committed == 4
    older.write_bytes(damage)
    with reader.cursor("c") as cursor:
        assert cursor.committed == 0, "with neither, everything is read again"
        cursor.read()
        cursor.commit(9)
    with reader.cursor("c") as cursor:
        assert cursor.committed == 9


def test_damaged_positions_keep_everything(tmp_path: Path) -> None:
    options = JournalOptions(fsync=Fsync.NONE, segment_bytes=500, drop_consumed=True, reserve_bytes=0)
    with Journal.open(tmp_path, options) as journal:
        for number in range(30):
            journal.append(b"%099d" % number)
        with journal.cursor("c"), journal.cursor("other") as other:
            while other.read():
                pass
            for path in (tmp_path / "cursors").glob("c.position*"):
                path.write_bytes(b"torn")
            other.commit(other.position)
            journal.trim()
            assert journal.first_offset == 0


def test_offsets_that_a_cursor_has_committed_are_not_given_again(tmp_path: Path) -> None:
    fill(tmp_path, 10)
    with JournalReader.open(tmp_path).cursor("ahead") as cursor:
        cursor.read()
        cursor.commit(10)
    with JournalReader.open(tmp_path).cursor("behind") as cursor:
        cursor.read(2)
        cursor.commit(2)
    (segment,) = tmp_path.glob("*.segment")
    with segment.open("r+b") as file:  # what a power cut does to records that no fsync has covered
        file.truncate(40 + 6 * 37)
    with Journal.open(tmp_path, PLAIN) as journal:
        assert journal.append(b"after") == 10
        with journal.cursor("ahead") as cursor:
            assert [record.value for record in cursor.read().records] == [b"after"]
        with journal.cursor("behind") as cursor:
            assert [record.offset for record in cursor.read().records] == [2, 3, 4, 5]
            batch = cursor.read()
            (lost,) = batch.missing
            assert (lost.first, lost.end_offset, lost.reason, lost.path) == (6, 10, MissingReason.MISSING, segment)
            assert [record.value for record in batch.records] == [b"after"]


def test_damage_in_the_middle_skips_only_what_is_damaged(tmp_path: Path) -> None:
    fill(tmp_path, 10)
    (segment,) = tmp_path.glob("*.segment")
    data = bytearray(segment.read_bytes())
    start = 40 + 4 * 37
    data[start + 8] ^= 0x40  # the length of record 4
    segment.write_bytes(data)
    with JournalReader.open(tmp_path).tail(0) as tail:
        assert [record.offset for record in tail.read().records] == [0, 1, 2, 3]
        batch = tail.read()
    (lost,) = batch.missing
    assert (lost.first, lost.end_offset, lost.reason) == (4, 5, MissingReason.CORRUPT)
    assert (lost.path, lost.start, lost.end) == (segment, start, start + 37)
    assert [record.offset for record in batch.records] == [5, 6, 7, 8, 9]


class StaleFiles(OsFiles):
    """One read of a chunk, by its number, shows one byte as it was before a writer finished."""

    def __init__(self, number: int, position: int) -> None:
        self._left, self._position = number, position

    def read(self, descriptor: int, count: int, position: int) -> bytes:
        data = bytearray(super().read(descriptor, count, position))
        self._left -= count == CHUNK
        if count == CHUNK and self._left == 0:
            data[self._position - position] ^= 0xFF
        return bytes(data)


def test_a_record_seen_half_written_is_no_damage(tmp_path: Path) -> None:
    fill(tmp_path, 4)
    with JournalReader.open(tmp_path, files=StaleFiles(2, 40 + 37 + 30)).tail(0) as tail:
        assert [record.offset for record in tail.read(1).records] == [0]
        assert not tail.read(), "record 1 looked half written, though record 2 stood behind it"
        batch = tail.read()
    assert not batch.missing
    assert [record.offset for record in batch.records] == [1, 2, 3]


def test_a_record_seen_half_written_behind_damage_is_not_skipped(tmp_path: Path) -> None:
    fill(tmp_path, 4)
    (segment,) = tmp_path.glob("*.segment")
    data = bytearray(segment.read_bytes())
    data[40 + 37 + 30] ^= 1
    segment.write_bytes(data)
    with JournalReader.open(tmp_path, files=StaleFiles(3, 40 + 2 * 37)).tail(0) as tail:
        assert [record.offset for record in tail.read(1).records] == [0]
        batch = tail.read()
    assert [(lost.first, lost.end_offset) for lost in batch.missing] == [(1, 2)]
    assert [record.offset for record in batch.records] == [2, 3]


def test_a_journal_within_a_value_never_comes_out(tmp_path: Path) -> None:
    fill(tmp_path / "inner", 50)
    inner = next((tmp_path / "inner").glob("*.segment")).read_bytes()
    with Journal.open(tmp_path / "outer", PLAIN) as journal:
        journal.append(inner)
        journal.append(inner[40:])
        journal.append(b"last")
    (segment,) = (tmp_path / "outer").glob("*.segment")
    data = bytearray(segment.read_bytes())
    data[40] ^= 1
    data[40 + 36 + len(inner) + 20] ^= 1
    segment.write_bytes(data)
    with JournalReader.open(tmp_path / "outer").tail(0) as tail:
        batch = tail.read()
        assert [record.value for record in batch.records] == [b"last"]
        assert [(lost.first, lost.end_offset) for lost in batch.missing] == [(0, 2)]


@pytest.mark.parametrize("within", [True, False], ids=["in the writer's process", "by looking"])
def test_a_waiting_reader_wakes(tmp_path: Path, within: bool) -> None:
    with Journal.open(tmp_path, PLAIN) as journal:
        got: list[JournalRecord] = []
        source = journal if within else JournalReader.open(tmp_path)
        with source.cursor("c") as cursor:

            def read() -> None:
                while len(got) < 50:
                    got.extend(cursor.read(timeout=DEADLINE).records)

            thread = threading.Thread(target=read)
            thread.start()
            for number in range(50):
                journal.append(b"%d" % number)
                while within and len(got) <= number:  # it wakes for each
                    time.sleep(0)
            thread.join(DEADLINE)
            assert [record.offset for record in got] == list(range(50))


def test_a_reader_comes_back_when_its_time_is_over_or_it_is_closed(tmp_path: Path) -> None:
    with Journal.open(tmp_path, PLAIN) as journal:
        for cursor in (journal.cursor("a"), JournalReader.open(tmp_path).cursor("b")):
            assert not cursor.read(timeout=0.02)
            reported = threading.Event()
            thread = threading.Thread(target=read_until_closed, args=(cursor, reported))
            thread.start()
            cursor.close()
            assert reported.wait(DEADLINE)
            thread.join(DEADLINE)


def read_until_closed(cursor: Cursor, reported: threading.Event) -> None:
    try:
        cursor.read(timeout=DEADLINE)
    except ClosedError:
        reported.set()


def test_a_journal_that_is_not_there_yet(tmp_path: Path) -> None:
    reader = JournalReader.open(tmp_path / "later")
    assert (reader.first_offset(), reader.next_offset()) == (0, 0)
    with reader.tail(0) as tail:
        assert not tail.read()
        fill(tmp_path / "later", 2)
        assert len(tail.read().records) == 2


def test_a_journal_that_was_removed_does_not_come_back(tmp_path: Path) -> None:
    """As a dead driver's shipper does that begins after another one has delivered the spool."""
    fill(directory := tmp_path / "spool", 2)
    reader = JournalReader.open(directory)
    remove_journal(directory)
    with pytest.raises(StorageError, match="it isn't there: whoever read it to its end may have removed it"):
        reader.cursor("late")
    assert list(tmp_path.iterdir()) == []


def test_where_the_writer_is_here_nothing_is_looked_for_that_it_knows_is_not_there(tmp_path: Path) -> None:
    """A reader at the end costs a driver nothing: seen was a look at the directory for each wait and each event."""
    looks: list[str] = []

    class Counted(OsFiles):
        def names(self, directory: Path) -> list[str]:
            looks.append("names")
            return super().names(directory)

        def read(self, descriptor: int, count: int, position: int) -> bytes:
            looks.append("read")
            return super().read(descriptor, count, position)

    with Journal.open(tmp_path, PLAIN, files=Counted()) as journal, journal.cursor("c") as cursor:
        for number in range(3):
            journal.append(b"%d" % number)
            assert [record.offset for record in cursor.read(timeout=DEADLINE).records] == [number]
            looks.clear()
            assert not cursor.read()
            assert not cursor.read(timeout=0.25), "it waits in several steps"
            assert looks == []
        journal.close()
        assert not cursor.read()
        assert looks, "once it is closed another one may append"
