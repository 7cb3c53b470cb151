"""Class files of the Java side that an earlier driver compiled, on disk: a driver's start needs no compiler then.

A directory of class files is for exactly these sources, this Java and these jars: its name is their hash. It is
written beside its place and renamed, so whoever finds one finds all of it, and each file is checked against a list of
hashes. Only the user may write there. Whatever is wrong with it, the driver compiles as if there were none.

A driver reads all of it when it starts, and needs it no more: others may add to it, or remove it.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import os
import shutil
import stat
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

from headwater.listeners.settings import cache_directory

_LOG = logging.getLogger(__name__)
_LIST: Final = "classes.json"
_NEW: Final = ".new-"
_MOST: Final = 8
"""So many directories are kept, those that were used last: each upgrade of Spark or of a format makes another one."""


class ClassCache:
    """The class files for one key. `root` has a directory for each."""

    def __init__(self, root: Path, key: str) -> None:
        self._root = root
        self._place = root / key

    def find(self) -> dict[str, bytes] | None:
        """The class files by their paths; None where there are none, or where they aren't as they were written."""
        try:
            if not (_is_ours(self._root) and _is_ours(self._place)):
                return None
            listed: dict[str, str] = json.loads((self._place / _LIST).read_text("utf-8"))
            found = {name: (self._place / name).read_bytes() for name in listed}
            if not all(_hash_of(found[name]) == known for name, known in listed.items()):
                return None
            os.utime(self._place)
        except (OSError, ValueError, AttributeError) as e:
            _LOG.debug("class files can't be used: %s", e)
            return None
        return found

    def add(self, classes: Mapping[str, bytes]) -> None:
        """Keep these class files, by their paths, beside those that are there. Nothing comes of it where that fails."""
        try:
            self._root.mkdir(mode=0o700, parents=True, exist_ok=True)
            if not _is_ours(self._root):
                return
            new = Path(tempfile.mkdtemp(prefix=_NEW, dir=self._root))
            try:
                _write(new, {**(self.find() or {}), **classes})
                self._replace(new)
            finally:
                shutil.rmtree(new, ignore_errors=True)
            self._remove_oldest()
        except OSError as e:
            _LOG.debug("class files can't be kept: %s", e)

    def _replace(self, new: Path) -> None:
        """Another driver may do the same at the same time: its files are as good."""
        old = Path(tempfile.mkdtemp(prefix=_NEW, dir=self._root))
        with contextlib.suppress(OSError):
            self._place.rename(old / "old")
        shutil.rmtree(old, ignore_errors=True)
        with contextlib.suppress(OSError):
            new.rename(self._place)

    def _remove_oldest(self) -> None:
        kept = sorted(self._root.iterdir(), key=lambda each: each.lstat().st_mtime, reverse=True)
        for each in kept[_MOST:]:
            shutil.rmtree(each, ignore_errors=True)


def _write(directory: Path, classes: Mapping[str, bytes]) -> None:
    for name, content in classes.items():
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        (directory / name).write_bytes(content)
    hashes = {name: _hash_of(content) for name, content in sorted(classes.items())}
    (directory / _LIST).write_text(json.dumps(hashes), "utf-8")


def class_directory() -> Path:
    """Where the class files of this user's drivers are."""
    return cache_directory().expanduser() / "class-files"


def count_class_files(directory: Path) -> int:
    """For how many sets of jars there are class files; an OSError says why there can't be any."""
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not _is_ours(directory):
        raise PermissionError(f"others can read or write {directory}, or it is somebody else's")
    return sum(1 for each in directory.iterdir() if not each.name.startswith(_NEW))


def key_of(sources: Mapping[str, bytes], java: str, class_path: Iterable[str]) -> str:
    """Name what class files depend on: our sources, the Java that runs, and each jar by its path, size and time."""
    digest = hashlib.sha256(java.encode())
    for name, text in sorted(sources.items()):
        digest.update(f"\0{name}\0{len(text)}\0".encode())
        digest.update(text)
    for entry in class_path:
        digest.update(f"\0{entry}\0{_state_of(entry)}".encode("utf-8", "surrogateescape"))
    return digest.hexdigest()[:32]


def _state_of(entry: str) -> str:
    """Of a file or directory, also as a URL; what is elsewhere is known by its name alone."""
    path = unquote(urlsplit(entry).path) if entry.startswith("file:") else entry
    try:
        found = Path(path).stat()
    except (OSError, ValueError):
        return "-"
    return f"{found.st_size} {found.st_mtime_ns}"


def _is_ours(directory: Path) -> bool:
    """A directory of this user's, into which nobody else can write."""
    found = directory.lstat()
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid() and not found.st_mode & 0o077


def _hash_of(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
