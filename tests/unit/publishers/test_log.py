"""The local log as a listener: what it writes, what it answers when the disk fails, what it says of a wrong place."""

from __future__ import annotations

import errno
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path

import pytest
from typing_extensions import Buffer

from headwater.errors import ConfigurationError, TerminalError, TransientError
from headwater.events.clock import micros_of, wall_micros
from headwater.journal import Journal, JournalOptions, LocalLog, OsFiles, StorageFullError, SyncFailedError
from headwater.journal.filesystem import FileSystem, FileSystemKind
from headwater.publishers.log import LogFactory, LogListener, data_directory
from headwater.spi import EventRecord, RecordBatch, RefusedRecordError
from headwater.testing.examples import EXAMPLES
from headwater.testing.listeners import batch, record
from headwater.testing.memory import MemoryContext
from tests.kit.bus.logs import id_of, records_of
from tests.kit.waiting import until

ALL = batch(EXAMPLES)


class Disk(OsFiles):
    """The real one, with room for so many bytes more, and an fsync that may fail."""

    def __init__(self) -> None:
        self.room = 1 << 30
        self.fails = False
        self.syncs = 0

    def write(self, descriptor: int, data: Buffer, position: int, /) -> int:
        fits = bytes(data)[: self.room]
        if not fits:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self.room -= len(fits)
        return os.pwrite(descriptor, fits, position)

    def sync(self, descriptor: int) -> None:
        self.syncs += 1
        if self.fails:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        super().sync(descriptor)


@pytest.fixture
def executor() -> Iterator[Executor]:
    with ThreadPoolExecutor(1) as made:
        yield made


class Log:
    """A log in a directory, and the listeners that write to it."""

    def __init__(self, directory: Path, executor: Executor) -> None:
        self.directory = directory
        self.disk = Disk()
        self.context = MemoryContext("log", {}, executor)

    def listener(self, **configuration: str) -> LogListener:
        keys = {"dir": str(self.directory)} | {key.replace("_", "."): value for key, value in configuration.items()}
        self.context = MemoryContext("log", keys, self.context.executor)
        return LogFactory(self.disk).create(self.context)

    def sequences(self) -> list[int]:
        return [id_of(each).sequence for each in records_of(self.directory)]


@pytest.fixture
def log(tmp_path: Path, executor: Executor) -> Log:
    return Log(tmp_path / "log", executor)


def numbers_of(records: list[EventRecord]) -> list[int]:
    return [each.event_id.sequence for each in records]


def test_bytes_key_and_headers_are_those_of_the_spool(log: Log) -> None:
    listener = log.listener()
    listener.handle(ALL)
    assert listener.close(60)
    written = [(each.value, each.key, each.headers) for each in records_of(log.directory)]
    assert written == [(each.data, each.key, each.headers) for each in ALL]


def test_a_log_is_no_clock_to_the_driver(log: Log) -> None:
    """Who wrote to the partition before had a clock in 2031. The drivers after it keep their own time."""
    ahead = micros_of(datetime(2031, 1, 1, tzinfo=timezone.utc))
    with Journal.open(log.directory / "partition-0000", JournalOptions(clock=lambda: ahead)) as journal:
        journal.append(b"from tomorrow")
    listener = log.listener()
    listener.handle(ALL)
    assert listener.close(60)
    assert log.context.clock.observed == []
    times = [each.time for each in records_of(log.directory)]
    assert times[0] == ahead
    assert max(times[1:]) <= wall_micros()


def test_nobody_else_looks_into_a_log_that_a_driver_makes(log: Log) -> None:
    """Also one that is made anew, where somebody removed it; a directory that was there keeps its rights."""
    listener = log.listener()
    assert log.directory.stat().st_mode & 0o777 == 0o700
    shutil.rmtree(log.directory)
    listener.handle(ALL)
    assert log.directory.stat().st_mode & 0o777 == 0o700
    assert listener.close(60)
    log.directory.chmod(0o750)
    assert log.listener().close(60)
    assert log.directory.stat().st_mode & 0o777 == 0o750


def test_what_no_partition_takes_is_refused_by_its_position(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    """The bus puts that one aside and hands the others over again."""
    monkeypatch.setattr("headwater.publishers.log._MAX_RECORD_BYTES", 100_000)
    listener = log.listener()
    large = replace(ALL.records[3], data=bytes(200_000))
    with pytest.raises(RefusedRecordError) as caught:
        listener.handle(RecordBatch([*ALL.records[:3], large, *ALL.records[4:]]))
    assert caught.value.position == large.position
    listener.handle(RecordBatch([*ALL.records[:3], *ALL.records[4:]]))
    assert listener.close(60)
    assert log.sequences() == numbers_of([*ALL.records[:3], *ALL.records[4:]])


@pytest.mark.parametrize("fsync", ["always", "interval"])
def test_nothing_is_answered_that_is_not_on_the_disk(log: Log, fsync: str) -> None:
    listener = log.listener(fsync=fsync)
    log.disk.fails = True
    with pytest.raises(SyncFailedError):
        assert (listener.handle(ALL), listener.flush(60)) == (None, None)
    log.disk.fails = False
    log.disk.syncs = 0
    listener.handle(ALL)
    assert listener.flush(60) == ALL.end
    assert log.disk.syncs
    assert listener.close(60)
    assert log.sequences() == 2 * numbers_of(list(ALL)), "what may not survive the machine is appended again"


def test_without_fsync_an_answer_means_the_kernel(log: Log) -> None:
    listener = log.listener(fsync="none")
    log.disk.fails = True
    assert listener.handle(ALL) == ALL.end
    assert listener.close(60)


def test_an_answer_moves_in_a_stream_without_pauses(log: Log) -> None:
    """Nobody calls flush as long as there is something to hand over."""
    listener = log.listener(fsync_interval="1us")
    first, second = RecordBatch(ALL.records[:5]), RecordBatch(ALL.records[5:])
    assert listener.handle(first) == first.end
    assert listener.handle(second) == second.end
    assert listener.close(60)


@pytest.mark.slow
def test_what_got_in_before_the_disk_was_full_does_not_come_twice(log: Log) -> None:
    listener = log.listener()
    listener.handle(RecordBatch(ALL.records[:1]))
    log.disk.room = 3000
    with pytest.raises(StorageFullError, match="make room on the device"):
        listener.handle(RecordBatch(ALL.records[1:]))
    assert 1 < len(log.sequences()) < len(ALL)
    log.disk.room = 1 << 30
    listener.handle(ALL)
    assert listener.flush(60) == ALL.end
    assert listener.close(60)
    assert log.sequences() == numbers_of(list(ALL))


def test_a_full_disk_at_the_beginning_is_a_passing_thing(log: Log) -> None:
    listener = log.listener()
    log.disk.room = 0
    with pytest.raises(TransientError):
        listener.handle(ALL)
    assert not listener.close(1.0)


def test_a_log_that_was_removed_begins_anew(log: Log) -> None:
    listener = log.listener(fsync="always")
    listener.handle(RecordBatch(ALL.records[:3]))
    shutil.rmtree(log.directory)
    assert listener.handle(RecordBatch(ALL.records[3:])) == ALL.end
    assert listener.close(60)
    assert log.sequences() == numbers_of(list(ALL.records[3:]))


def test_what_was_not_answered_when_the_log_was_removed_is_asked_for_again(log: Log) -> None:
    listener = log.listener(fsync_interval="1h")
    assert listener.handle(RecordBatch(ALL.records[:3])) is None
    shutil.rmtree(log.directory)
    with pytest.raises(TransientError, match="was removed"):
        listener.handle(RecordBatch(ALL.records[3:]))
    listener.handle(ALL)
    assert listener.close(60)
    assert log.sequences() == numbers_of(list(ALL))


def test_limits_hold_in_partitions_that_nobody_writes_to_any_more(log: Log) -> None:
    """Two drivers wrote at one time, and only one does from now on."""
    both = [log.listener(max_bytes="64k") for _ in range(2)]
    for position in range(1, 300):
        for each in both:
            each.handle(RecordBatch((record(position, EXAMPLES[position % len(EXAMPLES)]),)))
    assert all(each.close(60) for each in both)
    left = log.directory / "partition-0001"
    before = len(list(left.glob("*.segment")))
    assert before > 1
    third = log.listener(max_age="0.001")
    third.handle(ALL)
    until(lambda: len(list(left.glob("*.segment"))) < before, "segments that are dropped")
    third.close(60)


@pytest.mark.slow
def test_limits_are_those_of_the_configuration(log: Log) -> None:
    listener = log.listener(max_bytes="64k", fsync="always")
    for position in range(1, 600):
        listener.handle(RecordBatch((record(position, EXAMPLES[position % len(EXAMPLES)]),)))
    assert listener.close(60)
    assert sum(path.stat().st_size for path in log.directory.rglob("*.segment")) <= 64 << 10


def test_limits_hold_in_partitions_that_nobody_writes_to(log: Log) -> None:
    """The listener sees to it beside its batches, when it begins."""
    left = log.directory / "partition-0001"
    with Journal.open(left, JournalOptions(segment_bytes=8 << 10, max_bytes=None)) as journal:
        journal.append_many([b"x" * 1000] * 200)
    listener = log.listener(max_bytes="64k")
    listener.handle(ALL)
    log.context.executor.submit(lambda: None).result(60)
    assert listener.close(60)
    assert 0 < sum(path.stat().st_size for path in left.glob("*.segment")) <= 64 << 10


def test_a_doubtful_place_is_reported_once(
    log: Log, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    where = FileSystem(FileSystemKind.NETWORK, "nfs4", "/data")
    monkeypatch.setattr("headwater.publishers.log.file_system_of", lambda _: where)
    for _ in range(2):
        listener = log.listener()
        listener.handle(ALL)
        assert listener.close(60)
    (reported_of,) = [each.getMessage() for each in caplog.records if each.levelname == "WARNING"]
    assert reported_of.startswith(
        f"spark.headwater.log.dir: {log.directory} is no good place for a log: /data is of type nfs4"
    )


def test_a_local_disk_gives_rise_to_no_words(log: Log, caplog: pytest.LogCaptureFixture) -> None:
    assert log.listener().close(60)
    assert not [each for each in caplog.records if each.levelname == "WARNING"]


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("dir", "logs", "spark.headwater.log.dir: logs depends on where the driver is started: write an absolute path"),
        ("dir", "s3://lake/log", "spark.headwater.log.dir: s3:/lake/log is a URL: write an absolute path"),
        ("dir", "/dev/null", r"spark.headwater.log.dir: /dev/null can't be written to \(File exists\)"),
        ("dir", "/dev/null/log", r"spark.headwater.log.dir: /dev/null/log can't be written to \(Not a directory\)"),
        ("dir", "/proc/nowhere/log", r"spark.headwater.log.dir: /proc/nowhere/log can't be written to \(No such file"),
    ],
)
def test_a_wrong_configuration_says_what_is_right(log: Log, key: str, value: str, words: str) -> None:
    with pytest.raises(ConfigurationError, match=words):
        log.listener(**{key: value})


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("fsync", "sometimes", "spark.headwater.log.fsync: .*'none', 'interval' or 'always'"),
        ("max.bytes", "5", "spark.headwater.log.max.bytes: .*greater than or equal to 65536"),
        ("max.age", "0", "spark.headwater.log.max.age: .*greater than 0"),
        ("max.byte", "5", "no key spark.headwater.log.max.byte: did you mean spark.headwater.log.max.bytes"),
    ],
)
def test_a_wrong_key_is_reported_and_its_default_holds(log: Log, key: str, value: str, words: str) -> None:
    listener = log.listener(**{key: value})
    ((cause, detail),) = log.context.problems
    assert cause == "configuration"
    assert re.search(words, detail)
    listener.handle(ALL)
    assert listener.close(60)
    assert len(log.sequences()) == len(ALL)


def test_a_place_that_goes_wrong_later_is_terminal(log: Log) -> None:
    listener = log.listener()
    log.directory.rmdir()
    log.directory.write_text("a file")
    with pytest.raises(TerminalError, match=r"can't be written to .*: name a directory on a local disk"):
        listener.handle(ALL)


@pytest.mark.parametrize("number", [errno.ENOENT, errno.EACCES, errno.EROFS])
def test_a_place_where_nothing_can_be_made_any_more_is_terminal(log: Log, number: int) -> None:
    class Gone(Disk):
        def make_directory(self, path: Path, mode: int = 0o777, *, parents: bool = True) -> None:
            raise OSError(number, os.strerror(number))

    log.disk = Gone()
    listener = log.listener()
    with pytest.raises(TerminalError, match=rf"can't be written to \({os.strerror(number)}\)"):
        listener.handle(ALL)


def test_without_a_directory_it_is_in_the_users_data() -> None:
    assert str(data_directory({})) == "~/.local/share/headwater/log"
    assert str(data_directory({"XDG_DATA_HOME": "/data"})) == "/data/headwater/log"
    assert str(data_directory({"XDG_DATA_HOME": "/data", "HEADWATER_DATA": "/own"})) == "/own/log"


def test_the_default_directory_is_made(tmp_path: Path, executor: Executor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    for variable in ("HEADWATER_DATA", "XDG_DATA_HOME"):
        monkeypatch.delenv(variable, raising=False)
    listener = LogFactory().create(MemoryContext("log", {}, executor))
    listener.handle(ALL)
    assert listener.close(60)
    assert len(records_of(tmp_path / ".local/share/headwater/log")) == len(ALL)


VICTIM = """
import sys
from concurrent.futures import ThreadPoolExecutor
from headwater.publishers.log import LogFactory
from headwater.spi import RecordBatch
from headwater.testing.examples import EXAMPLES
from headwater.testing.listeners import batch
from headwater.testing.memory import MemoryContext
context = MemoryContext("log", {"dir": sys.argv[1], "fsync": sys.argv[2]}, ThreadPoolExecutor(1))
listener = LogFactory().create(context)
for record in batch(EXAMPLES):
    listener.handle(RecordBatch((record,)))
    print(listener.flush(10.0), flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize("fsync", ["none", "interval", "always"])
@pytest.mark.slow
def test_what_was_answered_survives_kill_9(log: Log, fsync: str) -> None:
    """The next listener is handed all again, as where the cursor had not moved yet: then everything is there."""
    command = [sys.executable, "-c", VICTIM, str(log.directory), fsync]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as victim:
        assert victim.stdout
        answers = [int(victim.stdout.readline()) for _ in ALL]
        victim.send_signal(signal.SIGKILL)
        assert victim.wait(timeout=60) == -signal.SIGKILL
    assert answers == [each.position for each in ALL]
    assert log.sequences() == numbers_of(list(ALL))
    listener = log.listener()
    listener.handle(ALL)
    assert listener.close(60)
    assert log.sequences() == 2 * numbers_of(list(ALL))
    assert LocalLog.open(log.directory).partitions() == ["partition-0000"], "the dead one's partition is taken over"
