"""Journals whose writer is dead: found by another process, which opens, ships and removes them."""

from __future__ import annotations

import shutil
from pathlib import Path

from headwater.journal.errors import LockedError, typed
from headwater.journal.files import OS_FILES
from headwater.journal.lock import FileLock, is_locked
from headwater.journal.position import cursors_directory
from headwater.journal.segment import list_bases
from headwater.journal.writer import LOCK_NAME


def find_abandoned(parent: Path | str) -> list[Path]:
    """Directories right under `parent` with a journal that nobody writes to now.

    Somebody may lock one in the next moment, so `Journal.open` decides; a directory without segments isn't told.
    """
    root = Path(parent)
    if not root.is_dir():
        return []
    found = sorted(child for child in root.iterdir() if child.is_dir())
    return [path for path in found if list_bases(OS_FILES, path) and not is_locked(path / LOCK_NAME)]


def remove_journal(directory: Path | str) -> None:
    """Remove a journal with its cursors; a LockedError while somebody writes to it or reads with a cursor.

    The lock goes last and is held until then, so a crash in between leaves what the next call removes.
    """
    path = Path(directory)
    with typed("removing", path):
        lock = FileLock.acquire(path / LOCK_NAME, f"journal {path}")
        try:
            _remove(path)
        finally:
            lock.release()


def _remove(path: Path) -> None:
    for held in cursors_directory(path).glob("*.lock"):
        if is_locked(held):
            raise LockedError(f"cursor {held.stem!r} of {path} is being read with: close it first")
    shutil.rmtree(cursors_directory(path), ignore_errors=True)
    for child in path.iterdir():
        if child.name != LOCK_NAME:
            child.unlink()
    (path / LOCK_NAME).unlink()
    path.rmdir()
