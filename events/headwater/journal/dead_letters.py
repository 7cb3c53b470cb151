"""Dead letters in a local log: of a driver's listeners, and of a writer whose store has no table for them.

A letter has the bytes, key and headers of its record, and a header that says why. So `headwater events cat` shows it,
and whatever reads a local log can take it up. A cursor of the log's says which letters are done with.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Final

from headwater.journal.errors import LockedError, RecordTooLargeError
from headwater.journal.files import OS_FILES, Files
from headwater.journal.log import LocalLog
from headwater.journal.options import Fsync, JournalOptions
from headwater.journal.position import committed_positions
from headwater.journal.record import LARGEST_BODY, JournalEntry, JournalRecord
from headwater.journal.writer import Journal

WHY: Final = "refused"
"""The header that tells why."""
_CURSOR: Final = "dead-letters"
_ROOM: Final = 64 << 10
"""What a record has beside its value, at most."""
_AT_ONCE: Final = 1_000
_MOST_BYTES: Final = 16 << 20


class DeadLetterLog:
    """The dead letters in one directory. What `keep` returned from is on the disk."""

    def __init__(self, directory: Path, *, max_bytes: int | None = None, files: Files = OS_FILES) -> None:
        """Above `max_bytes` the oldest letters go; without it none does."""
        self.directory: Final = directory
        self._files = files
        self._largest = LARGEST_BODY if max_bytes is None else min(LARGEST_BODY, max_bytes // 8)
        self._options = JournalOptions(
            fsync=Fsync.ALWAYS,
            max_bytes=max_bytes,
            max_record_bytes=self._largest,
            drop_consumed=True,
            reserve_bytes=0,
        )

    def keep(self, letters: Iterable[tuple[JournalEntry, str]]) -> None:
        """Append records, each with the reason why it is here. A HeadwaterError where the disk takes them not."""
        with self._open().writer() as journal:
            for record, why in letters:
                self._append(journal, record, why)

    def letters(self) -> Iterator[JournalRecord]:
        """Yield the letters that wait, in the order of each partition."""
        if not self.directory.is_dir():
            return
        log = self._open()
        for partition in log.partitions():
            reader = log.reader(partition)
            done = committed_positions(self._files, self.directory / partition).get(_CURSOR, 0)
            with reader.tail(max(done, reader.first_offset())) as tail:
                while batch := tail.read():
                    yield from batch.records

    def remove(self, is_done: Callable[[JournalRecord], bool]) -> None:
        """Remove letters. Those that stay are appended anew before the cursor passes them, so none is ever absent."""
        log = self._open()
        ends = {partition: log.reader(partition).next_offset() for partition in log.partitions()}
        with log.group(_CURSOR) as member:
            while batch := member.poll(_AT_ONCE, max_bytes=_MOST_BYTES):
                if set(ends) - set(member.assigned):
                    break
                if stay := [record for _, record in batch.records if not is_done(record)]:
                    with log.writer() as journal:
                        for record in stay:
                            journal.append(record.value, key=record.key, headers=record.headers)
                member.commit(batch.positions)
                if all(at >= ends.get(partition, 0) for partition, at in member.committed.items()):
                    break
            others = set(ends) - set(member.assigned)
        if others:
            raise LockedError(f"another process works on the dead letters in {self.directory}: wait until it has ended")
        log.trim()

    def _open(self) -> LocalLog:
        return LocalLog.open(self.directory, self._options, files=self._files)

    def _append(self, journal: Journal, record: JournalEntry, why: str) -> None:
        """Append a record. One that no log takes, such as one with a megabyte of headers, goes without key and headers,
        and is cut where it has to be."""
        try:
            journal.append(record.value, key=record.key, headers=(*record.headers, (WHY, why.encode())))
        except RecordTooLargeError as e:
            value = record.value[: self._largest - _ROOM]
            words = f"{why} (kept are {len(value)} of its {len(record.value)} bytes, without key and headers: {e})"
            journal.append(value, headers=((WHY, words.encode()),))
