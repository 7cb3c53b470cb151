"""Reading all of a journal to find out what of it is damaged: nothing is changed, and a writer may be at work in it.

Records come in batches, in flat memory. What is missing before them is reported as readers get it; beside that, what
only a writer's recovery would find, at the very end.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

from headwater.journal.errors import translate_os_errors
from headwater.journal.files import Files
from headwater.journal.lock import is_locked
from headwater.journal.position import damaged_positions
from headwater.journal.reader import JournalBatch, MissingReason, MissingRecords, Tail
from headwater.journal.recovery import is_torn, lost_at_end
from headwater.journal.scan import SegmentScanner
from headwater.journal.segment import list_bases, segment_path
from headwater.journal.writer import LOCK_NAME

_RECORDS, _BYTES = 5_000, 1 << 20
_LOOKS, _NAP = 5, 0.05


class Inspection:
    """One look at a journal, from its first record to its last."""

    def __init__(self, files: Files, directory: Path) -> None:
        self.bytes_read = 0
        self._files = files
        self.directory = directory

    def batches(self) -> Iterator[JournalBatch]:
        """Every record there is, and what is missing between them; at last, perhaps, a batch that has only the damage
        at the end. What a writer drops meanwhile is reported as DROPPED."""
        with translate_os_errors("reading", self.directory):
            bases = list_bases(self._files, self.directory)
        if not bases:
            return
        with Tail(self._files, self.directory, bases[0]) as tail:
            while batch := tail.read(_RECORDS, _BYTES):
                self.bytes_read = tail.bytes_read
                yield batch
            position = tail.position
        with translate_os_errors("reading", self.directory):
            damage = self._damaged_end(position)
        if damage is not None:
            yield JournalBatch((), (damage,), damage.end_offset)

    def damaged_cursors(self) -> list[Path]:
        """Position files that can't be read. A cursor of which one can't goes on with the other one, some records back;
        where neither can it begins anew."""
        with translate_os_errors("reading cursors of", self.directory):
            return damaged_positions(self._files, self.directory)

    def _damaged_end(self, position: int) -> MissingRecords | None:
        """What follows the last record, unless it is a record that is being written, or was when its writer died: that
        one was never acknowledged."""
        found = self._end(position)
        for _ in range(_LOOKS):
            if found is None or not is_locked(self.directory / LOCK_NAME):
                break
            time.sleep(_NAP)  # it may be finished by then
            found = self._end(position)
        return found

    def _end(self, position: int) -> MissingRecords | None:
        base = list_bases(self._files, self.directory)[-1]
        path = segment_path(self.directory, base)
        with SegmentScanner(self._files, path, base) as scanner:
            scanner.run_through()
            start, size = scanner.position, scanner.size()
            if start >= size or is_torn(scanner):
                return None
            first = max(position, scanner.offset)
            return MissingRecords(first, first + lost_at_end(scanner), MissingReason.CORRUPT, path, start, size)
