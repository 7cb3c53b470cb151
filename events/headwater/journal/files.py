"""The seam to the operating system: every call by which a journal touches a disk goes through `Files`.

Tests put faults in here, at every call; nothing else implements it otherwise. Descriptors are close-on-exec (PEP 446),
so a program that the process starts never holds a journal's file.

What all that has to be closed has in common.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from typing_extensions import Self


class Closing(ABC):
    """Closes itself at the end of a with-block."""

    __slots__ = ()

    @abstractmethod
    def close(self) -> object:
        """Give up what is held; a second call does nothing."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


CREATE = os.O_RDWR | os.O_CREAT | os.O_TRUNC
WRITE = os.O_RDWR
READ = os.O_RDONLY


class Files(Protocol):
    """The system calls a journal makes. They raise OSError, and may write less than asked."""

    def open(self, path: Path, flags: int) -> int: ...
    def close(self, descriptor: int) -> None: ...
    def duplicate(self, descriptor: int) -> int: ...
    def size(self, descriptor: int) -> int: ...
    def read(self, descriptor: int, count: int, position: int) -> bytes: ...
    @property
    def write(self) -> Callable[[int, bytes, int], int]:
        """`write(descriptor, data, position) -> bytes written`; a property, so that the real one costs no frame."""
        ...

    def truncate(self, descriptor: int, size: int) -> None: ...
    def allocate(self, descriptor: int, size: int) -> None: ...
    def sync(self, descriptor: int) -> None: ...
    def rename(self, source: Path, target: Path) -> None: ...
    def remove(self, path: Path) -> None: ...
    def names(self, directory: Path) -> list[str]: ...
    def make_directory(self, path: Path, mode: int = 0o777, *, parents: bool = True) -> None: ...


class OsFiles:
    """The real calls."""

    write = staticmethod(os.pwrite)

    def open(self, path: Path, flags: int) -> int:
        return os.open(path, flags, 0o644)

    def close(self, descriptor: int) -> None:
        os.close(descriptor)

    def duplicate(self, descriptor: int) -> int:
        return os.dup(descriptor)

    def size(self, descriptor: int) -> int:
        return os.fstat(descriptor).st_size

    def read(self, descriptor: int, count: int, position: int) -> bytes:
        return os.pread(descriptor, count, position)

    def truncate(self, descriptor: int, size: int) -> None:
        os.ftruncate(descriptor, size)

    def allocate(self, descriptor: int, size: int) -> None:
        allocate = getattr(os, "posix_fallocate", None)  # absent on macOS
        if allocate is None:
            os.pwrite(descriptor, bytes(size), 0)
        else:
            allocate(descriptor, 0, size)

    def sync(self, descriptor: int) -> None:
        # fdatasync also writes the size, which is all an appended record needs of the metadata.
        getattr(os, "fdatasync", os.fsync)(descriptor)

    def rename(self, source: Path, target: Path) -> None:
        source.replace(target)

    def remove(self, path: Path) -> None:
        path.unlink()

    def names(self, directory: Path) -> list[str]:
        return os.listdir(directory)  # noqa: PTH208 - a reader at the end looks often, and needs no Path for each

    def make_directory(self, path: Path, mode: int = 0o777, *, parents: bool = True) -> None:
        path.mkdir(mode, parents=parents, exist_ok=True)


OS_FILES = OsFiles()


@contextmanager
def open_descriptor(files: Files, path: Path, flags: int) -> Generator[int, None, None]:
    """A descriptor for a with-block."""
    descriptor = files.open(path, flags)
    try:
        yield descriptor
    finally:
        close_quietly(files, descriptor)


def close_quietly(files: Files, descriptor: int) -> None:
    """Close; what it complains about, a sync tells too, and there is no second try: the descriptor is gone."""
    with suppress(OSError):
        files.close(descriptor)


def write_all(files: Files, descriptor: int, data: bytes, position: int) -> None:
    """Write all of it, however often the kernel takes only a part."""
    done = 0
    while done < len(data):
        done += files.write(descriptor, data[done:], position + done)


def sync_path(files: Files, path: Path) -> None:
    """Bring a file, or a directory's names, to the disk; a file that is gone needs nothing."""
    with suppress(FileNotFoundError), open_descriptor(files, path, READ) as descriptor:
        files.sync(descriptor)


def replace_file(files: Files, path: Path, data: bytes, *, durable: bool) -> None:
    """Write a small file so that after a crash it is either as before or as given, never torn."""
    fresh = path.with_name(path.name + ".new")
    with open_descriptor(files, fresh, CREATE) as descriptor:
        write_all(files, descriptor, data, 0)
        if durable:
            files.sync(descriptor)
    files.rename(fresh, path)
    if durable:
        sync_path(files, path.parent)


def read_file(files: Files, path: Path, limit: int) -> bytes | None:
    """The first `limit` bytes, or None where there is no such file."""
    with suppress(FileNotFoundError), open_descriptor(files, path, READ) as descriptor:
        return files.read(descriptor, limit, 0)
    return None
