"""A disk for spools that is full while a test wants it so; what is read, and what isn't a segment, works on."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

from headwater.journal import OsFiles


class FaultyDisk(OsFiles):
    """Refuses what is written to segments as long as there is a `fault`. What a journal sets aside on it can be given
    back, and is room for one record."""

    def __init__(self) -> None:
        self.error: int | None = None
        self.spare = 0
        self._segments: set[int] = set()

    def fault(self) -> int | None:
        """The number of the error that there is now."""
        return self.error

    def open(self, path: Path, flags: int) -> int:
        descriptor = super().open(path, flags)
        (self._segments.add if ".segment" in path.name else self._segments.discard)(descriptor)
        return descriptor

    @property
    def write(self) -> Callable[[int, bytes, int], int]:  # type: ignore[override]  # the real one costs no frame
        return self._write

    def _write(self, descriptor: int, data: bytes, position: int) -> int:
        if descriptor in self._segments and (fault := self.fault()) is not None:
            if self.spare < 1:
                raise OSError(fault, os.strerror(fault))
            self.spare -= 1
        return os.pwrite(descriptor, data, position)

    def remove(self, path: Path) -> None:
        super().remove(path)
        self.spare += path.name == "reserve"


class FullDisk(FaultyDisk):
    """Full as long as a file of that name is there, so that another process can say so."""

    def __init__(self, sign: Path) -> None:
        super().__init__()
        self._sign = sign

    def fault(self) -> int | None:
        return errno.ENOSPC if self._sign.exists() else None
