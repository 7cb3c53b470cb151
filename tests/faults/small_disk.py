"""Small file systems for tests that fill them.

A real one is a tmpfs in a mount name space of the program that is to have it, so that it goes with the program: root
may have that, and elsewhere mostly everybody in a user name space of his own. Where neither is allowed there is a
stand-in at the seam through which journals touch a disk. Tests run on all that there is, so on one always.
"""

from __future__ import annotations

import contextlib
import errno
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Final

from headwater.journal.files import CREATE, OsFiles

_MOUNT: Final = 'mount -t tmpfs -o "size=$1,nr_inodes=$2" none "$3"'
_SPACES: Final = {"root": ["unshare", "--mount"], "user": ["unshare", "--user", "--map-root-user", "--mount"]}
STAND_IN: Final = "stand-in"


def _is_allowed(space: list[str]) -> bool:
    try:
        script = [*space, "sh", "-c", _MOUNT, "sh", "1m", "100", "/mnt"]
        return subprocess.run(script, capture_output=True, timeout=20, check=False).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


def kinds() -> list[str]:
    """What there is here: a stand-in, and the first of the real ones that is allowed."""
    real = next((name for name, space in _SPACES.items() if _is_allowed(space)), None)
    return [STAND_IN] if real is None else [STAND_IN, real]


def on_small_disk(kind: str, place: Path, size: int, inodes: int, program: list[str]) -> list[str]:
    """The command that runs a Python program with a small disk at `place`, and a second time if it is killed; it is
    told which kind of disk, and its size."""
    command = [sys.executable, "-m", *program, kind, str(size), str(inodes)]
    mount, space = ("true", []) if kind == STAND_IN else (_MOUNT, _SPACES[kind])
    script = f'{mount}; shift 3; "$@" || exec "$@"'
    return [*space, "sh", "-c", script, "sh", str(size), str(inodes), str(place), *command]


class RealDisk:
    """Filled with one large file, or with many that are empty."""

    def __init__(self, place: Path) -> None:
        self.files = OsFiles()
        self._place = place

    def fill(self, left: int) -> None:
        """Until so many bytes are free."""
        status = os.statvfs(self._place)
        pages = (status.f_bavail * status.f_frsize - left) // status.f_frsize
        with (self._place / "ballast").open("ab") as ballast:
            for _ in range(pages):
                ballast.write(bytes(status.f_frsize))

    def use_up_names(self) -> None:
        with contextlib.suppress(OSError):
            for number in range(1_000_000):
                (self._place / f"name{number}").touch()

    def free(self) -> None:
        for each in (*self._place.glob("name*"), self._place / "ballast"):
            each.unlink(missing_ok=True)


class StandIn(OsFiles):
    """Counts what journals write below a directory, and refuses what is too much, in the middle of a write too."""

    def __init__(self, place: Path, size: int, inodes: int) -> None:
        self.files = self
        self._place = place
        self._free, self._names = size, inodes
        self._ballast, self._taken = 0, 0
        self._sizes: dict[Path, int] = {}
        self._paths: dict[int, Path] = {}
        self._lock = threading.Lock()

    def open(self, path: Path, flags: int) -> int:
        with self._lock:
            is_here = self._place in path.parents
            if is_here and flags & CREATE & os.O_CREAT and path not in self._sizes:
                if self._names < 1:
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
                self._names -= 1
                self._sizes[path] = 0
            descriptor = super().open(path, flags)
            if is_here and flags & os.O_TRUNC:
                self._resize(path, 0)
            if is_here:
                self._paths[descriptor] = path
            return descriptor

    def close(self, descriptor: int) -> None:
        with self._lock:
            self._paths.pop(descriptor, None)
        super().close(descriptor)

    @property
    def write(self) -> Callable[[int, bytes, int], int]:  # type: ignore[override]  # the real one costs no frame
        return self._write

    def _write(self, descriptor: int, data: bytes, position: int) -> int:
        with self._lock:
            path = self._paths.get(descriptor)
            if path is None:
                return os.pwrite(descriptor, data, position)
            size = self._sizes.get(path, 0)
            room = max(0, min(len(data), size + max(0, self._free) - position))
            if data and not room:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            self._resize(path, max(size, position + room))
            return os.pwrite(descriptor, data[:room], position)

    def truncate(self, descriptor: int, size: int) -> None:
        super().truncate(descriptor, size)
        with self._lock:
            if (path := self._paths.get(descriptor)) is not None:
                self._resize(path, size)

    def allocate(self, descriptor: int, size: int) -> None:
        self._write_all(descriptor, bytes(size))

    def _write_all(self, descriptor: int, data: bytes) -> None:
        done = 0
        while done < len(data):
            done += self._write(descriptor, data[done:], done)

    def rename(self, source: Path, target: Path) -> None:
        super().rename(source, target)
        with self._lock:
            if source in self._sizes:
                self._forget(target)
                self._sizes[target] = self._sizes.pop(source)

    def remove(self, path: Path) -> None:
        super().remove(path)
        with self._lock:
            self._forget(path)

    def fill(self, left: int) -> None:
        with self._lock:
            self._ballast += self._free - left
            self._free = left

    def use_up_names(self) -> None:
        with self._lock:
            self._taken, self._names = self._taken + self._names, 0

    def free(self) -> None:
        with self._lock:
            self._free, self._ballast = self._free + self._ballast, 0
            self._names, self._taken = self._names + self._taken, 0

    def _resize(self, path: Path, size: int) -> None:
        self._free -= size - self._sizes.get(path, 0)
        self._sizes[path] = size

    def _forget(self, path: Path) -> None:
        if path in self._sizes:
            self._free += self._sizes.pop(path)
            self._names += 1
