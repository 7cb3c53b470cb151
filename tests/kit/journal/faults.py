"""Faults at every system call of a journal, and a scripted workload with a ledger of what was acknowledged.

The law: every acknowledged record comes out of every reader, in order, once, and nothing that nobody appended does.
"""

from __future__ import annotations

import errno
import os
import signal
import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from enum import Enum
from functools import partial
from pathlib import Path
from typing import ParamSpec, TypeVar

from typing_extensions import Buffer

from headwater.journal import (
    Cursor,
    Fsync,
    Journal,
    JournalEntry,
    JournalOptions,
    JournalReader,
    JournalRecord,
    MissingReason,
    OsFiles,
    StorageError,
    SyncFailedError,
    Tail,
)

P = ParamSpec("P")
T = TypeVar("T")


class Fault(Enum):
    """What happens at the chosen call."""

    NO_ROOM = "ENOSPC, nothing done"
    IO_ERROR = "EIO, nothing done"
    LATE_ERROR = "EIO, though all of it was done"
    SHORT = "a write does a part; the next does the rest"
    SHORT_THEN_NO_ROOM = "a write does a part, the rest has no room"
    KILL_BEFORE = "SIGKILL before the call"
    KILL_WITHIN = "SIGKILL when a write did a part"
    KILL_AFTER = "SIGKILL after the call"


KILLS = frozenset({Fault.KILL_BEFORE, Fault.KILL_WITHIN, Fault.KILL_AFTER})
PARTIAL = frozenset({Fault.SHORT, Fault.SHORT_THEN_NO_ROOM, Fault.KILL_WITHIN})
_NUMBERS = {Fault.NO_ROOM: errno.ENOSPC, Fault.SHORT_THEN_NO_ROOM: errno.ENOSPC}


class FaultyFiles(OsFiles):
    """The real calls, counted; call number `at` and the `lasting - 1` after it have the fault.

    Only calls of the thread that made it count, so that the number of a call is the same in every run.
    """

    def __init__(self, at: int = -1, fault: Fault = Fault.IO_ERROR, lasting: int = 1) -> None:
        self.calls = 0
        self.struck = 0
        self._from, self._until, self._fault = at, at + lasting, fault
        self._thread = threading.get_ident()

    def heal(self) -> None:
        """From now on all is well."""
        self._until = -1

    def _is_struck(self) -> bool:
        if threading.get_ident() != self._thread:
            return False
        number, self.calls = self.calls, self.calls + 1
        struck = self._from <= number < self._until
        self.struck += struck
        return struck

    def _do(self, call: Callable[P, T], *arguments: P.args, **named: P.kwargs) -> T:
        return self._fail(call, *arguments, **named) if self._is_struck() else call(*arguments, **named)

    def _fail(self, call: Callable[P, T], *arguments: P.args, **named: P.kwargs) -> T:
        if self._fault is Fault.LATE_ERROR:
            call(*arguments, **named)
        if self._fault is Fault.KILL_AFTER:
            with suppress(OSError):
                call(*arguments, **named)
        if self._fault in KILLS:
            os.kill(os.getpid(), signal.SIGKILL)
        if self._fault is Fault.SHORT:
            return call(*arguments, **named)
        number = _NUMBERS.get(self._fault, errno.EIO)
        raise OSError(number, os.strerror(number))

    def write(self, descriptor: int, data: Buffer, position: int, /) -> int:
        if not self._is_struck():
            return os.pwrite(descriptor, data, position)
        if self._fault not in PARTIAL or self.struck > 1:
            return self._fail(os.pwrite, descriptor, data, position)
        written = os.pwrite(descriptor, bytes(data)[: max(1, len(bytes(data)) * 2 // 3)], position)
        if self._fault is Fault.KILL_WITHIN:
            os.kill(os.getpid(), signal.SIGKILL)
        return written

    def open(self, path: Path, flags: int) -> int:
        if self._fault is Fault.LATE_ERROR:  # no kernel opens and then says it didn't
            return super().open(path, flags)
        return self._do(super().open, path, flags)

    def duplicate(self, descriptor: int) -> int:
        if self._fault is Fault.LATE_ERROR:
            return super().duplicate(descriptor)
        return self._do(super().duplicate, descriptor)

    def close(self, descriptor: int) -> None:
        if self._fault in KILLS:
            return self._do(super().close, descriptor)
        super().close(descriptor)  # the kernel gives a descriptor up whatever close says
        return self._do(lambda: None)

    def size(self, descriptor: int) -> int:
        return self._do(super().size, descriptor)

    def read(self, descriptor: int, count: int, position: int) -> bytes:
        return self._do(super().read, descriptor, count, position)

    def truncate(self, descriptor: int, size: int) -> None:
        self._do(super().truncate, descriptor, size)

    def allocate(self, descriptor: int, size: int) -> None:
        self._do(super().allocate, descriptor, size)

    def sync(self, descriptor: int) -> None:
        """Counted and struck, but nothing is brought to the disk: what a power cut leaves can't be tried here."""
        self._do(os.fstat, descriptor)

    def rename(self, source: Path, target: Path) -> None:
        self._do(super().rename, source, target)

    def remove(self, path: Path) -> None:
        self._do(super().remove, path)

    def names(self, directory: Path) -> list[str]:
        return self._do(super().names, directory)

    def make_directory(self, path: Path, mode: int = 0o777, *, parents: bool = True) -> None:
        self._do(partial(super().make_directory, parents=parents), path, mode)


class Ledger:
    """What a workload was answered: which records are in, which may be."""

    def __init__(self) -> None:
        self.acknowledged: dict[int, bytes] = {}
        self.attempted: set[bytes] = set()
        self.committed = 0

    def attempt(self, values: Sequence[bytes]) -> None:
        self.attempted.update(values)

    def acknowledge(self, offset: int, value: bytes) -> None:
        assert self.acknowledged.setdefault(offset, value) == value, f"offset {offset} was given twice"

    def commit(self, position: int) -> None:
        self.committed = position


class Workload:
    """Opens, appends one and many, rolls, compacts, reads, commits, trims, closes, opens again; the ledger notes all.

    What fails with a StorageError is gone past, as a program would; any other error is the journal's fault.
    """

    def __init__(self, directory: Path, files: FaultyFiles, ledger: Ledger, fsync: Fsync) -> None:
        self._directory = directory
        self._files = files
        self._ledger = ledger
        self._options = JournalOptions(
            fsync=fsync,
            fsync_interval=60,
            segment_bytes=420,
            max_bytes=None,
            drop_consumed=True,
            reserve_bytes=4096,
        )
        self._journal: Journal | None = None
        self._made = 0
        self.errors: list[StorageError] = []
        self.after_each: Callable[[], object] = list

    def run(self) -> None:
        """The whole script."""
        self.one(3)
        self.many(7)
        self.consume(4)
        self.one(1)
        self.flush()
        self.close()
        self.one(2)
        self.consume(5)
        self.many(3)
        self.one(1)

    def close(self) -> None:
        journal, self._journal = self._journal, None
        if journal is not None:
            journal.close()

    def one(self, count: int) -> None:
        for number in range(count):
            self._attempt(partial(self._append, keyed=number % 2 == 0))

    def many(self, count: int) -> None:
        self._attempt(lambda journal: self._append_many(journal, count))

    def consume(self, count: int) -> None:
        self._attempt(lambda journal: self._consume(journal, count))

    def flush(self) -> None:
        self._attempt(lambda journal: journal.flush())

    def _attempt(self, step: Callable[[Journal], object]) -> None:
        try:
            if self._journal is None:
                self._journal = Journal.open(self._directory, self._options, files=self._files)
            step(self._journal)
        except StorageError as error:
            self.errors.append(error)
        self.after_each()

    def _values(self, count: int) -> list[bytes]:
        numbers = range(self._made, self._made + count)
        self._made += count
        values = [b"%04d" % number + bytes([number % 251]) * (number * 37 % 90) for number in numbers]
        self._ledger.attempt(values)
        return values

    def _append(self, journal: Journal, *, keyed: bool) -> None:
        (value,) = self._values(1)
        key, headers = (b"key", [("kind", b"\x00\xff"), ("n", b"")]) if keyed else (None, ())
        self._ledger.acknowledge(journal.append_emergency(value, key=key, headers=headers), value)

    def _append_many(self, journal: Journal, count: int) -> None:
        values = self._values(count)
        entries = [JournalEntry(value, b"k") if number % 3 == 0 else value for number, value in enumerate(values)]
        before = journal.next_offset
        try:
            offsets: Sequence[int] = journal.append_many(entries)
        except SyncFailedError:
            raise
        except StorageError as error:
            for offset, value in self._found(before, values[: error.appended]):
                self._ledger.acknowledge(offset, value)
            raise
        assert len(offsets) == count
        for offset, value in zip(offsets, values, strict=True):
            self._ledger.acknowledge(offset, value)

    def _found(self, position: int, values: Sequence[bytes]) -> Iterable[tuple[int, bytes]]:
        """The offsets of the first records of a batch, which a StorageError counts and doesn't name."""
        with JournalReader.open(self._directory).tail(position) as tail:
            records = read_all(tail)[0]
        assert [record.value for record in records[: len(values)]] == list(values)
        return [(record.offset, record.value) for record in records[: len(values)]]

    def _consume(self, journal: Journal, count: int) -> None:
        with journal.cursor("reader") as cursor:
            taken = cursor.committed
            while taken < cursor.committed + count and (batch := cursor.read(2)):
                taken = batch.position
            self._ledger.commit(taken)  # before: a commit that fails may hold all the same
            cursor.commit(taken)
        journal.trim()


def read_all(tail: Tail | Cursor) -> tuple[list[JournalRecord], list[tuple[int, int, MissingReason]]]:
    """Everything there is now, and what was reported as lost."""
    records: list[JournalRecord] = []
    lost: list[tuple[int, int, MissingReason]] = []
    while batch := tail.read(3):
        lost += [(each.first, each.end_offset, each.reason) for each in batch.missing]
        records += batch.records
    return records, lost


def check_law(ledger: Ledger, records: Sequence[JournalRecord], begin: int) -> None:
    """Hold what came out from offset `begin` on against the ledger."""
    offsets = [record.offset for record in records]
    assert offsets == sorted(set(offsets)), "out of order, or twice"
    values = [record.value for record in records]
    assert len(values) == len(set(values)), "one record under two offsets"
    assert set(values) <= ledger.attempted, "nobody appended this"
    out = {record.offset: record.value for record in records}
    expected = {offset: value for offset, value in ledger.acknowledged.items() if offset >= begin}
    assert {offset: out.get(offset) for offset in expected} == expected
