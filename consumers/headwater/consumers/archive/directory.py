"""An archive of Parquet files in a directory of a file system.

    _log/                 which files belong to the archive
    _pending/             files that a commit names, or is about to, and that aren't in their place yet
    events/day=…/kind=…/  the files, for whoever reads the directory as it is

A commit in the log decides. A file comes into its place only after the commit that names it, and what is missing there
after a crash is brought there by the next process. So the directory never holds a record twice, or one that the log
doesn't have.
"""

from __future__ import annotations

import logging
import shutil
import threading
import time
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final
from uuid import uuid4

from headwater.consumers.archive.arrow import ArrowTable, pa
from headwater.consumers.archive.commit_log import LOG, CommitLog, sync_directory
from headwater.consumers.archive.exchange import PREFIX, publish_file, replace_files, take_back
from headwater.consumers.archive.files import EVENTS, FILE_NAME, read_file, sort, split, write_file
from headwater.consumers.archive.state import (
    ArchiveCommit,
    ArchivedRange,
    ArchiveFile,
    ArchiveState,
    OffsetsTakenError,
    Operation,
)
from headwater.consumers.sources.api import OffsetGap
from headwater.errors import ConfigurationError, TerminalError, TransientError
from headwater.lineage.bulk import BusPartition

_LOG: Final = logging.getLogger(__name__)
PENDING: Final = "_pending"
_ABANDONED_SECONDS: Final = 86_400.0
"""What nobody committed after so long never will be."""


class ParquetArchive:
    """Reads and writes the archive in a directory."""

    def __init__(self, directory: Path) -> None:
        self.directory: Final = directory
        self._log = CommitLog(directory)
        self._lock = threading.Lock()
        self._is_unfinished = False
        """Whether an error left a commit of which files aren't in their place."""

    @classmethod
    def create(cls, directory: Path) -> ParquetArchive:
        """Open an archive to write to it; make one if there is none. Finishes what a process that died has begun."""
        _check(directory)
        archive = cls(directory)
        archive._log.create()
        with _disk(directory):
            (directory / PENDING).mkdir(exist_ok=True)
            (directory / EVENTS).mkdir(exist_ok=True)
        archive.recover()
        return archive

    @classmethod
    def open(cls, directory: Path) -> ParquetArchive:
        """Open an archive to read it. Raises a ConfigurationError if there is none."""
        archive = cls(directory)
        if not archive._log.exists:
            raise ConfigurationError(f"{directory} isn't an archive: there is no {LOG} in it. Which directory is it?")
        return archive

    def refresh(self) -> ArchiveState:
        """Return what the archive holds now."""
        with self._lock:
            return self._log.refresh()

    def next_offsets(self, cluster: str) -> Mapping[BusPartition, int]:
        return self.refresh().next_offsets(cluster)

    def append(self, table: ArrowTable, ranges: Sequence[ArchivedRange], gaps: Sequence[OffsetGap] = ()) -> None:
        files = self.write(table)
        self.commit(ArchiveCommit(Operation.APPEND, tuple(ranges), tuple(gaps), tuple(files)))

    def write(self, table: ArrowTable) -> list[ArchiveFile]:
        """Write rows into files that belong to nothing yet: one for each day and kind."""
        files: list[ArchiveFile] = []
        pending = self.directory / PENDING
        try:
            with _disk(self.directory):
                for day, kind, rows in split(sort(table)):
                    files.append(write_file(pending, day, kind, rows))
                sync_directory(pending)
        except BaseException:
            self.discard(files)
            raise
        return files

    def commit(self, commit: ArchiveCommit) -> None:
        """Make the files that were written a part of the archive, and take others out of it."""
        if self._is_unfinished:
            self.recover()
        files = self.refresh().files
        removed = [files[path] for path in commit.remove if path in files]
        self._is_unfinished = True
        try:
            with self._lock:
                self._log.commit(commit)
        except OffsetsTakenError:
            self.discard(commit.add)
            raise
        with _disk(self.directory):
            if not (commit.operation is Operation.COMPACT and self._replace(commit.add, removed)):
                self._publish(commit.add)
                self._erase(removed)
        self._is_unfinished = False

    def discard(self, files: Iterable[ArchiveFile]) -> None:
        """Remove files that were written and not committed."""
        with suppress(OSError):
            self._erase_pending(files)

    def path_of(self, file: ArchiveFile) -> Path:
        """Return where a file of the archive is now."""
        place = self.directory / file.path
        pending = self.directory / PENDING / file.name
        return pending if not place.exists() and pending.exists() else place

    def read(self, file: ArchiveFile, columns: Sequence[str] | None = None) -> ArrowTable:
        """Return the rows of a file.

        Raises a TransientError if it was replaced meanwhile, or can't be read, and a DamagedFileError if its bytes are
        wrong: they stay so, and who tried again would wait for ever.
        """
        path = self.path_of(file)
        try:
            try:
                return read_file(path, columns)
            except FileNotFoundError:
                with _disk(self.directory):
                    return read_file(self.path_of(file), columns)
        except pa.ArrowException as e:
            raise _damaged(path, e) from e
        except OSError as e:
            if e.errno is None:  # Arrow's own: a page whose checksum is wrong, a footer that is cut
                raise _damaged(path, e) from e
            raise TransientError(f"{path} can't be read: {e}") from e

    def _publish(self, files: Iterable[ArchiveFile]) -> None:
        """Bring committed files to their places, and take those back that another process has replaced meanwhile."""
        published = [*files]
        for each in published:
            publish_file(self.directory / PENDING / each.name, self.directory / each.path)
        known = self.refresh().files
        self._erase([each for each in published if each.path not in known])

    def _replace(self, added: Sequence[ArchiveFile], removed: Sequence[ArchiveFile]) -> bool:
        """Replace files of one day and kind at once. Return False if this file system can't."""
        pending = self.directory / PENDING
        is_done = replace_files(
            (self.directory / removed[0].path).parent,
            pending / f"{PREFIX}{uuid4()}",
            add=[pending / each.name for each in added],
            gone={each.name for each in removed},
            wanted=lambda: {each.name for each in self.refresh().files.values()},
        )
        if is_done:
            self._erase_pending([*added, *removed])
        return is_done

    def _erase_pending(self, files: Iterable[ArchiveFile]) -> None:
        for each in files:
            (self.directory / PENDING / each.name).unlink(missing_ok=True)

    def _erase(self, files: Sequence[ArchiveFile]) -> None:
        """Remove files from the directory. First where they may still come from."""
        self._erase_pending(files)
        for each in files:
            place = self.directory / each.path
            place.unlink(missing_ok=True)
            with suppress(OSError):  # others are in it
                place.parent.rmdir()
                place.parent.parent.rmdir()

    def recover(self) -> None:
        """Bring the directory to what the log says, after processes that died in between."""
        with _disk(self.directory):
            there = [*self._files_in_place()]
            pending = [each for each in (self.directory / PENDING).iterdir() if FILE_NAME.fullmatch(each.name)]
            state = self.refresh()  # after looking: what comes into its place later is in it
            by_name = {each.name: each for each in state.files.values()}
            self._publish(by_name[each.name] for each in pending if each.name in by_name)
            for path in there:
                if path.name not in by_name:
                    _LOG.info("removing %s, which was replaced", path)
                    path.unlink(missing_ok=True)
            for path in pending:
                if path.name not in by_name and _is_abandoned(path):
                    path.unlink(missing_ok=True)
            self._recover_exchanges(by_name)
        self._is_unfinished = False

    def _recover_exchanges(self, by_name: Mapping[str, ArchiveFile]) -> None:
        """Finish exchanges of directories whose process died."""
        for aside in (self.directory / PENDING).glob(f"{PREFIX}*"):
            places = {
                (self.directory / by_name[each.name].path).parent for each in aside.iterdir() if each.name in by_name
            }
            for place in places:
                place.mkdir(parents=True, exist_ok=True)
                take_back(aside, place, by_name)
            if _is_abandoned(aside):
                shutil.rmtree(aside)

    def _files_in_place(self) -> Iterator[Path]:
        for each in (self.directory / EVENTS).glob("*/*/*.parquet"):
            if FILE_NAME.fullmatch(each.name):
                yield each

    def close(self) -> None:
        """Do nothing: nothing stays open."""


class DamagedFileError(TerminalError):
    """A file of the archive isn't what was written."""


def _damaged(path: Path, error: Exception) -> DamagedFileError:
    words = str(error).strip().partition("\n")[0]
    return DamagedFileError(
        f"{path} is damaged ({words}): put a copy of it in its place; `headwater archive verify` lists all that are"
    )


def _check(directory: Path) -> None:
    """Refuse a directory of something else."""
    if directory.is_dir() and not (directory / LOG).is_dir() and any(directory.iterdir()):
        raise ConfigurationError(f"{directory} isn't an archive, and isn't empty: name another directory")
    if directory.exists() and not directory.is_dir():
        raise ConfigurationError(f"{directory} isn't a directory: name another one")


def _is_abandoned(path: Path) -> bool:
    with suppress(OSError):
        return time.time() - path.stat().st_mtime > _ABANDONED_SECONDS
    return False


@contextmanager
def _disk(directory: Path) -> Generator[None, None, None]:
    """Turn errors of the file system into TransientErrors: a disk that is full has room again."""
    try:
        yield
    except OSError as e:
        raise TransientError(f"the archive in {directory}: {e.strerror or e}{_where(e)}") from e


def _where(error: OSError) -> str:
    return f" ({error.filename})" if error.filename else ""
