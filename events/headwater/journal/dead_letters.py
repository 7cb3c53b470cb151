"""Dead letters in a local log: of a driver's listeners, and of a writer whose store has no table for them.

A letter has the bytes, key and headers of its record, and a header that says why. So `headwater events cat` shows it,
and whatever reads a local log can take it up.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from headwater.journal.errors import RecordTooLargeError
from headwater.journal.files import OS_FILES, Files
from headwater.journal.log import LocalLog
from headwater.journal.options import Fsync, JournalOptions
from headwater.journal.record import LARGEST_BODY, JournalEntry
from headwater.journal.writer import Journal

WHY: Final = "refused"
"""The header that tells why."""
_ROOM: Final = 64 << 10
"""What a record has beside its value, at most."""


class DeadLetterLog:
    """The dead letters in one directory. What `keep` returned from is on the disk."""

    def __init__(self, directory: Path, *, max_bytes: int | None = None, files: Files = OS_FILES) -> None:
        """Above `max_bytes` the oldest letters go; without it none does."""
        self._directory = directory
        self._files = files
        self._largest = LARGEST_BODY if max_bytes is None else min(LARGEST_BODY, max_bytes // 8)
        self._options = JournalOptions(
            fsync=Fsync.ALWAYS, max_bytes=max_bytes, max_record_bytes=self._largest, reserve_bytes=0
        )

    def keep(self, letters: list[tuple[JournalEntry, str]]) -> None:
        """Append records, each with the reason why it is here. A HeadwaterError where the disk takes them not."""
        with LocalLog.open(self._directory, self._options, files=self._files).writer() as journal:
            for record, why in letters:
                self._append(journal, record, why)

    def _append(self, journal: Journal, record: JournalEntry, why: str) -> None:
        """Append a record. One that no log takes, such as one with a megabyte of headers, goes without key and headers,
        and is cut where it has to be."""
        try:
            journal.append(record.value, key=record.key, headers=(*record.headers, (WHY, why.encode())))
        except RecordTooLargeError as e:
            value = record.value[: self._largest - _ROOM]
            words = f"{why} (kept are {len(value)} of its {len(record.value)} bytes, without key and headers: {e})"
            journal.append(value, headers=((WHY, words.encode()),))
