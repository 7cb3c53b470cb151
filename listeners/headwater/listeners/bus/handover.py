"""Files of what drivers couldn't deliver, under `spool.handover`: written at a driver's end, taken up by the next one.

A file is written under a temporary name and renamed once it is whole, is never changed, and goes when everything in it
is acknowledged. Nothing is locked: two that take up one file send the same events twice. Whoever may write there is a
stranger: only regular files right there count, and each is copied before it is read, and checked before it is used.
"""

from __future__ import annotations

import logging
import os
import shutil
import stat
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as NotYetError
from contextlib import closing, suppress
from pathlib import Path
from typing import IO, Any, Final, Protocol, TypeVar
from uuid import uuid4

from headwater.errors import HeadwaterError, TransientError
from headwater.journal import Files, Journal, JournalOptions, StorageError, remove_journal
from headwater.journal.files import OS_FILES, sync_path
from headwater.listeners.bus.gap_tracker import RecordSource
from headwater.listeners.bus.handover_file import (
    HEADER_BYTES,
    HandoverFile,
    HandoverFileError,
    HandoverHeader,
    encode_handover,
)
from headwater.listeners.bus.listener_creation import DaemonExecutor
from headwater.listeners.bus.options import DEAD_SPOOLS, Connect
from headwater.listeners.bus.producer_progress import PROGRESS_CURSOR, append_run_ends
from headwater.listeners.bus.spool import spool_places
from headwater.listeners.bus.spool_manifest import read_manifest
from headwater.listeners.settings import PREFIX, Settings

_LOG = logging.getLogger(__name__)
T = TypeVar("T")
SUFFIX: Final = ".avro"
_CALL_SECONDS: Final = 30.0
_LONGEST_COPY: Final = 600.0
_COPY: Final = ".handover-"
_CHUNK: Final = 1 << 20
_SPARE_BYTES: Final = 64 << 20


class HandoverDirectory(Protocol):
    """A directory, on whatever file system. Each call may hang, and raise anything."""

    def sizes(self) -> dict[str, int]:
        """The regular files right in it; none where there is no directory."""
        ...

    def create(self, name: str) -> Any:
        """Open a file that isn't there yet, which has `write(bytes)` and `close()`."""
        ...

    def rename(self, name: str, to: str) -> None:
        """Make a file durable under another name, that nothing has."""
        ...

    def read(self, name: str, count: int) -> bytes:
        """The beginning of a file."""
        ...

    def fetch(self, name: str, size: int, target: Path) -> None:
        """Copy a file of this size to a local path that isn't there yet."""
        ...

    def remove(self, name: str) -> None:
        """Remove a file, if it is there."""
        ...


class LocalDirectory:
    """A path of this machine. No link is followed and nothing but regular files is opened."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def sizes(self) -> dict[str, int]:
        with suppress(FileNotFoundError), os.scandir(self._path) as entries:
            return {entry.name: entry.stat().st_size for entry in entries if entry.is_file(follow_symlinks=False)}
        return {}

    def create(self, name: str) -> IO[bytes]:
        self._path.mkdir(parents=True, exist_ok=True)
        return (self._path / name).open("xb")

    def rename(self, name: str, to: str) -> None:
        sync_path(OS_FILES, self._path / name)
        (self._path / name).rename(self._path / to)
        sync_path(OS_FILES, self._path)

    def read(self, name: str, count: int) -> bytes:
        with self._open(name) as file:
            return file.read(count)

    def fetch(self, name: str, size: int, target: Path) -> None:
        with self._open(name) as source, target.open("xb") as file:
            while size > 0 and (data := source.read(min(size, _CHUNK))):  # no more, though it may grow
                size -= file.write(data)

    def remove(self, name: str) -> None:
        (self._path / name).unlink(missing_ok=True)

    def _open(self, name: str) -> IO[bytes]:
        file = os.fdopen(os.open(self._path / name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb")
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            file.close()
            raise HandoverFileError("it isn't a regular file")
        return file


def _remove_old_copies(place: Path) -> None:
    """Remove what drivers left that were killed while they copied: what is older than a copy takes."""
    for left in place.glob(f"{_COPY}*"):
        with suppress(OSError):
            if time.time() - max(each.stat().st_mtime for each in (left, *left.iterdir())) > 2 * _LONGEST_COPY:
                shutil.rmtree(left)


class Handover:
    """The directory behind a thread of its own, on which nobody waits longer than `until` says."""

    def __init__(self, where: str, connect: Callable[[], HandoverDirectory], settings: Settings) -> None:
        self.where = where.rstrip("/")
        self._connect = connect
        self._settings = settings
        self._directory: HandoverDirectory | None = None
        self._executor = DaemonExecutor("handover", workers=1)
        self._deadline = float("inf")

    def until(self, deadline: float) -> None:
        """From now on nothing takes longer than until then."""
        self._deadline = deadline

    def close(self) -> None:
        self._executor.shutdown(wait=False, cancel_futures=True)

    def sizes(self) -> dict[str, int]:
        """The files that are there, by their names. A TransientError where nobody can look."""
        found = self._ask("listing", lambda there: there.sizes())
        return {name: size for name, size in found.items() if name.endswith(SUFFIX) and name[0] != "."}

    def header(self, name: str) -> HandoverHeader:
        """What a file says of itself. A HandoverFileError where it isn't one of headwater's."""
        return HandoverHeader.parse(self._ask(f"reading {name} in", lambda there: there.read(name, HEADER_BYTES)))

    def fetch(self, name: str, size: int) -> HandoverFile:
        """Copy a file here and check it. A HandoverFileError where it isn't whole."""
        limit = DEAD_SPOOLS * self._settings.spool_max_bytes
        if size > limit:
            raise HandoverFileError(f"it has {size} bytes, more than {DEAD_SPOOLS} times {PREFIX}spool.max.bytes")
        place = next((place for place in spool_places(self._settings) if os.access(place, os.W_OK)), None)
        if place is not None:
            _remove_old_copies(place)
        if place is None or shutil.disk_usage(place).free < size + _SPARE_BYTES:
            raise TransientError(f"there is no room in {place or 'any directory for spools'} to copy {name} to")
        with tempfile.TemporaryDirectory(prefix=_COPY, dir=place) as directory:
            target = Path(directory, "copy")
            self._ask(f"copying {name} from", lambda there: there.fetch(name, size, target), _LONGEST_COPY)
            return HandoverFile(name, target.open("rb"))

    def put(self, stem: str, header: HandoverHeader, source: RecordSource) -> None:
        """Write a file there, whole or not at all: what an interruption leaves keeps a name that nobody takes up."""
        name = f"{stem}.{uuid4().hex}{SUFFIX}"
        self._ask("writing to", lambda there: self._write(there, name, header, source), _LONGEST_COPY)
        _LOG.info("what isn't delivered of %s is handed over: %s/%s", stem, self.where, name)

    def _write(self, there: HandoverDirectory, name: str, header: HandoverHeader, source: RecordSource) -> None:
        unfinished = f".{name}.unfinished"
        try:
            with closing(there.create(unfinished)) as stream:
                for data in encode_handover(header, source):
                    self._check_time("writing to")
                    stream.write(data)
            there.rename(unfinished, name)
        except BaseException:
            with suppress(Exception):
                there.remove(unfinished)
            raise

    def remove(self, name: str) -> None:
        """Remove what is delivered, if nobody else did."""
        self._ask(f"removing {name} from", lambda there: there.remove(name))

    def _ask(self, words: str, call: Callable[[HandoverDirectory], T], longest: float = _CALL_SECONDS) -> T:
        seconds, where = min(longest, self._deadline - time.monotonic()), f"{words} {self.where}"
        self._check_time(words)
        future: Future[T] = Future()
        try:
            future = self._executor.submit(lambda: call(self._connected()))
            return future.result(seconds)
        except NotYetError as e:
            future.cancel()
            raise TransientError(f"{where}: no answer within {seconds:.1f} s") from e
        except HeadwaterError:
            raise
        except Exception as e:  # a JVM or a mount can be gone in any way
            raise TransientError(f"{where}: {type(e).__name__}: {e}") from e

    def _check_time(self, words: str) -> None:
        if time.monotonic() >= self._deadline:
            raise TransientError(f"{words} {self.where}: there is no time left for it")

    def _connected(self) -> HandoverDirectory:
        if self._directory is None:
            self._directory = self._connect()
        return self._directory


def open_handover(settings: Settings, connect: Connect | None) -> Handover | None:
    """What `spool.handover` names, or nothing."""
    uri, path = settings.handover_uri, settings.handover_path
    if path is not None:
        return Handover(str(path), lambda: LocalDirectory(path), settings)
    if uri is None:
        return None
    if connect is None:
        _LOG.warning("%sspool.handover: %s takes the JVM of a driver, and there is none here", PREFIX, uri)
        return None
    return Handover(uri, lambda: connect(uri), settings)


def hand_over(spool: Path, handover: Handover, files: Files) -> bool:
    """Write what a closed spool still holds to a file there, and remove the spool; whether it is there.

    A crash in between leaves both, and events come twice.
    """
    try:
        with Journal.open(spool, JournalOptions(max_bytes=None, reserve_bytes=0), files=files) as journal:
            try:
                append_run_ends(journal, files)
            except StorageError as e:  # a full disk, say; the store infers from silence what isn't said
                _LOG.warning("the ends of the runs in %s aren't handed over: %s", spool, e)
            handover.put(spool.name, _describe(journal, files), journal)
    except (HeadwaterError, OSError) as e:
        _LOG.warning("the spool %s stays where it is, and isn't handed over: %s", spool, e)
        return False
    try:
        remove_journal(spool)
    except (HeadwaterError, OSError) as e:
        _LOG.info("the spool %s is handed over and can't be removed, so it is delivered twice: %s", spool, e)
    return True


def _describe(journal: Journal, files: Files) -> HandoverHeader:
    manifest, end = read_manifest(files, journal.directory), journal.next_offset
    positions = {name: at for name, at in journal.positions().items() if name != PROGRESS_CURSOR and at < end}
    families = {name: members for name, members in manifest.families.items() if name in positions}
    producer = str(manifest.producer or "")
    return HandoverHeader(end, positions, families, manifest.application.id, producer, manifest.since)
