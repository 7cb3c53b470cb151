"""The journal as its writer has it: one per directory, held by a lock, for any number of threads."""

from __future__ import annotations

import errno
import logging
import os
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from headwater.journal.cursor import Cursor, CursorStart, forget_position
from headwater.journal.errors import (
    ClosedError,
    StorageError,
    StorageFullError,
    SyncFailedError,
    storage_error,
    translate_os_errors,
)
from headwater.journal.files import OS_FILES, Closing, Files
from headwater.journal.lock import FileLock
from headwater.journal.opening import Reserve, open_end
from headwater.journal.options import Fsync, JournalOptions
from headwater.journal.position import committed_positions
from headwater.journal.reader import Tail
from headwater.journal.record import JournalEntry, RecordHeaders, check_batch, check_sizes
from headwater.journal.retention import Retention
from headwater.journal.sync import BackgroundWorker, Syncer

_LOG = logging.getLogger(__name__)
LOCK_NAME = "lock"
_IDLE = 5.0  # seconds between looks at age and reserve, where nothing else wakes the keeper


class Journal(Closing):
    """An append-only sequence of records in a directory.

    What `append` returned for comes out of every reader, in order, once, also after the process was killed at any
    moment; after the machine died as `JournalOptions.fsync` says. In a process forked from the writer's it is closed.
    """

    def __init__(self, directory: Path, options: JournalOptions, files: Files, lock: FileLock) -> None:
        """Use `open`."""
        self.directory = directory
        self.options = options
        self._files = files
        self._writer_lock = lock
        self._mutex = threading.Lock()
        self._arrival = threading.Condition()
        self._waiting = 0
        self._closed: str | None = None
        self._is_barred = False
        """Nothing may be appended as it stands: it is closed, or the room that was set aside is in use."""
        self._flush_wanted = False
        self._overdue = False
        self._largest = options.max_record_bytes
        self._fsync = options.fsync
        self._always = options.fsync is Fsync.ALWAYS
        self._appender, self.recovered = open_end(files, directory, options)
        """What was found at the end of an existing journal."""
        self._syncer = Syncer(self._appender, self._mutex)
        self._retention = Retention(files, self._appender, self._mutex, options)
        self._reserve = Reserve(files, directory, options.reserve_bytes)
        self._reserve.renew()
        self._appender.on_roll = self._on_new_segment
        lock.on_fork = self._forget_in_child
        pace = options.fsync_interval if self._fsync is Fsync.INTERVAL else _IDLE
        try:
            self._keeper = BackgroundWorker(f"journal-{directory.name}", self._keep, pace)
        except BaseException:  # no thread to be had
            self._appender.seal()
            raise

    @classmethod
    def open(cls, directory: Path | str, options: JournalOptions | None = None, *, files: Files = OS_FILES) -> Journal:
        """Lock the directory (made if absent), recover what a writer left that died, and go on behind it.

        Raises LockedError while another writer lives, and StorageError where the disk refuses.
        """
        path = Path(directory)
        with translate_os_errors("opening", path):
            files.make_directory(path)
            lock = FileLock.acquire(path / LOCK_NAME, f"journal {path}")
            try:
                return cls(path, options or JournalOptions(), files, lock)
            except BaseException:
                lock.release()
                raise

    @property
    def first_offset(self) -> int:
        """The oldest offset there is, or would be."""
        return self._appender.segments[0].base

    @property
    def next_offset(self) -> int:
        """The offset that the next record is given, unless a fault intervenes: offsets grow, and may leave some out."""
        return self._appender.next_offset

    @property
    def size(self) -> int:
        """Bytes of all segments."""
        with self._mutex:
            return sum(segment.size for segment in self._appender.segments)

    def append(self, value: bytes, *, key: bytes | None = None, headers: RecordHeaders = ()) -> int:
        """Append one record and return its offset; on a StorageError it isn't in, unless that says `unknown`."""
        if key is not None or headers or len(value) > self._largest:
            check_sizes(value, key, headers, self._largest)
        with self._mutex:
            if self._is_barred:
                self._unbar()
            offset = self._appender.append(value, key, headers)
            ticket = self._syncer.ticket
        if self._waiting or self._overdue:
            self._attend()
        if self._always:
            self._syncer.settle(ticket)
        return offset

    def append_many(self, entries: Sequence[bytes | JournalEntry]) -> range:
        """Append records in order with as few system calls as can be; their offsets.

        On a StorageError the first `appended` of them are in, and the others not, unless that says `unknown`.
        """
        check_batch(entries, self._largest)
        offsets, failure = range(0), None
        with self._mutex:
            if self._closed is not None:
                raise ClosedError(self._closed)
            try:
                offsets = self._appender.append_many(entries)
            except StorageError as error:
                failure = error
            ticket = self._syncer.ticket
        if self._waiting or self._overdue:
            self._attend()
        if self._always and (offsets or failure):
            self._syncer.settle(ticket)
        if failure is not None:
            raise failure
        return offsets

    def append_emergency(self, value: bytes, *, key: bytes | None = None, headers: RecordHeaders = ()) -> int:
        """Append what must still get in when the device is full, such as the record that says what doesn't.

        Where there is no room, the room set aside is used, for nothing but this: `append` refuses until there is enough
        to set it aside anew.
        """
        try:
            return self.append(value, key=key, headers=headers)
        except StorageFullError as error:
            if error.unknown:
                raise
            with self._mutex:
                self._is_barred = self._reserve.release() or self._is_barred
            if not self._is_barred:
                raise
            return self.append_many([JournalEntry(value, key, headers)])[0]

    def flush(self, timeout: float = 10.0) -> bool:
        """Bring everything appended so far to the disk; False if that took longer.

        Raises SyncFailedError where the disk refused this, or an earlier sync in the background since the last flush.
        """
        deadline = time.monotonic() + timeout
        if not self._mutex.acquire(timeout=max(0.0, timeout)):  # the disk hangs in somebody's append
            return False
        ticket = self._syncer.ticket
        self._flush_wanted = True
        self._mutex.release()
        self._keeper.wake()
        done = self._syncer.wait(ticket, deadline - time.monotonic())
        failure = self._syncer.take_failure() or ticket.error
        if failure is not None:
            raise failure
        return done

    def close(self, timeout: float = 10.0) -> bool:
        """Take no more records, flush (except with fsync=none), give up the lock; False if not all of it was done."""
        if not self._writer_lock.held:
            return True
        self._closed = f"journal {self.directory} is closed"
        self._is_barred = True
        deadline = time.monotonic() + timeout
        flushed = self._fsync is Fsync.NONE or self._flush_quietly(timeout)
        self._notify()
        if not self._mutex.acquire(timeout=max(0.0, deadline - time.monotonic())):
            return False  # an append hangs in the disk: while it may still write, nobody else may
        self._appender.seal()
        self._mutex.release()
        stopped = self._keeper.stop(max(0.0, deadline - time.monotonic()))
        self._writer_lock.release()
        return flushed and stopped

    def cursor(self, name: str, *, start: CursorStart = CursorStart.EARLIEST) -> Cursor:
        """A durable reader that wakes when something is appended; a LockedError where another one has the name."""
        begin = self.first_offset if start is CursorStart.EARLIEST else self.next_offset
        durable = self._fsync is not Fsync.NONE
        cursor = Cursor(self._files, self.directory, name, start=begin, durable=durable, wait=self._wait_beyond)
        if self.options.drop_consumed:
            cursor.when_committed(self._keeper.wake)
        return cursor

    def tail(self, position: int) -> Tail:
        """Read from an offset on, keeping no place."""
        return Tail(self._files, self.directory, position, self._wait_beyond)

    def positions(self) -> dict[str, int]:
        """What each durable cursor has committed."""
        with translate_os_errors("reading cursors of", self.directory):
            return committed_positions(self._files, self.directory)

    def forget_cursor(self, name: str) -> None:
        """Remove a cursor that nobody will read on with; a LockedError while somebody does."""
        forget_position(self._files, self.directory, name)
        self._keeper.wake()

    def trim(self) -> int:
        """Drop what the limits don't let stay, now instead of in the background; the number of segments dropped."""
        with translate_os_errors("dropping segments of", self.directory):
            return self._retention.enforce()

    def _unbar(self) -> None:
        """Raises what keeps a record from being appended, if it still does; called under the mutex."""
        if self._closed is not None:
            raise ClosedError(self._closed)
        if not self._reserve.renew():
            no_room = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            raise storage_error(no_room, "appending to", self.directory) from no_room
        self._is_barred = False

    def _on_new_segment(self) -> None:
        """Called under the mutex when a segment was started. Appenders drop segments only if the keeper is late."""
        self._keeper.wake()
        self._overdue = self._retention.must_run()

    def _keep(self) -> None:
        """The keeper's round: whatever appenders shall not wait for. What fails is tried again in the next."""
        with self._mutex:
            wanted, self._flush_wanted = self._flush_wanted, False
        if wanted or self._fsync is not Fsync.NONE:
            self._syncer.in_background()
        self._drop_quietly()
        self._reserve.renew()

    def _attend(self) -> None:
        """After an append, outside the mutex: wake readers, hold the size limit."""
        self._notify()
        if self._overdue:
            self._overdue = False
            self._drop_quietly()

    def _drop_quietly(self) -> None:
        try:
            self._retention.enforce()
        except OSError as error:
            _LOG.warning("journal %s: dropping segments failed: %s", self.directory, error)

    def _flush_quietly(self, timeout: float) -> bool:
        try:
            return self.flush(timeout)
        except SyncFailedError as error:
            _LOG.warning("%s", error)
            return False

    def _wait_beyond(self, position: int, seconds: float) -> bool:
        with self._arrival:
            self._waiting += 1  # before the look at the offset: an appender looks at it after it raised that
            if seconds > 0 and not self._may_be_beyond(position):
                self._arrival.wait(seconds)
            self._waiting -= 1
        return self._may_be_beyond(position)

    def _may_be_beyond(self, position: int) -> bool:
        """Once this writer is closed, or the parent's of this process, others may append."""
        return self._appender.next_offset > position or self._closed is not None

    def _notify(self) -> None:
        with self._arrival:
            self._arrival.notify_all()

    def _forget_in_child(self) -> None:
        """The parent goes on writing. The child has neither the lock nor the threads, and maybe a mutex held by one."""
        self._closed = f"journal {self.directory} belongs to the process this one was forked from: open another"
        self._is_barred = True
        self._mutex = threading.Lock()
        self._arrival = threading.Condition()
        self._appender.forget()
