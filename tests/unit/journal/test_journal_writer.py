"""The writer's side: offsets and times, one writer at a time, limits, syncs, and what a full disk leaves."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import multiprocessing
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from typing_extensions import Buffer

from headwater.errors import ConfigurationError, TerminalError, TransientError
from headwater.journal import (
    ClosedError,
    FormatError,
    Fsync,
    Journal,
    JournalOptions,
    JournalReader,
    LockedError,
    MissingReason,
    MissingRecords,
    OsFiles,
    StorageFailedError,
    StorageFullError,
    SyncFailedError,
)
from headwater.journal.lock import is_locked
from tests.kit.threads import in_threads

PLAIN = JournalOptions(fsync=Fsync.NONE, reserve_bytes=0)
DEADLINE = 60.0
IN_2031 = 1_925_000_000_000_000


def values_from(directory: Path, position: int = 0) -> list[bytes]:
    with JournalReader.open(directory).tail(position) as tail:
        values: list[bytes] = []
        while batch := tail.read():
            values += [record.value for record in batch.records]
        return values


def small(**changes: object) -> JournalOptions:
    return JournalOptions(**{"fsync": Fsync.NONE, "segment_bytes": 500, "reserve_bytes": 0, **changes})  # type: ignore[arg-type]


def test_offsets_go_on_after_a_restart(tmp_path: Path) -> None:
    with Journal.open(tmp_path, PLAIN) as journal:
        assert [journal.append(b"a"), journal.append(b"b")] == [0, 1]
        assert journal.append_many([b"c", b"d"]) == range(2, 4)
        assert journal.append_many([]) == range(4, 4)
        assert journal.recovered is None
    with Journal.open(tmp_path, PLAIN) as journal:
        assert journal.recovered is not None
        assert (journal.recovered.torn, journal.recovered.corrupt) == (0, 0)
        assert journal.append(b"e") == 4
    assert values_from(tmp_path) == [b"a", b"b", b"c", b"d", b"e"]


def test_append_times_of_one_writer_never_go_back(tmp_path: Path) -> None:
    times = iter([100, 90, 110, 50, 60, 120])
    with Journal.open(tmp_path, JournalOptions(fsync=Fsync.NONE, clock=lambda: next(times))) as journal:
        journal.append(b"")
        journal.append_many([b"", b""])
        journal.append(b"")
        with journal.tail(0) as tail:
            assert [record.time for record in tail.read().records] == [100, 110, 110, 110]


def test_a_writer_dates_its_records_by_its_own_clock(tmp_path: Path) -> None:
    """A journal is no second clock: the writer before it lived in 2031."""
    now = IN_2031
    options = JournalOptions(fsync=Fsync.NONE, clock=lambda: now)
    with Journal.open(tmp_path, options) as journal:
        journal.append(b"from 2031")
    for clock in (5_000, 6_000):
        now = clock
        with Journal.open(tmp_path, options) as journal:
            journal.append(b"now")
            journal.append_many([b"and now"])
    with JournalReader.open(tmp_path).tail(0) as tail:
        assert [each.time for each in tail.read().records] == [IN_2031, 5_000, 5_000, 6_000, 6_000]


def test_a_segment_from_2031_holds_up_no_expiry(tmp_path: Path) -> None:
    now = 1_000_000
    options = small(clock=lambda: now)
    for clock in (1_000_000, IN_2031, 2_000_000):
        now = clock
        with Journal.open(tmp_path, options) as journal:
            for number in range(12):
                journal.append(b"%099d" % number)
    now = 30_000_000
    with Journal.open(tmp_path, small(max_age=10.0, clock=lambda: now)) as journal:
        assert journal.first_offset == 0
        journal.append(b"young")
        journal.trim()
    assert values_from(tmp_path)[-1:] == [b"young"]
    assert len(values_from(tmp_path)) < 12


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"fsync": "sometimes"}, "none, interval, always"),
        ({"fsync_interval": 0}, "fsync_interval"),
        ({"max_bytes": 100}, "max_bytes"),
        ({"segment_bytes": 600, "max_bytes": 8192 + 8192, "max_age": -1}, "max_age"),
        ({"segment_bytes": 10_000, "max_bytes": 16_384}, "half of max_bytes"),
        ({"segment_bytes": 0}, "segment_bytes"),
        ({"max_record_bytes": 0}, "max_record_bytes"),
        ({"reserve_bytes": -1}, "reserve_bytes"),
    ],
)
def test_wrong_options_name_themselves(changes: dict[str, object], word: str) -> None:
    with pytest.raises(ConfigurationError, match=word):
        JournalOptions(**changes)  # type: ignore[arg-type]


@pytest.mark.slow
def test_one_writer_at_a_time(tmp_path: Path) -> None:
    with Journal.open(tmp_path, PLAIN):
        with pytest.raises(LockedError, match=f"process {os.getpid()}") as reported:
            Journal.open(tmp_path, PLAIN)
        assert isinstance(reported.value, TransientError)
        program = "import sys; from headwater.journal import *; Journal.open(sys.argv[1])"
        other = run_python(program, str(tmp_path))
        assert "LockedError" in other.stderr
    assert (
        run_python("import sys; from headwater.journal import *; Journal.open(sys.argv[1])", str(tmp_path)).stderr == ""
    )


def test_who_only_looks_whether_a_journal_is_locked_is_in_nobodys_way(tmp_path: Path) -> None:
    Journal.open(tmp_path, PLAIN).close()
    looking = os.open(tmp_path / "lock", os.O_RDONLY)
    fcntl.flock(looking, fcntl.LOCK_SH)
    done = threading.Timer(0.01, os.close, [looking])
    done.start()
    with Journal.open(tmp_path, PLAIN):
        done.join()
        assert is_locked(tmp_path / "lock")
    assert not is_locked(tmp_path / "lock")


def run_python(program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", program, *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)


FORKING = """
import os, sys
from headwater.journal import *
directory = sys.argv[1]
journal = Journal.open(directory)
journal.append(b"parent")
cursor = journal.cursor("c")
told, tell = os.pipe()
child = os.fork()
if child == 0:
    for attempt in (lambda: journal.append(b"child"), lambda: journal.append_many([b"child"]), lambda: cursor.read()):
        try:
            attempt()
            os._exit(1)
        except ClosedError:
            pass
    journal.close(); cursor.close()
    os.write(tell, b"x")
    sys.stdin.read()   # outlives its parent
    Journal.open(directory).append(b"heir")
    os._exit(0)
os.close(tell)
assert os.read(told, 1), "the child wrote"
journal.append(b"parent again")
print(child, flush=True)
os.kill(os.getpid(), 9)
"""


def test_a_forked_child_neither_writes_nor_keeps_the_lock(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(
        [sys.executable, "-c", FORKING, str(tmp_path)], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as parent:
        assert parent.stdout is not None
        assert parent.stdin is not None
        assert int(parent.stdout.readline()) > 0
        parent.wait(DEADLINE)
        with Journal.open(tmp_path, PLAIN) as journal:  # the child lives, and its parent was killed
            journal.append(b"successor")
        parent.stdin.close()
        assert parent.stdout.read() == b""  # the child has ended
    assert values_from(tmp_path) == [b"parent", b"parent again", b"successor", b"heir"]


def test_a_closed_journal_takes_nothing(tmp_path: Path) -> None:
    journal = Journal.open(tmp_path)
    journal.append(b"in")
    assert journal.close()
    assert journal.close(), "a second close has nothing left to do"
    with pytest.raises(ClosedError) as reported:
        journal.append(b"out")
    assert isinstance(reported.value, TerminalError)
    with pytest.raises(ClosedError):
        journal.append_many([b"out"])
    assert values_from(tmp_path) == [b"in"]


def test_closing_waits_no_longer_than_told_for_a_disk_that_hangs(tmp_path: Path) -> None:
    class Hanging(OsFiles):
        entered, go_on = threading.Event(), threading.Event()

        def write(self, descriptor: int, data: Buffer, position: int, /) -> int:
            if bytes(data).endswith(b"hangs"):
                self.entered.set()
                assert self.go_on.wait(DEADLINE)
            return os.pwrite(descriptor, data, position)

    files = Hanging()
    journal = Journal.open(tmp_path, JournalOptions(reserve_bytes=0), files=files)
    thread = threading.Thread(target=journal.append, args=(b"hangs",))
    thread.start()
    assert files.entered.wait(DEADLINE)
    assert not journal.close(timeout=0.05)
    with pytest.raises(LockedError):  # it may still write
        Journal.open(tmp_path, PLAIN)
    files.go_on.set()
    thread.join(DEADLINE)
    assert journal.close()
    assert values_from(tmp_path) == [b"hangs"]


def test_threads_append_in_one_order(tmp_path: Path) -> None:
    with Journal.open(tmp_path, small(max_bytes=None)) as journal:
        given: dict[int, bytes] = {}

        def work(name: int) -> None:
            for number in range(100):
                value = b"%d-%d" % (name, number)
                given[journal.append(value)] = value

        in_threads(8, work)
    assert sorted(given) == list(range(800))
    assert values_from(tmp_path) == [given[offset] for offset in range(800)]
    for name in range(8):
        own = [value for _, value in sorted(given.items()) if value.startswith(b"%d-" % name)]
        assert own == [b"%d-%d" % (name, number) for number in range(100)]


def test_the_size_limit_drops_the_oldest_and_tells_who_lost_it(tmp_path: Path) -> None:
    with Journal.open(tmp_path, small(segment_bytes=1000, max_bytes=8192)) as journal:
        with journal.cursor("behind") as behind, journal.cursor("ahead") as ahead:
            behind.read(1)
            for number in range(100):
                journal.append(b"%099d" % number)
                ahead.commit(ahead.read().position)
            journal.trim()
            assert journal.size <= 8192
            assert ahead.position == 100
            first = journal.first_offset
            assert 0 < first < 100
            # The cursor holds its old segment open, and reads it to its end though it was dropped.
            left = behind.read()
            assert left.records[-1].offset < first
            batch = behind.read()
            assert batch.missing == (
                MissingRecords(left.position, first, MissingReason.DROPPED, batch.missing[0].path),
            )
            assert batch.records[0].offset == first
        with journal.tail(0) as fresh:
            assert fresh.read(1).missing == (MissingRecords(0, first, MissingReason.DROPPED),)


def test_old_segments_go_also_the_one_written_to(tmp_path: Path) -> None:
    now = 1_000_000
    with Journal.open(tmp_path, small(max_age=10.0, clock=lambda: now)) as journal:
        for number in range(20):
            journal.append(b"%099d" % number)
        now += 9_000_000
        assert journal.trim() == 0
        journal.append(b"young")
        now += 2_000_000
        journal.trim()
        assert journal.first_offset > 0
        assert values_from(tmp_path)[-1] == b"young"
        now += 10_000_000
        journal.trim()
        assert values_from(tmp_path) == []
        assert journal.append(b"next") == 21


def test_what_every_cursor_has_committed_goes(tmp_path: Path) -> None:
    with Journal.open(tmp_path, small(drop_consumed=True)) as journal:
        for number in range(30):
            journal.append(b"%099d" % number)
        journal.trim()
        assert journal.first_offset == 0, "without a cursor nothing is consumed"
        with journal.cursor("slow") as slow, journal.cursor("fast") as fast:
            while fast.read():
                fast.commit(fast.position)
            journal.trim()
            assert journal.first_offset == 0
            while slow.position < 10:
                slow.read(10 - slow.position)
            slow.commit(10)
            journal.trim()
            assert 0 < journal.first_offset <= 10
        assert journal.positions() == {"slow": 10, "fast": 30}
        journal.forget_cursor("slow")
        journal.trim()
        assert journal.first_offset > 10
        assert journal.next_offset == 30


class CountingFiles(OsFiles):
    """Counts syncs, and fails where it is told to."""

    def __init__(self) -> None:
        self.syncs = 0
        self.entered = threading.Event()
        self.go_on = threading.Event()
        self.go_on.set()
        self.fails_sync = False
        self.fails_once = False
        self.room = 1 << 60

    def sync(self, descriptor: int) -> None:
        self.syncs += 1
        self.entered.set()
        assert self.go_on.wait(DEADLINE)
        if self.fails_sync or self.fails_once:
            self.fails_once = False
            raise OSError(errno.EIO, "no")
        super().sync(descriptor)

    def write(self, descriptor: int, data: Buffer, position: int, /) -> int:
        part = bytes(data)[: self.room]
        if not part:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self.room -= len(part)
        return os.pwrite(descriptor, part, position)

    def remove(self, path: Path) -> None:
        self.room += path.stat().st_size
        super().remove(path)


def test_those_who_wait_together_share_a_sync(tmp_path: Path) -> None:
    files = CountingFiles()
    with Journal.open(tmp_path, JournalOptions(fsync=Fsync.ALWAYS, reserve_bytes=0), files=files) as journal:
        journal.append(b"first")
        files.entered.clear()
        files.go_on.clear()
        leader = threading.Thread(target=journal.append, args=(b"leader",))
        leader.start()
        assert files.entered.wait(DEADLINE)
        before = files.syncs
        followers = [threading.Thread(target=journal.append, args=(b"follower",)) for _ in range(8)]
        for thread in followers:
            thread.start()
        while journal.next_offset < 10:  # all have written, and wait for the sync under way to end
            threading.Event().wait(0.001)
        files.go_on.set()
        for thread in [leader, *followers]:
            thread.join(DEADLINE)
        assert files.syncs == before + 1
    assert len(values_from(tmp_path)) == 10


def test_a_failed_sync_is_told_to_all_who_wait_and_its_file_is_left(tmp_path: Path) -> None:
    files = CountingFiles()
    with Journal.open(tmp_path, JournalOptions(fsync=Fsync.ALWAYS, reserve_bytes=0), files=files) as journal:
        journal.append(b"sound")
        files.fails_sync = True
        reported: list[SyncFailedError] = []

        def work(_: int) -> None:
            with pytest.raises(SyncFailedError, match="append it again") as error:
                journal.append(b"doubtful")
            reported.append(error.value)

        in_threads(6, work)
        assert [error.unknown for error in reported] == [True] * 6
        files.fails_sync = False
        flush_until_sound(journal)
        before = sorted(tmp_path.glob("*.segment"))
        assert journal.append(b"sound again") >= 7
        assert len(sorted(tmp_path.glob("*.segment"))) == len(before) + 1, "pages of unknown state were synced again"
    assert values_from(tmp_path)[0] == b"sound"
    assert values_from(tmp_path)[-1] == b"sound again"


def test_a_failed_sync_is_reported_also_to_those_who_wrote_while_it_ran(tmp_path: Path) -> None:
    files = CountingFiles()
    with Journal.open(tmp_path, JournalOptions(fsync=Fsync.ALWAYS, reserve_bytes=0), files=files) as journal:
        journal.append(b"sound")
        assert journal.flush()
        files.entered.clear()
        files.go_on.clear()
        files.fails_once = True
        reported: list[SyncFailedError] = []

        def work() -> None:
            with pytest.raises(SyncFailedError) as error:
                journal.append(b"doubtful")
            reported.append(error.value)

        leader, follower = threading.Thread(target=work), threading.Thread(target=work)
        leader.start()
        assert files.entered.wait(DEADLINE)
        follower.start()
        while journal.next_offset < 3:
            threading.Event().wait(0.001)
        files.go_on.set()
        for thread in (leader, follower):
            thread.join(DEADLINE)
        assert len(reported) == 2, "a later fsync of the same pages was believed"


def flush_until_sound(journal: Journal) -> None:
    """Past the last failing sync, which the background may be at."""
    with contextlib.suppress(SyncFailedError):
        assert journal.flush()
        return
    flush_until_sound(journal)


def test_a_sync_that_failed_in_the_background_is_reported_by_flush(tmp_path: Path) -> None:
    files = CountingFiles()
    options = JournalOptions(fsync=Fsync.INTERVAL, fsync_interval=60, reserve_bytes=0)
    with Journal.open(tmp_path, options, files=files) as journal:
        journal.append(b"a")
        assert journal.flush()
        journal.append(b"b")
        files.fails_sync = True
        with pytest.raises(SyncFailedError):
            journal.flush()
        files.fails_sync = False
        assert journal.flush()
        journal.append(b"c")
        files.go_on.clear()
        assert not journal.flush(timeout=0.05), "it can't be done while the disk hangs"
        journal.append(b"d")  # nor does an appender wait for it
        files.go_on.set()
        assert journal.flush()
    assert values_from(tmp_path) == [b"a", b"b", b"c", b"d"]


def test_a_full_disk_refuses_and_then_goes_on(tmp_path: Path) -> None:
    files = CountingFiles()
    options = JournalOptions(fsync=Fsync.NONE, reserve_bytes=4096)
    with Journal.open(tmp_path, options, files=files) as journal:
        journal.append(b"first")
        size = journal.size
        files.room = 100
        with pytest.raises(StorageFullError, match="make room") as reported:
            journal.append(b"x" * 500)
        assert (reported.value.appended, reported.value.unknown) == (0, False)
        assert journal.size == size
        assert next(tmp_path.glob("*.segment")).stat().st_size == size, "the torn part wasn't cut off"
        files.room = 250
        with pytest.raises(StorageFullError) as reported:
            journal.append_many([b"y" * 80, b"z" * 80, b"x" * 80])
        assert reported.value.appended == 2
        files.room = 0
        assert journal.append_emergency(b"the gap") == 3
        files.room = 1 << 60
        assert journal.append(b"last") == 4
    assert values_from(tmp_path) == [b"first", b"y" * 80, b"z" * 80, b"the gap", b"last"]


def test_offsets_in_a_damaged_end_are_not_given_again(tmp_path: Path) -> None:
    with Journal.open(tmp_path, PLAIN) as journal:
        journal.append_many([b"%d" % number for number in range(10)])
    (segment,) = tmp_path.glob("*.segment")
    data = bytearray(segment.read_bytes())
    data[40 + 8 * 37] ^= 1  # the mark of record 8, so that it can't be counted
    data[-1] ^= 1  # the value of record 9
    segment.write_bytes(data)
    with Journal.open(tmp_path, PLAIN) as journal:
        assert journal.recovered is not None
        assert (journal.recovered.corrupt, journal.recovered.torn) == (2 * 37, 0)
        assert journal.append(b"next") > 9
        with journal.tail(8) as tail:
            batch = tail.read()
    (lost,) = batch.missing
    assert (lost.first, lost.reason, lost.path) == (8, MissingReason.CORRUPT, segment)
    assert (lost.start, lost.end) == (40 + 8 * 37, len(data))
    assert [record.value for record in batch.records] == [b"next"]
    assert segment.read_bytes() == bytes(data), "what is damaged is left for those who can make something of it"


def test_a_torn_end_is_cut_and_its_offset_given_again(tmp_path: Path) -> None:
    with Journal.open(tmp_path, PLAIN) as journal:
        journal.append_many([b"a", b"b"])
    (segment,) = tmp_path.glob("*.segment")
    whole = segment.read_bytes()
    for torn in range(1, 37):
        segment.write_bytes(whole[:-torn])
        with JournalReader.open(tmp_path).tail(0) as live, Journal.open(tmp_path, PLAIN) as journal:
            assert journal.recovered is not None
            assert (journal.recovered.torn, journal.recovered.corrupt) == (37 - torn, 0)
            assert [record.value for record in live.read().records] == [b"a"]
            assert journal.append(b"c") == 1
            assert [record.value for record in live.read().records] == [b"c"]


def test_an_interrupt_in_an_append_leaves_the_journal_sound(tmp_path: Path) -> None:
    class Interrupted(OsFiles):
        armed = False

        def write(self, descriptor: int, data: Buffer, position: int, /) -> int:
            written = os.pwrite(descriptor, data, position)
            if self.armed:
                self.armed = False
                raise KeyboardInterrupt
            return written

    files = Interrupted()
    with Journal.open(tmp_path, PLAIN, files=files) as journal, journal.tail(0) as live:
        files.armed = True
        with pytest.raises(KeyboardInterrupt):
            journal.append(b"interrupted")
        assert [record.value for record in live.read().records] == [b"interrupted"]
        assert journal.append(b"next") == 1, "a reader may have seen offset 0"
        assert [record.value for record in live.read().records] == [b"next"]


def test_a_newer_format_is_left_alone(tmp_path: Path) -> None:
    from zlib import crc32

    with Journal.open(tmp_path, PLAIN) as journal:
        journal.append(b"a")
    (segment,) = tmp_path.glob("*.segment")
    data = bytearray(segment.read_bytes())
    data[8] = 3
    data[36:40] = crc32(data[:36]).to_bytes(4, "little")
    segment.write_bytes(data)
    with pytest.raises(FormatError, match="format 3"):
        Journal.open(tmp_path, PLAIN)
    assert segment.read_bytes() == bytes(data)
    with JournalReader.open(tmp_path).tail(0) as tail, pytest.raises(FormatError, match="format 3"):
        tail.read()


@pytest.mark.parametrize("left", [b"", b"HWJR", bytes(40)])
def test_a_segment_whose_making_a_power_cut_undid(tmp_path: Path, left: bytes) -> None:
    with Journal.open(tmp_path, small()) as journal:
        journal.append(b"a" * 400)
        journal.append(b"b" * 400)
    last = max(tmp_path.glob("*.segment"))
    last.write_bytes(left)
    with Journal.open(tmp_path, small()) as journal:
        assert journal.append(b"c") == 1
    assert values_from(tmp_path) == [b"a" * 400, b"c"]


def test_a_directory_that_cannot_be_is_a_typed_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageFailedError, match="opening"):
        Journal.open(tmp_path / "file" / "journal")


def test_no_thread_is_left(tmp_path: Path) -> None:
    before = set(threading.enumerate())
    with Journal.open(tmp_path):
        (own,) = {each for each in threading.enumerate() if each not in before and "journal" in each.name}
        assert own.is_alive()
    assert not own.is_alive()
    assert not multiprocessing.active_children()
