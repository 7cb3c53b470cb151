"""The local log: a partition for each writer, groups that stand by for each other, and what dead writers left."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from headwater.journal import (
    CursorError,
    CursorStart,
    Fsync,
    GroupMember,
    Journal,
    JournalOptions,
    LocalLog,
    LockedError,
    MissingReason,
    OsFiles,
    StorageError,
    find_orphans,
    remove_journal,
    remove_remains,
)
from headwater.journal.lock import FileLock
from headwater.journal.writer import LOCK_NAME

IN_2031 = 1_925_000_000_000_000
PLAIN = JournalOptions(fsync=Fsync.NONE, reserve_bytes=0)


def read_all(member: GroupMember, count: int = 1000) -> list[tuple[str, int]]:
    found: list[tuple[str, int]] = []
    while batch := member.poll(count):
        found += [(each.partition, each.record.offset) for each in batch.records]
        member.commit(batch.positions)
    return found


def test_each_writer_has_a_partition_and_the_next_takes_it_over(tmp_path: Path) -> None:
    log = LocalLog.open(tmp_path, PLAIN)
    with log.writer() as first, log.writer() as second:
        assert log.partitions() == ["partition-0000", "partition-0001"]
        first.append(b"a")
        second.append(b"b")
    with log.writer() as third:
        assert third.directory == first.directory
        assert third.append(b"c") == 1
    assert log.partitions() == ["partition-0000", "partition-0001"]


def test_a_group_merges_by_append_time_and_keeps_its_place(tmp_path: Path) -> None:
    now = 0
    log = LocalLog.open(tmp_path, JournalOptions(fsync=Fsync.NONE, reserve_bytes=0, clock=lambda: now))
    with log.writer() as first, log.writer() as second:
        for now in range(1, 31):
            (first if now % 3 else second).append(b"%d" % now)
    with log.group("g") as member:
        batch = member.poll(10)
        assert [each.record.time for each in batch.records] == list(range(1, 11))
        assert batch.positions == {"partition-0000": 7, "partition-0001": 3}
        member.commit(batch.positions)
        assert [each.record.time for each in member.poll(5).records] == list(range(11, 16))
    with log.group("g") as member:
        times = [each.record.time for _ in range(7) for each in member.poll(3).records]
        assert times == list(range(11, 31))
    with log.group("other", start=CursorStart.LATEST) as member:
        assert not member.poll()


def test_a_record_from_2031_holds_up_none_behind_it(tmp_path: Path) -> None:
    """Its writer's clock was wrong; the next one's is right, and its records are in order with other partitions'."""
    now = IN_2031
    log = LocalLog.open(tmp_path, JournalOptions(fsync=Fsync.NONE, reserve_bytes=0, clock=lambda: now))
    with log.writer() as wrong:
        wrong.append(b"2031")
    now = 0
    with log.writer() as first, log.writer() as second:
        for now in range(1, 21):
            (first if now % 2 else second).append(b"%d" % now)
    with log.group("g") as member:
        values = [each.record.value for _ in range(3) for each in member.poll(10).records]
    assert values == [b"2031", *(b"%d" % number for number in range(1, 21))]


def test_one_member_has_a_partition_and_the_other_takes_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headwater.journal.groups._LOOK_AGAIN", 0.0)
    log = LocalLog.open(tmp_path, PLAIN)
    with log.writer() as writer, log.group("g") as second:
        writer.append_many([b"a", b"b", b"c"])
        with log.group("g") as first:
            batch = first.poll(2)
            assert len(batch.records) == 2
            first.commit({"partition-0000": 1})
            assert not second.poll()
            assert (first.assigned, second.assigned) == (["partition-0000"], [])
            with pytest.raises(CursorError, match="doesn't read it"):
                second.commit(batch.positions)
        assert read_all(second) == [("partition-0000", 1), ("partition-0000", 2)]
        with log.writer() as late:
            late.append(b"d")
            assert read_all(second) == [("partition-0001", 0)]


def test_a_group_is_told_what_it_lost(tmp_path: Path) -> None:
    log = LocalLog.open(tmp_path, JournalOptions(fsync=Fsync.NONE, reserve_bytes=0, segment_bytes=500))
    with log.writer() as writer:
        for number in range(20):
            writer.append(b"%099d" % number)
    oldest = min((tmp_path / "partition-0000").glob("*.segment"))
    with log.group("g") as member:
        assert member.poll(1).records[0].record.offset == 0
    oldest.unlink()
    with log.group("g") as member:
        batch = member.poll(1)
        ((partition, lost),) = batch.missing
        assert (partition, lost.first, lost.reason) == ("partition-0000", 0, MissingReason.DROPPED)
        assert batch.records[0].record.offset == lost.end_offset
        assert batch.positions == {"partition-0000": lost.end_offset + 1}


class Watched(OsFiles):
    """Has something happen before a call."""

    def __init__(self) -> None:
        self.before_read: Callable[[int], None] = lambda _: None

    def read(self, descriptor: int, count: int, position: int) -> bytes:
        self.before_read(descriptor)
        return super().read(descriptor, count, position)


@pytest.mark.parametrize("is_new", [False, True], ids=["known", "new"])
def test_what_was_there_before_a_record_comes_before_it(tmp_path: Path, is_new: bool) -> None:
    """A reader is held up between its looks at two partitions, and both are written to meanwhile, one after the other:
    by a driver that dies and the next one that delivers what it left, say."""
    files = Watched()
    log = LocalLog.open(tmp_path, PLAIN)
    with ExitStack() as opened, LocalLog.open(tmp_path, PLAIN, files=files).group("g") as member:
        writers = [opened.enter_context(log.writer()) for _ in range(1 if is_new else 2)]
        for writer in writers:
            writer.append(b"before")
        while batch := member.poll():
            member.commit(batch.positions)
        looked: set[int] = set()

        def write(descriptor: int) -> None:
            looked.add(descriptor)
            if len(looked) == len(writers) and writers[-1].next_offset == 1:
                first = opened.enter_context(log.writer()) if is_new else writers[0]
                first.append(b"a")
                writers[-1].append(b"b")

        files.before_read = write
        batch = member.poll()
        assert [each.record.value for each in batch.records] == [b"a", b"b"]


def test_an_error_takes_nothing_along(tmp_path: Path) -> None:
    """What a poll had in its hands when the disk failed comes with it or with the next one."""
    files = Watched()
    log = LocalLog.open(tmp_path, PLAIN)
    with log.writer() as first, log.writer() as second:
        for number in range(500):
            (first if number % 3 else second).append(b"%d" % number)
    calls, errors, values = 0, 0, list[bytes]()

    def fail_at_times(_: int) -> None:
        nonlocal calls
        calls += 1
        if calls % 3 == 0:
            raise OSError(errno.EIO, os.strerror(errno.EIO))

    with LocalLog.open(tmp_path, PLAIN, files=files).group("g") as member:
        files.before_read = fail_at_times
        while len(values) < 500:
            try:
                values += [each.record.value for each in member.poll(40).records]
            except StorageError:  # noqa: PERF203 - it is what happens here
                errors += 1
    assert values == [b"%d" % number for number in range(500)]
    assert errors


def test_a_reader_that_may_open_no_more_files_is_reported_so(tmp_path: Path) -> None:
    class Few(OsFiles):
        def open(self, path: Path, flags: int) -> int:
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    log = LocalLog.open(tmp_path, PLAIN)
    with log.writer() as writer:
        writer.append(b"a")
    with (
        LocalLog.open(tmp_path, PLAIN, files=Few()).group("g") as member,
        pytest.raises(StorageError, match="ulimit -n"),
    ):
        member.poll()


def test_limits_hold_without_a_writer(tmp_path: Path) -> None:
    now = 0
    options = JournalOptions(fsync=Fsync.NONE, reserve_bytes=0, segment_bytes=500, max_age=5, clock=lambda: now)
    log = LocalLog.open(tmp_path, options)
    with log.writer() as writer:
        for number in range(20):
            writer.append(b"%099d" % number)
    assert log.trim() == 0
    now = 6_000_000
    assert log.trim() > 0
    with log.group("g") as member:
        assert not member.poll().records


DRIVER = """
import sys
from headwater.journal import *
journal = Journal.open(sys.argv[1])
for number in range(100):
    journal.append(b"%d" % number)
with journal.cursor("kafka") as cursor:
    cursor.read(40)
    cursor.commit(40)
print("ready", flush=True)
sys.stdin.read()
"""


def test_what_a_dead_driver_left_is_found_shipped_and_removed(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    spool = tmp_path / "driver"
    with subprocess.Popen(
        [sys.executable, "-c", DRIVER, str(spool)], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as driver:
        assert driver.stdout is not None
        assert driver.stdout.readline() == b"ready\n"
        assert find_orphans(tmp_path) == [], "it lives"
        with pytest.raises(LockedError):
            remove_journal(spool)
        os.kill(driver.pid, signal.SIGKILL)
    assert find_orphans(tmp_path) == [spool]
    with Journal.open(spool, PLAIN) as journal:
        assert find_orphans(tmp_path) == []
        assert journal.append(b"killed") == 100
        with journal.cursor("kafka") as cursor:
            shipped = [record.value for record in cursor.read().records]
            assert shipped == [b"%d" % number for number in range(40, 100)] + [b"killed"]
            cursor.commit(101)
    remove_journal(spool)
    assert not spool.exists()
    assert find_orphans(tmp_path) == []
    assert find_orphans(tmp_path / "nowhere") == []


def test_a_removal_that_is_cut_short_leaves_nothing_to_tell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever is killed while it removes a journal that was read to its end: the next one has nothing to read, and
    nothing seems to be lost."""
    unlink, left, was_found = Path.unlink, 0, 0

    def give_out(path: Path, missing_ok: bool = False) -> None:
        nonlocal left
        left -= 1
        if left < 0:
            raise KeyboardInterrupt
        unlink(path, missing_ok=missing_ok)

    for steps in range(30):
        path = tmp_path / str(steps) / "j"
        with Journal.open(path, JournalOptions(fsync=Fsync.NONE, segment_bytes=500, drop_consumed=True)) as journal:
            journal.append_many([b"%099d" % number for number in range(20)])
            with journal.cursor("c") as cursor:
                while batch := cursor.read():
                    cursor.commit(batch.position)
        left = steps
        with monkeypatch.context() as patched, suppress(KeyboardInterrupt):
            patched.setattr(Path, "unlink", give_out)
            remove_journal(path)
        for found in find_orphans(path.parent):
            was_found += 1
            with Journal.open(found, PLAIN) as journal, journal.cursor("c") as cursor:
                assert not cursor.read()
        assert path.exists() == (left < 0)
    assert was_found, "it was removed at once, and this shows nothing"


def test_a_journal_that_is_read_is_not_removed(tmp_path: Path) -> None:
    with Journal.open(tmp_path / "j", PLAIN) as journal:
        journal.append(b"a")
        cursor = journal.cursor("c")
    with cursor, pytest.raises(LockedError, match="'c'"):
        remove_journal(tmp_path / "j")
    remove_journal(tmp_path / "j")
    assert not (tmp_path / "j").exists()


def test_drivers_that_come_one_after_another_leave_one_partition(tmp_path: Path) -> None:
    """Of three at a time there are three, in whatever order they end: it doesn't matter how many there were."""
    log = LocalLog.open(tmp_path, PLAIN)
    for number in range(100):
        with log.writer() as journal:
            assert journal.append(b"%d" % number) == number
    assert log.partitions() == ["partition-0000"]
    assert len(list(tmp_path.rglob("*.segment"))) == 1
    at_work = [log.writer() for _ in range(3)]
    for number in range(60):
        at_work.pop(number * 7 % 3).close()
        at_work.append(log.writer())
        at_work[-1].append(b"%d" % number)
    for journal in at_work:
        journal.close()
    assert len(log.partitions()) == 3
    with log.group("g") as member:
        assert sorted(member.poll(1000).positions) == log.partitions()


def test_a_file_that_appears_while_a_journal_is_removed_goes_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Journal.open(tmp_path / "j", PLAIN).close()
    real, late = Path.rmdir, iter(["shipper.log", "another"])

    def rmdir(path: Path) -> None:
        if path == tmp_path / "j" and (name := next(late, None)):
            (path / name).touch()
        real(path)

    monkeypatch.setattr(Path, "rmdir", rmdir)
    remove_journal(tmp_path / "j")
    assert not (tmp_path / "j").exists()


def test_a_removal_leaves_it_to_who_opens_the_journal_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Journal.open(tmp_path / "j", PLAIN).close()
    real, opened = Path.rmdir, list[Journal]()

    def rmdir(path: Path) -> None:
        if path == tmp_path / "j" and not opened:
            opened.append(Journal.open(path, PLAIN))
        real(path)

    monkeypatch.setattr(Path, "rmdir", rmdir)
    remove_journal(tmp_path / "j")
    assert opened[0].append(b"first") == 0
    opened[0].close()
    assert find_orphans(tmp_path) == [tmp_path / "j"]


def test_what_a_removal_left_is_removed_and_nothing_else(tmp_path: Path) -> None:
    for name in ("left", "young", "held", "written", "somebody's"):
        (tmp_path / name).mkdir()
    Journal.open(tmp_path / "written", PLAIN).close()
    locks = [tmp_path / name / LOCK_NAME for name in ("left", "young", "held", "written")]
    for lock in locks:
        lock.touch()
        if lock.parent.name != "young":
            os.utime(lock, (0, 0))
    (tmp_path / "left" / "shipper.log").touch()
    held = FileLock.acquire(tmp_path / "held" / LOCK_NAME, "a test")
    os.utime(held.path, (0, 0))

    remove_remains(tmp_path)
    remove_remains(tmp_path / "nowhere")

    assert sorted(each.name for each in tmp_path.iterdir()) == ["held", "somebody's", "written", "young"]
    held.release()
