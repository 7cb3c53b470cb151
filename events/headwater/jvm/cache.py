"""Archives of class files that earlier drivers of this user compiled, in the user's cache directory.

An archive is for exactly these sources, this Java and these jars: its name is their hash. It is written beside its
place and renamed, so whoever finds one finds all of it, and each file in it has a checksum. Only the user may write
there. Whatever is wrong with it, the driver compiles as if there were none.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import stat
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

from headwater.config import cache_directory
from headwater.jvm.bundled import ArchiveFacts, read_facts

_LOG = logging.getLogger(__name__)
_NEW: Final = ".new-"
_MOST: Final = 64
"""So many archives are kept, those that were used last: each upgrade of Spark or of a format makes others."""


class ArchiveCache:
    """The archives below one directory, by their keys."""

    def __init__(self, root: Path | None = None) -> None:
        self.root = root or cache_directory().expanduser() / "class-files"

    def find(self, key: str) -> tuple[Path, ArchiveFacts] | None:
        """An archive and what it says; None where there is none, or where it isn't as it was written."""
        place = self.root / f"{key}.jar"
        try:
            if not self.is_ours(place):
                return None
            facts = read_facts(place)
            os.utime(place)
        except (OSError, ValueError) as e:
            _LOG.debug("class files can't be used: %s", e)
            return None
        return place, facts

    def is_ours(self, place: Path) -> bool:
        """Whether a file in the cache, and the cache, are this user's alone; an OSError where one isn't there."""
        return _is_ours(self.root, stat.S_ISDIR) and _is_ours(place, stat.S_ISREG)

    def add(self, key: str, content: bytes) -> None:
        """Keep an archive. Nothing comes of it where that fails."""
        self.write(f"{key}.jar", content)
        with contextlib.suppress(OSError):  # others remove some too
            self._remove_oldest()

    def remove(self, key: str) -> None:
        """Give an archive up, if there is one."""
        with contextlib.suppress(OSError):
            (self.root / f"{key}.jar").unlink()

    def write(self, name: str, content: bytes) -> None:
        """Write a file whole, or not at all: where that fails nothing comes of it."""
        try:
            self.root.mkdir(mode=0o700, parents=True, exist_ok=True)
            if not _is_ours(self.root, stat.S_ISDIR):
                return
            handle, new = tempfile.mkstemp(prefix=_NEW, dir=self.root)
            try:
                with os.fdopen(handle, "wb") as file:
                    file.write(content)
                Path(new).replace(self.root / name)
            finally:
                Path(new).unlink(missing_ok=True)
        except OSError as e:
            _LOG.debug("%s can't be kept: %s", name, e)

    def count(self) -> int:
        """How many archives there are; an OSError says why there can't be any."""
        self.root.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not _is_ours(self.root, stat.S_ISDIR):
            raise PermissionError(f"others can read or write {self.root}, or it is somebody else's")
        return sum(1 for _ in self.root.glob("*.jar"))

    def _remove_oldest(self) -> None:
        kept = sorted(self.root.iterdir(), key=lambda each: each.lstat().st_mtime, reverse=True)
        for each in kept[_MOST:]:
            with contextlib.suppress(OSError):  # another driver removed it, or it is no file
                each.unlink()


def key_of(digest: str, java: str, class_path: str) -> str:
    """Name what class files depend on: our sources, the Java that runs, and the state of its class path."""
    return hashlib.sha256(f"{digest}\0{java}\0{class_path}".encode()).hexdigest()[:32]


def state_of(class_path: Iterable[str]) -> str:
    """Name a class path: each jar by its path, size and time."""
    found = hashlib.sha256()
    for entry in class_path:
        found.update(f"\0{entry}\0{_state_of(entry)}".encode("utf-8", "surrogateescape"))
    return found.hexdigest()


def path_of(entry: str) -> Path:
    """The file or directory that an entry of a class path is, which may be a URL."""
    return Path(place_of(entry))


def place_of(entry: str) -> str:
    """The path of an entry of a class path; at each start there are hundreds, most of which need no Path."""
    return unquote(urlsplit(entry).path) if entry.startswith("file:") else entry


def _state_of(entry: str) -> str:
    """What is elsewhere than on this machine is known by its name alone."""
    try:
        found = os.stat(place_of(entry))  # noqa: PTH116 - see there
    except (OSError, ValueError):
        return "-"
    return f"{found.st_size} {found.st_mtime_ns}"


def _is_ours(place: Path, is_kind: Callable[[int], bool]) -> bool:
    """A directory or file of this user's, no link, that nobody else can write or read."""
    found = place.lstat()
    return is_kind(found.st_mode) and found.st_uid == os.geteuid() and not found.st_mode & 0o077
