"""A reader beside a writer at full speed in another process, which is killed in the midst of it, again and again."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from headwater.journal import Fsync, Journal, JournalOptions, JournalReader, Tail

WRITER = """
import sys
from headwater.journal import *
def value(offset):
    return b"%d." % offset + bytes([offset % 256]) * (offset * 131 % 9000)
journal = Journal.open(sys.argv[1], JournalOptions(fsync=sys.argv[2], segment_bytes=60_000, reserve_bytes=0))
while True:
    offset = journal.append(value(journal.next_offset))
    print(offset)
    first = journal.next_offset
    offsets = journal.append_many([value(first + number) for number in range(20)])
    print(offsets[-1], flush=True)
"""


def value(offset: int) -> bytes:
    return b"%d." % offset + bytes([offset % 256]) * (offset * 131 % 9000)


class Watcher:
    """Reads in a thread of its own until it has seen a record that says stop."""

    def __init__(self, tail: Tail) -> None:
        self.seen: list[tuple[int, bytes]] = []
        self.missing: list[object] = []
        self._tail = tail
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        while not self.seen or self.seen[-1][1] != b"stop":
            batch = self._tail.read(timeout=1)
            self.missing += batch.missing
            self.seen += [(record.offset, record.value) for record in batch.records]

    def join(self) -> None:
        self._thread.join(60)
        assert not self._thread.is_alive()


def write_and_die(directory: Path, fsync: Fsync, lines: int) -> int:
    """The last offset a writer was answered before it was killed."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", WRITER, str(directory), fsync.value]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE) as writer:
        assert writer.stdout is not None
        emitted = [int(writer.stdout.readline()) for _ in range(lines)]
        os.kill(writer.pid, signal.SIGKILL)
        whole = [line for line in writer.stdout.read().split(b"\n")[:-1] if line]
    return int(whole[-1]) if whole else emitted[-1]


@pytest.mark.parametrize("fsync", [Fsync.INTERVAL, Fsync.ALWAYS])
@pytest.mark.slow
def test_a_reader_beside_writers_that_are_killed(tmp_path: Path, fsync: Fsync) -> None:
    options = JournalOptions(fsync=Fsync.NONE, reserve_bytes=0)
    with JournalReader.open(tmp_path).tail(0) as tail:
        watcher = Watcher(tail)
        emitted = -1
        try:
            for lines in (20, 31, 42):
                last = write_and_die(tmp_path, fsync, lines)
                assert last > emitted
                emitted = last
        finally:
            with Journal.open(tmp_path, options) as journal:
                journal.append(b"stop")
            watcher.join()
    assert not watcher.missing
    assert [offset for offset, _ in watcher.seen] == list(range(len(watcher.seen)))
    assert len(watcher.seen) > emitted + 1
    assert all(seen == value(offset) for offset, seen in watcher.seen[:-1])
