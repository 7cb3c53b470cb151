"""Random lives of a journal against a plain model: appends, rolls, cursors, retention, reopenings, corrupt bytes."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from headwater.journal import (
    Cursor,
    Fsync,
    Journal,
    JournalBatch,
    JournalEntry,
    JournalOptions,
    JournalReader,
    JournalRecord,
    MissingReason,
    MissingRecords,
)
from headwater.journal.record import HEAD_SIZE
from headwater.journal.segment import HEADER_SIZE
from tests.kit.effort import examples

pytestmark = pytest.mark.slow

VALUES = st.binary(max_size=120)
HEADERS = st.lists(st.tuples(st.text(max_size=5), st.binary(max_size=9)), max_size=2).map(tuple)
ENTRIES = st.one_of(VALUES, st.builds(JournalEntry, VALUES, st.none() | st.binary(max_size=9), HEADERS))


NUMBERS = st.integers(0, 10_000)


@dataclass(frozen=True)
class Written:
    """A record as the model knows it, and where its bytes are."""

    value: bytes
    key: bytes | None
    headers: tuple[tuple[str, bytes], ...]
    path: Path
    start: int
    end: int


def size_of(path: Path) -> int:
    """The size of a segment, 0 where it was dropped in this moment."""
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


class JournalLife(RuleBasedStateMachine):
    """What must hold of a journal whatever happens to it."""

    def __init__(self) -> None:
        super().__init__()
        self.directory = Path(tempfile.mkdtemp())
        self.now = 1_000_000
        self.written: dict[int, Written] = {}
        self.flips: set[tuple[Path, int]] = set()
        self.positions = {"a": 0, "b": 0}
        self.cursors: dict[str, Cursor] = {}

    @initialize(limited=st.booleans(), consumed=st.booleans())
    def begin(self, limited: bool, consumed: bool) -> None:
        self.options = JournalOptions(
            fsync=Fsync.NONE,
            segment_bytes=500,
            max_bytes=8192 if limited else None,
            drop_consumed=consumed,
            reserve_bytes=0,
            clock=lambda: self.now,
        )
        self.journal = Journal.open(self.directory, self.options)

    @rule(step=st.integers(-50, 1000))
    def time_passes(self, step: int) -> None:
        self.now += step

    @rule(entry=ENTRIES)
    def append(self, entry: bytes | JournalEntry) -> None:
        value, key, headers = entry if isinstance(entry, JournalEntry) else JournalEntry(entry)
        before = self.journal.next_offset
        offset = self.journal.append(value, key=key, headers=headers)
        assert offset >= before
        self.note([offset], [entry])

    @rule(entries=st.lists(ENTRIES, max_size=12))
    def append_many(self, entries: list[bytes | JournalEntry]) -> None:
        offsets = self.journal.append_many(entries)
        assert len(offsets) == len(entries)
        self.note(list(offsets), entries)

    def note(self, offsets: list[int], entries: list[bytes | JournalEntry]) -> None:
        """Keep where the bytes of each must be: frames fill the newest segments backwards from their ends."""
        ends = {path: size_of(path) for path in self.directory.glob("*.segment")}
        segments = sorted(ends, reverse=True)
        for offset, entry in reversed(list(zip(offsets, entries, strict=True))):
            assert offset not in self.written, "an offset was given twice"
            value, key, headers = entry if isinstance(entry, JournalEntry) else JournalEntry(entry)
            path = next(each for each in segments if int(each.name[:20]) <= offset)
            packed = sum(6 + len(name.encode()) + len(text) for name, text in headers)
            start = ends[path] - HEAD_SIZE - len(value) - len(key or b"") - packed
            self.written[offset] = Written(value, key, tuple(headers), path, start, ends[path])
            assert start >= HEADER_SIZE or not ends[path], (
                "the limits may have dropped it, else its bytes must be there"
            )
            ends[path] = start

    @rule(name=st.sampled_from(["a", "b"]), count=st.integers(1, 9), commit=st.booleans())
    def read(self, name: str, count: int, commit: bool) -> None:
        cursor = self.cursors.get(name)
        if cursor is None:
            cursor = self.cursors[name] = self.journal.cursor(name)
            assert cursor.committed >= self.positions[name]
        before = cursor.position
        batch = cursor.read(count)
        assert len(batch.records) <= count
        self.check(batch, before)
        if commit:
            cursor.commit(batch.position)
            self.positions[name] = batch.position

    @rule()
    def trim(self) -> None:
        self.journal.trim()
        if self.options.max_bytes is not None:
            assert self.journal.size <= self.options.max_bytes

    @rule()
    def reopen(self) -> None:
        for cursor in self.cursors.values():
            cursor.close()
        self.cursors.clear()
        assert self.journal.close()
        self.journal = Journal.open(self.directory, self.options)

    @precondition(lambda self: self.written)
    @rule(victim=NUMBERS, where=st.sampled_from(["header", *["record"] * 9]), byte=NUMBERS, flip=st.integers(1, 255))
    def corrupt(self, victim: int, where: str, byte: int, flip: int) -> None:
        """What is drawn depends on nothing that the journal does in the background, or no failure could be replayed."""
        record = self.written[sorted(self.written)[victim % len(self.written)]]
        start, end = (0, HEADER_SIZE) if where == "header" else (record.start, record.end)
        path, at = record.path, start + byte % max(1, end - start)
        if (path, at) in self.flips or end <= start:
            return
        with contextlib.suppress(FileNotFoundError), path.open("r+b") as file:  # the limits may have dropped it
            file.seek(at)
            old = file.read(1)[0]
            file.seek(at)
            file.write(bytes([old ^ flip]))
            self.flips.add((path, at))

    @invariant()
    def everything_comes_out(self) -> None:
        with JournalReader.open(self.directory).tail(0) as tail:
            before = tail.position
            while batch := tail.read(7):
                self.check(batch, before)
                before = batch.position

    def check(self, batch: JournalBatch, before: int) -> None:
        """Hold a batch that began at an offset against the model."""
        assert [record.offset for record in batch.records] == sorted({record.offset for record in batch.records})
        for record in batch.records:
            self.check_record(record)
        dropped = [each for each in batch.missing if each.reason is MissingReason.DROPPED]
        out = {record.offset for record in batch.records}
        for offset in range(before, batch.position):
            missing = offset in self.written and offset not in out
            gone = any(each.first <= offset < each.end_offset for each in dropped)
            assert not missing or gone or self.is_damaged(offset), f"{offset} doesn't come out, though nothing is wrong"
            if missing and not gone:
                assert any(self.tells(each, offset) for each in batch.missing), f"the damage of {offset} isn't told"
        for lost in batch.missing:
            self.check_lost(lost)

    def check_record(self, record: JournalRecord) -> None:
        expected = self.written[record.offset]
        assert (record.value, record.key, record.headers) == (expected.value, expected.key, expected.headers)

    def check_lost(self, lost: MissingRecords) -> None:
        assert lost.first <= lost.end_offset
        assert lost.reason is not MissingReason.MISSING
        if lost.reason is MissingReason.CORRUPT:
            damaged = [at for path, at in self.flips if path == lost.path and lost.start <= at < lost.end]
            assert damaged, f"{lost} is told, though nothing is wrong there"
            for offset in range(lost.first, lost.end_offset):
                assert offset not in self.written or self.is_damaged(offset), f"{lost} holds a sound record, {offset}"

    def is_damaged(self, offset: int) -> bool:
        record = self.written[offset]
        return any(path == record.path and record.start <= at < record.end for path, at in self.flips)

    def tells(self, lost: MissingRecords, offset: int) -> bool:
        record = self.written[offset]
        return lost.path == record.path and lost.start <= record.start < record.end <= lost.end

    def teardown(self) -> None:
        try:
            self.reopen()
            self.append(b"the last one")
            self.everything_comes_out()
            with JournalReader.open(self.directory).tail(max(self.written)) as tail:
                assert [record.value for record in tail.read().records] == [b"the last one"]
            self.journal.close()
        finally:
            shutil.rmtree(self.directory)


JournalLife.TestCase.settings = settings(
    max_examples=examples(60), stateful_step_count=30, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
TestJournalLife = JournalLife.TestCase
