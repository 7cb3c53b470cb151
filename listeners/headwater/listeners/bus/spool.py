"""The driver's own spool: a journal in a directory of its own, with what must stand beside it."""

from __future__ import annotations

import contextlib
import logging
import os
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from headwater.errors import HeadwaterError
from headwater.events.avro import current_schema
from headwater.events.envelope import Event
from headwater.events.keys import headers_of, key_of
from headwater.events.producer import NotAppendedError
from headwater.journal import (
    ClosedError,
    Cursor,
    Fsync,
    Journal,
    JournalOptions,
    RecordTooLargeError,
    StorageError,
    StorageFullError,
    SyncFailedError,
    remove_journal,
)
from headwater.journal.files import OS_FILES
from headwater.journal.segment import list_bases
from headwater.listeners.bus.options import BusOptions
from headwater.listeners.bus.producer_progress import PROGRESS_CURSOR, ProducerProgress, write_progress
from headwater.listeners.bus.spool_manifest import SpoolManifest
from headwater.listeners.settings import Settings

_LOG = logging.getLogger(__name__)


class SpoolFullError(NotAppendedError):
    """There is no room on the device."""


class Spool:
    """Takes the records of one producer; `append` is for one thread at a time, as a producer calls it."""

    def __init__(self, journal: Journal, manifest: SpoolManifest, options: BusOptions) -> None:
        self.journal = journal
        self.manifest = manifest
        self.unsynced = 0
        """Records that are in, and may not survive the machine though `fsync=always` asks for it."""
        self._files = options.files
        self._lock, self._describing = threading.Lock(), threading.Lock()
        self._progress = ProducerProgress()
        self._saved_offset = 0
        self._guard: Cursor | None = None
        with contextlib.suppress(HeadwaterError):  # without it no run is said to be killed; all else goes on
            self._guard = journal.cursor(PROGRESS_CURSOR)

    @property
    def directory(self) -> Path:
        return self.journal.directory

    def append(self, event: Event, data: bytes, *, reserved: bool = False) -> None:
        """Write one record. A NotAppendedError if it surely isn't in; a StorageError if nobody knows."""
        key, headers = key_of(event), headers_of(event, current_schema(type(event)).fingerprint)
        write = self.journal.append_emergency if reserved else self.journal.append
        with self._lock:
            try:
                offset = write(data, key=key, headers=headers)
            except SyncFailedError as e:
                offset = self._append_copy(data, key, headers, e)
            except StorageError as e:
                if e.unknown:
                    raise
                kind = SpoolFullError if isinstance(e, StorageFullError) else NotAppendedError
                raise kind(str(e)) from e
            except (ClosedError, RecordTooLargeError) as e:
                raise NotAppendedError(str(e)) from e
            self._progress.note(event, offset)

    def _append_copy(
        self, data: bytes, key: bytes, headers: tuple[tuple[str, bytes], ...], first: SyncFailedError
    ) -> int:
        """It is in, but perhaps not on the disk: a second copy may get there, and a copy does no harm."""
        try:
            return self.journal.append(data, key=key, headers=headers)
        except (StorageError, ClosedError):
            self.unsynced += 1
            if self.unsynced == 1:
                _LOG.warning("%s", first)
            return self.journal.next_offset - 1

    def keep(self) -> None:
        """Note the progress as far as it goes, so that the journal may be cut up to there. From one thread only.

        As long as there is one segment nothing can be cut, and the records tell the progress themselves.
        """
        if self._guard is None or self.journal.size <= self.journal.options.segment_size:
            return
        with self._lock:
            offset, data = self._progress.offset, self._progress.to_json()
        if offset == self._saved_offset:
            return
        durable = self.journal.options.fsync is not Fsync.NONE
        write_progress(self._files, self.directory, data, durable=durable)
        while self._guard.position < offset and self._guard.read(10_000, 8 << 20):
            pass
        self._guard.commit(min(offset, self._guard.position))
        self._saved_offset = offset

    def note_failed_listener(self, name: str) -> None:
        """A listener could not be made: whoever finds this spool when nobody is called so any more is to say it."""
        with self._describing:
            self._rewrite(replace(self.manifest, failed_listeners=self.manifest.failed_listeners | {name}))

    def note_refused(self, count: int) -> None:
        """So many events were refused so far: for people who look, the Gaps tell it too."""
        with self._describing:
            if count != self.manifest.refused:
                self._rewrite(replace(self.manifest, refused=count))

    def _rewrite(self, manifest: SpoolManifest) -> None:
        with contextlib.suppress(OSError):
            manifest.write(self._files, self.directory)
            self.manifest = manifest

    def is_delivered(self) -> bool:
        """Whether every listener that reads it is through."""
        end = self.journal.next_offset
        return all(position >= end for name, position in self.journal.positions().items() if name != PROGRESS_CURSOR)

    def close(self, timeout: float) -> bool:
        if self._guard is not None:
            self._guard.close()
        return self.journal.close(timeout)

    def remove(self) -> None:
        """After `close`: nobody needs it any more."""
        try:
            remove_journal(self.directory)
        except (HeadwaterError, OSError) as e:
            _LOG.warning("the spool %s is delivered and can't be removed: %s", self.directory, e)


def open_spool(settings: Settings, manifest: SpoolManifest, options: BusOptions) -> Spool | None:
    """The spool where the settings want it, else in a temporary directory, else none; each is reported in the log."""
    for place in spool_places(settings, make=True):
        try:
            return _open_in(place / manifest.directory, settings, manifest, options)
        except (HeadwaterError, OSError) as e:  # noqa: PERF203 - twice at most
            _remove_empty_journal(place / manifest.directory)
            _LOG.warning(
                "spark.headwater.spool.dir: %s can't be used (%s): make it writable, or name another; "
                "another place is tried",
                place,
                e,
            )
    _LOG.warning("no place for a spool was found: events go to plain listeners only, and durable ones get nothing")
    return None


def _remove_empty_journal(directory: Path) -> None:
    """Of a spool that couldn't be begun: nobody looks for one without records."""
    with contextlib.suppress(HeadwaterError, OSError):
        if directory.is_dir() and not list_bases(OS_FILES, directory):
            remove_journal(directory)


def spool_places(settings: Settings, *, make: bool = False) -> Iterator[Path]:
    """The directories under which there are spools of this user on this host; a temporary one has to be made."""
    with contextlib.suppress(RuntimeError):  # nobody has a home here
        yield settings.spool_dir.expanduser().absolute()
    with contextlib.suppress(OSError):
        yield _temporary_directory(make=make)


def _temporary_directory(*, make: bool) -> Path:
    """A directory that later drivers find again, and that nobody else can have made; OSError if somebody has, or if it
    isn't there."""
    place = Path(tempfile.gettempdir(), f"headwater-spool-{os.getuid()}")
    if make:
        with contextlib.suppress(FileExistsError):
            place.mkdir(mode=0o700)
    status = place.lstat()
    if not place.is_dir() or place.is_symlink() or status.st_uid != os.getuid() or status.st_mode & 0o022:
        raise PermissionError(f"{place} is somebody else's")
    return place


def _open_in(directory: Path, settings: Settings, manifest: SpoolManifest, options: BusOptions) -> Spool:
    journal = Journal.open(directory, journal_options(settings), files=options.files)
    try:
        manifest.write(options.files, directory)
    except BaseException:
        journal.close(0)
        raise
    return Spool(journal, manifest, options)


def journal_options(settings: Settings) -> JournalOptions:
    return JournalOptions(
        fsync=settings.spool_fsync,
        fsync_interval=settings.spool_fsync_interval,
        max_bytes=settings.spool_max_bytes,
        drop_consumed=True,
    )
