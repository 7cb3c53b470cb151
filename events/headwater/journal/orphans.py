"""Journals whose writer is dead: found by another process, which opens, ships and removes them."""

from __future__ import annotations

import contextlib
import errno
import shutil
import time
from pathlib import Path
from typing import Final

from headwater.errors import HeadwaterError
from headwater.journal.errors import LockedError, translate_os_errors
from headwater.journal.files import OS_FILES
from headwater.journal.lock import FileLock, is_locked
from headwater.journal.position import cursors_directory
from headwater.journal.segment import list_bases, segment_path
from headwater.journal.writer import LOCK_NAME

_SWEEPS: Final = 5
_REMAINS_SECONDS: Final = 10.0
"""A lock that is younger may be of somebody who is about to write the first segment."""


def find_orphans(parent: Path | str) -> list[Path]:
    """Directories right under `parent` with a journal that nobody writes to now.

    Somebody may lock one in the next moment, so `Journal.open` decides; a directory without segments is left out.
    """
    root = Path(parent)
    if not root.is_dir():
        return []
    found = sorted(child for child in root.iterdir() if child.is_dir())
    return [path for path in found if list_bases(OS_FILES, path) and not is_locked(path / LOCK_NAME)]


def remove_journal(directory: Path | str) -> None:
    """Remove a journal with its cursors; a LockedError while somebody writes to it or reads with a cursor.

    Segments go first, the oldest before the others, and cursors after them: what a crash in between leaves is a journal
    that has been read as far as it had been, or none. The lock goes last and is held until then.
    """
    path = Path(directory)
    with translate_os_errors("removing", path):
        lock = FileLock.acquire(path / LOCK_NAME, f"journal {path}")
        try:
            _remove(path)
        finally:
            lock.release()


def _remove(path: Path) -> None:
    for held in cursors_directory(path).glob("*.lock"):
        if is_locked(held):
            raise LockedError(f"cursor {held.stem!r} of {path} is being read with: close it first")
    for base in list_bases(OS_FILES, path):
        segment_path(path, base).unlink()
    for _ in range(_SWEEPS):
        _sweep(path)
        try:
            path.rmdir()
        except OSError as e:
            if e.errno != errno.ENOTEMPTY:
                raise
            if (path / LOCK_NAME).exists():
                return  # of somebody who wanted to open it just now: the rest is theirs, or `remove_remains` has it
        else:
            return
    raise OSError(errno.ENOTEMPTY, "somebody makes files in it again and again", str(path))


def _sweep(path: Path) -> None:
    for child in path.iterdir():
        if child.name != LOCK_NAME and child.is_file():
            child.unlink(missing_ok=True)
    shutil.rmtree(cursors_directory(path), ignore_errors=True)
    (path / LOCK_NAME).unlink(missing_ok=True)


def remove_remains(parent: Path | str) -> None:
    """Remove what is left of journals whose removal was interrupted, or met by somebody who wanted to open it: a lock
    that nobody holds, and no segment. Nothing can be read there, and nobody would look there again."""
    root = Path(parent)
    for lock in sorted(root.glob(f"*/{LOCK_NAME}")) if root.is_dir() else ():
        with contextlib.suppress(HeadwaterError, OSError):
            is_old = time.time() - lock.stat().st_mtime > _REMAINS_SECONDS
            if is_old and not list_bases(OS_FILES, lock.parent) and not is_locked(lock):
                remove_journal(lock.parent)
