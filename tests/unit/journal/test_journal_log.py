"""The local log: a partition for each writer, groups that stand by for each other, and what dead writers left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from headwater.journal import (
    CursorError,
    Fsync,
    GroupMember,
    Journal,
    JournalOptions,
    LocalLog,
    LockedError,
    Start,
    Why,
    find_abandoned,
    remove_journal,
)

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
    with log.group("other", start=Start.LATEST) as member:
        assert not member.poll()


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
        ((partition, lost),) = batch.lost
        assert (partition, lost.first, lost.why) == ("partition-0000", 0, Why.DROPPED)
        assert batch.records[0].record.offset == lost.following
        assert batch.positions == {"partition-0000": lost.following + 1}


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
        assert find_abandoned(tmp_path) == [], "it lives"
        with pytest.raises(LockedError):
            remove_journal(spool)
        os.kill(driver.pid, signal.SIGKILL)
    assert find_abandoned(tmp_path) == [spool]
    with Journal.open(spool, PLAIN) as journal:
        assert find_abandoned(tmp_path) == []
        assert journal.append(b"killed") == 100
        with journal.cursor("kafka") as cursor:
            shipped = [record.value for record in cursor.read().records]
            assert shipped == [b"%d" % number for number in range(40, 100)] + [b"killed"]
            cursor.commit(101)
    remove_journal(spool)
    assert not spool.exists()
    assert find_abandoned(tmp_path) == []
    assert find_abandoned(tmp_path / "nowhere") == []


def test_a_journal_that_is_read_is_not_removed(tmp_path: Path) -> None:
    with Journal.open(tmp_path / "j", PLAIN) as journal:
        journal.append(b"a")
        cursor = journal.cursor("c")
    with cursor, pytest.raises(LockedError, match="'c'"):
        remove_journal(tmp_path / "j")
    remove_journal(tmp_path / "j")
    assert not (tmp_path / "j").exists()
