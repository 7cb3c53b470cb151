"""Journals whose writer is dead: found by another process, which opens, ships and removes them."""

from __future__ import annotations

import shutil
from pathlib import Path

from headwater.journal.errors import LockedError, translate_os_errors
from headwater.journal.files import OS_FILES
from headwater.journal.lock import FileLock, is_locked
from headwater.journal.position import cursors_directory
from headwater.journal.segment import list_bases, segment_path
from headwater.journal.writer import LOCK_NAME


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
    for child in path.iterdir():
        if child.name != LOCK_NAME and child.is_file():
            child.unlink()
    shutil.rmtree(cursors_directory(path), ignore_errors=True)
    (path / LOCK_NAME).unlink()
    path.rmdir()
