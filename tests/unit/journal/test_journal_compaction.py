"""Compaction seen from outside: what becomes smaller, what is left alone, who is disturbed, who is told what."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path
from zlib import crc32

import pytest

from headwater.journal import (
    ClosedError,
    Compacted,
    Entry,
    FormatError,
    Fsync,
    Journal,
    JournalOptions,
    JournalReader,
    LocalLog,
    Lost,
    OsFiles,
    Record,
    Tail,
    Why,
)
from headwater.journal.files import OS_FILES
from headwater.journal.segment import read_header
from tests.descriptors import open_below
from tests.faults.journal_faults import FaultyFiles

HEADERS = (("kind", b"Committed"), ("producer", b"0192d1a5-7b1c-7c3a-9d55-1f2e3d4c5b6a"))


def options(**changed: object) -> JournalOptions:
    given: dict[str, object] = {
        "fsync": Fsync.NONE,
        "segment_bytes": 20_000,
        "max_bytes": None,
        "compact_after": 0,
        "reserve_bytes": 0,
    }
    return JournalOptions(**{**given, **changed})  # type: ignore[arg-type] # checked by its validation


def entry(number: int) -> Entry:
    """As long and as like each other as events are."""
    return Entry(b"lake.sales.orders wrote snapshot %d " % number * 15, b"job", HEADERS)


def fill(journal: Journal, count: int = 300) -> None:
    first = journal.next_offset
    journal.append_many([entry(first + number) for number in range(count)])


def compact(journal: Journal) -> list[Compacted]:
    return list(iter(journal.compact, None))


def read_all(tail: Tail, at_once: int = 50) -> list[Record]:
    found: list[Record] = []
    while batch := tail.read(at_once):
        assert not batch.lost
        found += batch.records
    return found


def read_from(directory: Path, offset: int = 0) -> list[Record]:
    with JournalReader.open(directory).tail(offset) as tail:
        return read_all(tail)


def compacted_in(directory: Path) -> list[bool]:
    """Of each segment, the oldest first."""
    headers = [read_header(OS_FILES, path) for path in sorted(directory.glob("*.segment"))]
    return [header is not None and header.following is not None for header in headers]


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    """With ten segments and more."""
    journal = Journal.open(tmp_path, options())
    fill(journal)
    return journal


def test_closed_segments_take_a_fraction_and_hold_the_same(journal: Journal) -> None:
    before, size = read_from(journal.directory), journal.size
    with journal:
        done = compact(journal)
        assert {each.segments for each in done} == {1, len(done) - 1}, "each alone, and then all into one"
        assert journal.size < size / 5
        assert sum(path.stat().st_size for path in journal.directory.glob("*.segment")) == journal.size
        assert read_from(journal.directory) == before
        assert compact(journal) == []
    assert compacted_in(journal.directory) == [True, False]


def test_what_is_written_to_stays(tmp_path: Path) -> None:
    with Journal.open(tmp_path, options()) as journal:
        fill(journal, 5)
        assert compact(journal) == []


def test_young_segments_stay(tmp_path: Path) -> None:
    now = 1_000_000
    with Journal.open(tmp_path, options(compact_after=60, clock=lambda: now)) as journal:
        fill(journal)
        now += 59_000_000
        assert compact(journal) == []
        now += 2_000_000
        assert compact(journal)


def test_without_the_option_nothing_is_compacted(tmp_path: Path) -> None:
    with Journal.open(tmp_path, options(compact_after=None)) as journal:
        fill(journal)
        assert compact(journal) == []


def test_neighbours_that_would_keep_each_other_from_growing_old_stay_apart(tmp_path: Path) -> None:
    now = 1_000_000
    with Journal.open(tmp_path, options(max_age=80, clock=lambda: now)) as journal:
        for _ in range(10):
            now += 2_000_000
            fill(journal, 30)
            journal.finish_segment(1)
        assert all(each.segments == 1 for each in compact(journal))


def test_what_would_not_get_smaller_stays(tmp_path: Path) -> None:
    import random

    noise = random.Random(1)
    with Journal.open(tmp_path, options()) as journal:
        for _ in range(100):
            journal.append(noise.randbytes(600))
        before = {path: path.stat().st_mtime_ns for path in tmp_path.glob("*.segment")}
        assert compact(journal) == []
    assert {path: path.stat().st_mtime_ns for path in tmp_path.glob("*.segment")} == before


def test_a_reader_that_has_an_old_file_open_reads_on(journal: Journal) -> None:
    """In the first, a middle and the last segment, and at ends of segments, where the next one may be gone."""
    before = read_from(journal.directory)
    tails = [(count, JournalReader.open(journal.directory).tail(0)) for count in range(1, len(before), 7)]
    seen = [[record for _ in range(count) for record in tail.read(1).records] for count, tail in tails]
    with journal:
        while journal.compact():
            for (_, tail), found in zip(tails[::9], seen[::9], strict=True):
                found.extend(tail.read(1).records)
        for (_, tail), found in zip(tails, seen, strict=True):
            with tail:
                assert found + read_all(tail) == before


def test_cursors_stay_where_they_are(journal: Journal) -> None:
    with journal, journal.cursor("group") as cursor:
        taken = cursor.read(111).position
        cursor.commit(taken)
        compact(journal)
        cursor.rewind()
        assert cursor.read(1).records[0].offset == taken
    with JournalReader.open(journal.directory).cursor("group") as cursor:
        assert cursor.read(1).records[0].offset == taken


def test_a_blocks_records_are_handed_out_as_they_are_asked_for(journal: Journal) -> None:
    with journal:
        before = read_from(journal.directory)
        compact(journal)
        with JournalReader.open(journal.directory).tail(0) as tail:
            assert [len(tail.read(count).records) for count in (1, 7, 2)] == [1, 7, 2]
            assert len(tail.read(1000, max_bytes=1500).records) == 3
            assert tail.position == 13
            assert read_all(tail) == before[13:]


@pytest.mark.parametrize("where", ["end", "middle", "header"])
def test_a_damaged_segment_stays_so_that_everybody_is_told_the_same(journal: Journal, where: str) -> None:
    with journal:
        victim = sorted(journal.directory.glob("*.segment"))[3]
        data = bytearray(victim.read_bytes())
        data[{"end": len(data) - 1, "middle": 9_000, "header": 20}[where]] ^= 1
        victim.write_bytes(data)
        before = told(journal.directory)
        compact(journal)
        assert victim.read_bytes() == bytes(data)
        assert told(journal.directory) == before


def told(directory: Path) -> tuple[list[Record], list[Lost]]:
    records: list[Record] = []
    lost: list[Lost] = []
    with JournalReader.open(directory).tail(0) as tail:
        while batch := tail.read():
            records += batch.records
            lost += batch.lost
    return records, lost


def test_what_of_a_compacted_segment_is_cut_off_is_told(journal: Journal) -> None:
    """The end of one is no torn record: it was complete before it had its name."""
    before = read_from(journal.directory)
    with journal:
        compact(journal)
    victim, last = sorted(journal.directory.glob("*.segment"))
    victim.write_bytes(victim.read_bytes()[:-1])
    records, lost = told(journal.directory)
    assert {each.why for each in lost} == {Why.CORRUPT}
    missing = {offset for each in lost for offset in range(each.first, each.following)}
    assert [record for record in before if record.offset not in missing] == records
    last.unlink()
    with Journal.open(journal.directory, options()) as again:
        assert again.append(b"next") >= len(before) - 40
        assert again.append(b"next") > max(missing)
        assert told(journal.directory)[1][0].first == lost[0].first


def test_a_block_that_is_damaged_costs_its_records_alone(tmp_path: Path) -> None:
    with Journal.open(tmp_path, options(segment_bytes=1_000_000)) as journal:
        fill(journal, 900)
        journal.finish_segment(1)
        before = read_from(tmp_path)
        assert compact(journal)
        victim = min(tmp_path.glob("*.segment"))
        data = bytearray(victim.read_bytes())
        data[len(data) // 2] ^= 1
        victim.write_bytes(data)
        records, (lost,) = told(tmp_path)
        assert 0 < lost.first < lost.following < 900
        assert records == before[: lost.first] + before[lost.following :]
        for begin in (0, lost.first - 1, lost.first, lost.first + 1, lost.following - 1, lost.following):
            with JournalReader.open(tmp_path).tail(begin) as tail:
                batch = tail.read(1)
                while begin < lost.following and not batch.lost:
                    batch = tail.read(1000)
            assert all(each.following == lost.following for each in batch.lost)


def test_an_interrupted_merging_is_tidied_up(journal: Journal) -> None:
    """Between the new segment's getting its name and the going of those that it was made of."""
    before = read_from(journal.directory)
    left: dict[Path, bytes] = {}
    with journal:
        while (done := journal.compact()) is not None and done.segments == 1:
            left = {path: path.read_bytes() for path in sorted(journal.directory.glob("*.segment"))[1:-1]}
    for path, data in left.items():
        path.write_bytes(data)
    for begin in range(0, len(before), 13):
        assert read_from(journal.directory, begin) == before[begin:]
    with Journal.open(journal.directory, options()) as again:
        assert len(list(journal.directory.glob("*.segment"))) == 2
        assert read_from(journal.directory) == before
        assert again.next_offset == len(before)


def test_a_compacted_segment_is_never_written_to(journal: Journal) -> None:
    """Though it may come to be the last one: a power cut took the file behind it."""
    before = read_from(journal.directory)
    with journal:
        compact(journal)
    compacted, last = sorted(journal.directory.glob("*.segment"))
    kept, held = compacted.read_bytes(), int(last.name[:20])
    last.unlink()
    with Journal.open(journal.directory, options()) as again:
        assert again.append(b"next") == held
    assert compacted.read_bytes() == kept
    assert [record.value for record in read_from(journal.directory)] == [each.value for each in before[:held]] + [
        b"next"
    ]


class Watched(OsFiles):
    """Writes down what is done, in its order."""

    def __init__(self) -> None:
        self.done: list[tuple[str, str]] = []

    def sync(self, descriptor: int) -> None:
        self.done.append(("sync", Path(f"/proc/self/fd/{descriptor}").readlink().name))
        super().sync(descriptor)

    def rename(self, source: Path, target: Path) -> None:
        self.done.append(("rename", source.name))
        super().rename(source, target)

    def remove(self, path: Path) -> None:
        self.done.append(("remove", path.name))
        super().remove(path)


def test_nothing_goes_before_what_replaces_it_is_on_the_disk(journal: Journal) -> None:
    """The file before it has its name, and the name before others go; whatever `fsync` says."""
    journal.close()
    files, new = Watched(), ""
    with Journal.open(journal.directory, options(), files=files) as again:
        while (done := again.compact()) is not None and done.segments == 1:
            new = min(journal.directory.glob("*.segment")).name + ".new"
            files.done.clear()
    assert done is not None
    removed = [("remove", name) for what, name in files.done if what == "remove" and name.endswith(".segment")]
    assert len(removed) == done.segments - 1
    steps = [("sync", new), ("rename", new), ("sync", journal.directory.name), *removed]
    assert [each for each in files.done if each in steps] == steps


def test_segments_that_are_dropped_meanwhile_stay_dropped(tmp_path: Path) -> None:
    with Journal.open(tmp_path, options(max_bytes=100_000)) as journal:
        fill(journal, 100)

        asked = 0

        def drop_it() -> bool:
            nonlocal asked
            asked += 1
            if asked == 1:
                fill(journal, 130)
                journal.trim()
            return True

        first = journal.first_offset
        assert journal.compact(drop_it) is not None, "the next one that is there"
        assert journal.first_offset > first
        bases = sorted(int(path.name[:20]) for path in tmp_path.glob("*.segment"))
        assert bases[0] == journal.first_offset
        assert [record.offset for record in read_from(tmp_path, bases[0])] == list(range(bases[0], journal.next_offset))
        assert not list(tmp_path.glob("*.new"))


def test_limits_count_what_is_left_of_compacted_segments(tmp_path: Path) -> None:
    with Journal.open(tmp_path, options(max_bytes=200_000)) as journal:
        for _ in range(40):
            fill(journal, 30)
            compact(journal)
        assert journal.first_offset == 0, "seven hundred kilobytes of records are a tenth of that now"
        assert len(read_from(tmp_path)) == 1200


def test_closing_ends_a_compaction_and_waits_for_it(journal: Journal) -> None:
    entered, released = threading.Event(), threading.Event()

    def may_go_on() -> bool:
        entered.set()
        return released.wait(60)

    results: list[Compacted | None] = []
    worker = threading.Thread(target=lambda: results.append(journal.compact(may_go_on)))
    worker.start()
    assert entered.wait(60)
    assert not journal.close(0.05), "while it may still write, nobody else may"
    with pytest.raises(Exception, match="in use"):
        Journal.open(journal.directory)
    released.set()
    worker.join(60)
    assert results == [None]
    assert journal.close(20)
    with pytest.raises(ClosedError):
        journal.compact()
    assert not list(journal.directory.glob("*.new"))
    assert len(read_from(journal.directory)) == 300


def test_it_stops_when_told_and_leaves_nothing(journal: Journal) -> None:
    with journal:
        before = sorted(path.name for path in journal.directory.iterdir())
        assert journal.compact(lambda: False) is None
        assert sorted(path.name for path in journal.directory.iterdir()) == before


def test_descriptors_are_given_back(journal: Journal) -> None:
    with journal:
        before = len(open_below(journal.directory))
        assert before
        answers = iter([True] * 5 + [False])
        journal.compact(lambda: next(answers))
        assert compact(journal)
        assert len(open_below(journal.directory)) == before


OLD_READER = """
import sys
from headwater.journal import segment
segment.COMPACTED = 77  # as a version that knows none
from headwater.journal import *
try:
    with JournalReader.open(sys.argv[1]).tail(0) as tail:
        tail.read()
except FormatError as error:
    print("reader:", error)
try:
    Journal.open(sys.argv[1])
except FormatError as error:
    print("writer:", error)
"""


def test_a_version_that_knows_no_blocks_says_so(journal: Journal) -> None:
    with journal:
        compact(journal)
    done = subprocess.run(
        [sys.executable, "-c", OLD_READER, str(journal.directory)], capture_output=True, text=True, check=True
    )
    reader, writer = done.stdout.splitlines()
    assert reader.startswith("reader: ")
    assert writer.startswith("writer: ")
    assert "has format 2" in reader
    assert "use the version that wrote it" in writer


def test_blocks_that_are_packed_in_an_unknown_way(journal: Journal) -> None:
    """By a later version, which needn't change the segment's."""
    with journal:
        compact(journal)
    path = min(journal.directory.glob("*.segment"))
    data = bytearray(path.read_bytes())
    data[40 + 34] = 9
    size = 36 + int.from_bytes(data[48:52], "little")
    seed = (crc32((0).to_bytes(8, "little"), 0x48_57_4A_31) + 40) & 0xFFFFFFFF
    data[44:48] = crc32(data[48 : 40 + size], seed).to_bytes(4, "little")
    path.write_bytes(data)
    with JournalReader.open(journal.directory).tail(0) as tail, pytest.raises(FormatError, match="packed in way 9"):
        tail.read()


class TestOfALog:
    @pytest.fixture
    def log(self, tmp_path: Path) -> LocalLog:
        return LocalLog.open(tmp_path, options(segment_bytes=100_000))

    def left_by(self, log: LocalLog, writers: int, count: int) -> list[list[Record]]:
        journals = [log.writer() for _ in range(writers)]
        for journal in journals:
            fill(journal, count)
            journal.close()
        return [read_from(journal.directory) for journal in journals]

    @pytest.mark.slow
    def test_partitions_without_a_writer_are_compacted_to_their_end(self, log: LocalLog) -> None:
        records = self.left_by(log, 3, 500)
        with log.writer() as busy:
            done = log.tend()
            assert compacted_in(busy.directory)[-2:] == [False, False], "its writer does it"
        assert done.dropped == 0
        left = [log.directory / name for name in log.partitions()]
        assert all(compacted_in(each)[:-1] == [True] * (len(compacted_in(each)) - 1) for each in left[1:])
        assert [read_from(each) for each in left] == records
        size = sum(path.stat().st_size for each in left[1:] for path in each.glob("*.segment"))
        assert size < 2 * 500 * 700 / 5
        assert done.saved > 2 * 500 * 600 * 4 / 5

    def test_a_little_at_an_end_isnt_worth_a_segment(self, log: LocalLog) -> None:
        self.left_by(log, 1, 5)
        log.tend()
        assert len(list(log.directory.rglob("*.segment"))) == 1

    def test_one_tends_at_a_time(self, log: LocalLog) -> None:
        self.left_by(log, 2, 500)
        others: list[int] = []

        def may_go_on() -> bool:
            with log.writer() as other:
                others.append(int(other.directory.name[-4:]))
            assert log.tend() == (0, 0), "somebody is at it"
            return True

        log.tend(may_go_on)
        assert set(others) <= {0, 1}, "there is always a partition that is free"

    def test_what_a_newer_version_wrote_is_left_to_it(self, log: LocalLog) -> None:
        with log.writer() as journal:
            fill(journal)
        path = min(journal.directory.glob("*.segment"))
        data = bytearray(path.read_bytes())
        data[8] = 3
        data[36:40] = crc32(data[:36]).to_bytes(4, "little")
        path.write_bytes(data)
        with log.writer() as other:
            assert other.directory != journal.directory
            assert log.tend() == (0, 0)
        assert path.read_bytes() == bytes(data)


@pytest.mark.slow
def test_memory_is_flat(tmp_path: Path) -> None:
    import tracemalloc

    def most(count: int, directory: Path) -> int:
        with Journal.open(directory, options(segment_bytes=50_000_000), files=FaultyFiles()) as journal:
            fill(journal, count)
            journal.finish_segment(1)
            tracemalloc.start()
            try:
                assert journal.compact()
                return tracemalloc.get_traced_memory()[1]
            finally:
                tracemalloc.stop()

    few, many = most(1_000, tmp_path / "few"), most(5_000, tmp_path / "many")
    assert many < few * 1.3
