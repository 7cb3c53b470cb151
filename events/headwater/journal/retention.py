"""Which segments may go, and their going. The last one always stays: it names the next offset."""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Sequence

from headwater.journal.appender import Appender
from headwater.journal.errors import StorageError
from headwater.journal.files import Files
from headwater.journal.options import JournalOptions
from headwater.journal.position import committed_positions
from headwater.journal.segment import Segment

_LOG = logging.getLogger(__name__)


def over_size(segments: Sequence[Segment], limit: int | None) -> int:
    """How many of the oldest have to go for the rest to be within the limit."""
    total = sum(segment.size for segment in segments)
    count = 0
    while limit is not None and total > limit and count < len(segments) - 1:
        total -= segments[count].size
        count += 1
    return count


def over_age(segments: Sequence[Segment], horizon: int) -> int:
    """How many of the oldest have no record appended at the horizon or later."""
    count = 0
    while count < len(segments) - 1 and segments[count].newest < horizon:
        count += 1
    return count


def count_consumed(segments: Sequence[Segment], positions: Sequence[int]) -> int:
    """How many of the oldest every cursor is past; none where there is no cursor."""
    if not positions:
        return 0
    slowest = min(positions)
    count = 0
    while count < len(segments) - 1 and segments[count + 1].base <= slowest:
        count += 1
    return count


class Retention:
    """Drops whole segments from a journal's old end, as its options say."""

    def __init__(self, files: Files, appender: Appender, mutex: threading.Lock, options: JournalOptions) -> None:
        self._files = files
        self._appender = appender
        self._mutex = mutex
        self._options = options
        self.busy = threading.Lock()
        """Held by whoever takes segments away."""

    def enforce(self) -> int:
        """Drop what may go, leaving room for the segment to come; the number of segments dropped."""
        with self.busy:
            self._retire_old_segment()
            with self._mutex:
                segments = list(self._appender.segments)
            return self._drop(segments[: self._count(segments)])

    def must_run(self) -> bool:
        """Whether the size limit is passed, because the background is late; asked under the mutex."""
        limit = self._options.max_bytes
        return limit is not None and not self.busy.locked() and over_size(self._appender.segments, limit) > 0

    def _count(self, segments: Sequence[Segment]) -> int:
        options = self._options
        spare = None if options.max_bytes is None else options.max_bytes - options.segment_size
        count = over_size(segments, spare)
        if options.max_age is not None:
            count = max(count, over_age(segments, self._horizon(options.max_age)))
        if options.drop_consumed and len(segments) > 1:
            positions = committed_positions(self._files, self._appender.directory)
            count = max(count, count_consumed(segments, list(positions.values())))
        return count

    def _horizon(self, max_age: float) -> int:
        return self._options.clock() - int(max_age * 1_000_000)

    def _retire_old_segment(self) -> None:
        """Where even the newest record is too old, a new segment lets the last one go."""
        max_age = self._options.max_age
        with self._mutex:
            last = self._appender.segments[-1]
            if max_age is not None and last.newest < self._horizon(max_age) and self._appender.next_offset > last.base:
                with contextlib.suppress(StorageError):  # then the next round, or the next append
                    self._appender.roll()

    def _drop(self, segments: Sequence[Segment]) -> int:
        """Oldest first, so that no hole is left if it is interrupted."""
        for segment in segments:
            with contextlib.suppress(FileNotFoundError):
                self._files.remove(segment.path)
            with self._mutex:
                self._appender.segments.remove(segment)
            _LOG.info("dropped %s", segment.path)
        return len(segments)
