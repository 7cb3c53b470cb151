"""A durable reader: it goes on where it last committed, whoever reads under its name next."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from enum import Enum
from pathlib import Path

from headwater.journal.errors import ClosedError, CursorError, translate_os_errors
from headwater.journal.files import OS_FILES, Closing, Files
from headwater.journal.lock import FileLock
from headwater.journal.options import Fsync
from headwater.journal.position import DurablePosition, cursor_stem, make_cursors_directory
from headwater.journal.reader import JournalBatch, Tail, Wait
from headwater.journal.segment import list_bases


class CursorStart(str, Enum):
    """Where a cursor begins that has never committed."""

    EARLIEST = "earliest"
    LATEST = "latest"


class Cursor(Closing):
    """Reads a journal and keeps its place on disk. One at a time per name, over all processes, by a lock.

    For one thread; `close` may come from another. What was read and not committed comes again after a restart.
    """

    def __init__(
        self, files: Files, directory: Path, name: str, *, start: int, durable: bool = True, wait: Wait | None = None
    ) -> None:
        stem = cursor_stem(directory, name)
        self.name = name
        self._durable = durable
        self._closed = False
        self._on_commit: Callable[[], None] | None = None
        self._directory = directory
        with translate_os_errors("opening cursor", stem):
            make_cursors_directory(files, directory)
            self._lock = FileLock.acquire(stem.with_name(f"{name}.lock"), f"cursor {name!r} of {directory}")
            self._position = self._take_up(files, start)
        self._tail = Tail(files, directory, self.committed, wait)

    def _take_up(self, files: Files, start: int) -> DurablePosition:
        try:
            position = DurablePosition(files, self._directory, self.name)
            if position.offset is None:
                position.commit(start, durable=self._durable)  # from now on nothing is cut that it hasn't read
        except BaseException:
            self._lock.release()
            raise
        return position

    @property
    def committed(self) -> int:
        """The offset at which reading would begin after a restart."""
        return self._position.offset or 0

    @property
    def position(self) -> int:
        """The offset of the next record `read` will look for."""
        return self._tail.position

    def read(self, max_records: int = 1000, max_bytes: int = 1024 * 1024, timeout: float = 0.0) -> JournalBatch:
        """The next records, at most so many and often fewer, and what is missing before them.

        Waits for the first up to `timeout` seconds.
        """
        self._check_open()
        return self._tail.read(max_records, max_bytes, timeout)

    def commit(self, position: int) -> None:
        """Everything before `position` is done with. After a StorageError that may be noted or not; try again."""
        self._check_open()
        if not self.committed <= position <= self.position:
            raise CursorError(
                f"cursor {self.name!r} of {self._directory} can't commit {position}: "
                f"it has committed {self.committed} and read up to {self.position}"
            )
        if position == self.committed:
            return
        with translate_os_errors("committing cursor", cursor_stem(self._directory, self.name)):
            self._position.commit(position, durable=self._durable)
        if self._on_commit is not None:
            self._on_commit()

    def rewind(self, position: int | None = None) -> None:
        """Read again from the committed position, or from an earlier one, which is committed first: then nothing that
        comes again is cut."""
        self._check_open()
        if position is not None and position < self.committed:
            with translate_os_errors("rewinding cursor", cursor_stem(self._directory, self.name)):
                self._position.commit(position, durable=self._durable)
        self._tail.seek(self.committed)

    def when_committed(self, call: Callable[[], None]) -> None:
        self._on_commit = call

    def close(self) -> None:
        """Let the next reader have the name. Nothing is committed by it."""
        self._closed = True
        self._tail.close()
        self._lock.release()

    def _check_open(self) -> None:
        if self._closed or not self._lock.held:
            raise ClosedError(f"cursor {self.name!r} of {self._directory} is closed, or belongs to a parent process")


def forget_position(files: Files, directory: Path, name: str) -> None:
    """Remove a cursor that nobody will read on with; a LockedError while somebody does."""
    stem = cursor_stem(directory, name)
    with translate_os_errors("removing cursor", stem):
        make_cursors_directory(files, directory)
        lock = FileLock.acquire(stem.with_name(f"{name}.lock"), f"cursor {name!r} of {directory}")
        try:
            DurablePosition(files, directory, name).remove()
        finally:
            lock.release()


def move_position(files: Files, directory: Path, old: str, new: str) -> None:
    """Have `new` read on where `old` would have; where both have a place the one that comes first. A LockedError while
    somebody reads with either of them; after a crash both may be there, and nothing is skipped."""
    stem = cursor_stem(directory, new)
    with ExitStack() as held, translate_os_errors("moving cursor", stem):
        make_cursors_directory(files, directory)
        for name in (old, new):
            lock = FileLock.acquire(stem.with_name(f"{name}.lock"), f"cursor {name!r} of {directory}")
            held.callback(lock.release)
        source, target = DurablePosition(files, directory, old), DurablePosition(files, directory, new)
        if source.offset is not None and (target.offset is None or source.offset < target.offset):
            target.commit(source.offset, durable=True)
        source.remove()


class JournalReader:
    """A journal as another process than its writer's sees it; it needs no lock and changes nothing but cursors."""

    def __init__(self, directory: Path, files: Files = OS_FILES) -> None:
        self.directory = directory
        self._files = files

    @classmethod
    def open(cls, directory: Path | str, *, files: Files = OS_FILES) -> JournalReader:
        return cls(Path(directory), files)

    def first_offset(self) -> int:
        """The oldest offset there is, or would be."""
        with translate_os_errors("reading", self.directory):
            return min(list_bases(self._files, self.directory), default=0)

    def next_offset(self) -> int:
        """The offset behind the last record that can be read now."""
        with translate_os_errors("reading", self.directory):
            bases = list_bases(self._files, self.directory)
        with Tail(self._files, self.directory, bases[-1] if bases else 0) as tail:
            while tail.read(10_000):
                pass
            return tail.position

    def tail(self, position: int) -> Tail:
        """Read from an offset on, keeping no place."""
        return Tail(self._files, self.directory, position)

    def cursor(
        self, name: str, *, start: CursorStart | int = CursorStart.EARLIEST, fsync: Fsync = Fsync.INTERVAL
    ) -> Cursor:
        """A durable reader, which begins at an offset if it never committed; a LockedError where another one has the
        name."""
        begin = start
        if isinstance(begin, CursorStart):
            begin = self.first_offset() if begin is CursorStart.EARLIEST else self.next_offset()
        return Cursor(self._files, self.directory, name, start=begin, durable=fsync is not Fsync.NONE)
