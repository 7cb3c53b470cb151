"""Writing: offsets, times, segments. Not thread-safe and never syncs; `writer.Journal` does both.

After a write that failed, the segment's end is treated as after a crash: records that are whole stay and count, the
rest is cut off, and the caller is informed how many are in. Where that fails too, nobody knows what the file holds: the
segment is left alone, and the offsets that may be in it are never given again.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path

from headwater.journal.errors import StorageError, storage_error
from headwater.journal.files import OS_FILES, Files, close_quietly, read_file, sync_path
from headwater.journal.options import JournalOptions
from headwater.journal.record import HEAD_SIZE, JournalEntry, RecordHeaders, encode, encode_batch, encode_plain
from headwater.journal.recovery import whole_records
from headwater.journal.segment import HEADER_SIZE, Segment, SegmentHeader, create_segment, seed_of, segment_path


class SyncWork:
    """What one sync has to bring to the disk: taken under the journal's lock, done outside it."""

    def __init__(self, files: Files, paths: list[Path], descriptor: int) -> None:
        self._files = files
        self._paths = paths
        self._descriptor = descriptor

    def run(self) -> None:
        try:
            for path in self._paths:
                sync_path(self._files, path)
            if self._descriptor >= 0:
                self._files.sync(self._descriptor)
        finally:
            if self._descriptor >= 0:
                close_quietly(self._files, self._descriptor)


class Appender:
    """The end of a journal at which it grows. `segments` are all there are, the last being the one written to."""

    def __init__(self, files: Files, directory: Path, options: JournalOptions, segments: list[Segment]) -> None:
        self.segments = segments
        self.next_offset = 0
        self.continues: int | None = None
        """Where the acknowledged offsets end, if not at `next_offset`."""
        self.last_time = 0
        self.on_roll: Callable[[], None] = _ignore_append
        self._files = files
        self._write_at = files.write
        self.directory = directory
        self._clock = options.clock
        self._limit = options.segment_size
        self._current = segments[-1] if segments else Segment(-1, directory, 0, 0)
        self._descriptor = -1
        self._seed = 0
        self._synced_size = 0
        self._unsynced: list[Path] = []

    def resume(self, segment: Segment, descriptor: int) -> None:
        """Go on writing at the end of a segment."""
        self._current = segment
        self._descriptor = descriptor
        self._seed = seed_of(segment.base)
        self._synced_size = 0

    def append(self, value: bytes, key: bytes | None, headers: RecordHeaders) -> int:
        """Write one record; its offset. Every capture waits for this, so what other methods share is written out."""
        segment = self._current
        if self._descriptor < 0 or segment.size + HEAD_SIZE + len(value) > self._limit:
            segment = self._make_room()
        time = self._clock()
        if time > self.last_time:
            self.last_time = time
        else:
            time = self.last_time
        offset = self.next_offset
        if key is None and not headers:
            frame = encode_plain(value, offset, time, self._seed + segment.size)
        else:
            frame = encode(value, key, headers, offset=offset, time=time, seed=self._seed + segment.size)
        self._write(segment, frame, 1)
        return offset

    def append_many(self, entries: Sequence[bytes | JournalEntry]) -> range:
        """Write records in order, as many at once as a segment has room for; their offsets."""
        done = 0
        try:
            while done < len(entries):
                done += self._append_some(entries, done)
        except StorageError as error:
            error.appended += done
            raise
        return range(self.next_offset - done, self.next_offset)

    def _append_some(self, entries: Sequence[bytes | JournalEntry], done: int) -> int:
        segment = self._current
        if self._descriptor < 0 or segment.size + HEAD_SIZE > self._limit:
            segment = self._make_room()
        size = segment.size
        rest = islice(entries, done, None) if done else entries
        chunks = encode_batch(rest, self.next_offset, self._tick(), self._seed + size, self._limit - size)
        self._write(segment, b"".join(chunks), len(chunks) // 2)
        return len(chunks) // 2

    def _tick(self) -> int:
        self.last_time = max(self.last_time, self._clock())
        return self.last_time

    def _make_room(self) -> Segment:
        """The segment to write to, a new one unless the current one is empty: that takes any record."""
        if self._descriptor < 0 or self.next_offset > self._current.base:
            self.roll()
        return self._current

    def _write(self, segment: Segment, data: bytes, count: int) -> None:
        try:
            written = self._write_at(self._descriptor, data, segment.size)
            while written != len(data):
                written += self._write_at(self._descriptor, data[written:], segment.size + written)
        except OSError as error:
            self._repair(segment, count, error)
            return
        except BaseException:  # an interrupt may come between the write and its being counted
            with contextlib.suppress(StorageError):
                self._repair(segment, count, OSError("interrupted"))
            raise
        segment.size += written
        segment.newest = self.last_time
        self.next_offset += count

    def _repair(self, segment: Segment, count: int, cause: OSError) -> None:
        """Find out what a failed write left; returns only if every record turned out to be in."""
        try:
            whole, end = whole_records(self._files, segment.path, segment.base, segment.size, self.next_offset)
        except OSError:
            self.continues = self.next_offset
            self.next_offset += count
            self.seal()
            raise storage_error(cause, "appending to", segment.path, unknown=True) from cause
        segment.size = end
        segment.newest = self.last_time
        self.next_offset += whole
        if whole < count:
            self._cut(segment)
            raise storage_error(cause, "appending to", segment.path, appended=whole) from cause

    def _cut(self, segment: Segment) -> None:
        try:
            self._files.truncate(self._descriptor, segment.size)
        except OSError:
            self.seal()  # the torn rest stays behind the last record of a segment that gets no more

    def roll(self) -> None:
        """Go on in a new segment; the old one stays in use if that fails."""
        base = self.next_offset
        if self.segments and base <= self.segments[-1].base:
            base = self.segments[-1].base + 1
        continues = self.next_offset if self.continues is None else self.continues
        header = SegmentHeader(base, continues, self._tick())
        try:
            segment, descriptor = create_segment(self._files, self.directory, header)
        except OSError as error:
            self._give_up(header)
            raise storage_error(error, "starting a segment in", self.directory) from error
        except BaseException:  # an interrupt may come after the making
            self._give_up(header)
            raise
        self.seal()
        self.segments.append(segment)
        self.next_offset, self.continues = base, None
        self._unsynced.append(self.directory)
        self.resume(segment, descriptor)
        self.on_roll()

    def _give_up(self, header: SegmentHeader) -> None:
        """A segment couldn't be made. If it is there all the same, readers may be in it: no way back."""
        path = segment_path(self.directory, header.base)
        with contextlib.suppress(OSError):
            if read_file(self._files, path, 1) is None:
                return
        self.seal()
        self.segments.append(Segment(header.base, path, HEADER_SIZE, header.created))

    def seal(self) -> None:
        """Write no more to the current segment; the next append starts another."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor < 0:
            return
        if self._current.size != self._synced_size:
            self._unsynced.append(self._current.path)
        close_quietly(self._files, descriptor)

    def begin_sync(self) -> SyncWork | None:
        """Everything written and not yet synced, or None."""
        dirty = self._descriptor >= 0 and self._current.size != self._synced_size
        if not dirty and not self._unsynced:
            return None
        descriptor = self._files.duplicate(self._descriptor) if dirty else -1
        if dirty:
            self._synced_size = self._current.size
        paths, self._unsynced = self._unsynced, []
        return SyncWork(self._files, paths, descriptor)

    def sync_failed(self) -> None:
        """The kernel may now call pages clean that never reached the disk: no later fsync of this file would count."""
        self.seal()
        self._unsynced = [self.directory]

    def forget(self) -> None:
        """In a forked child: give up the parent's file without touching it."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            OS_FILES.close(descriptor)


def _ignore_append() -> None:
    """Nobody wants to know."""
