"""A file system that isn't asked for by paths, kept in a directory; its calls can fail, or not come back."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable
from pathlib import Path

from headwater.listeners.bus.remote_files import RemoteFile
from tests.kit.bus.scripts import PATIENCE

URI = "shelf://anywhere/spools"


class Shelf:
    """`before` is called with what is asked, before it is done."""

    def __init__(self, directory: Path, before: Callable[[str, str], object] = lambda *_: None) -> None:
        self.directory = directory
        self.before = before

    def names(self, path: str) -> list[RemoteFile]:
        self.before("names", path)
        place = self.directory / path
        found = sorted(place.iterdir()) if place.is_dir() else []
        return [RemoteFile(each.name, each.stat().st_size, each.stat().st_mtime, each.is_dir()) for each in found]

    def put(self, source: Path, path: str) -> None:
        self.before("put", path)
        self._made(path).write_bytes(source.read_bytes())

    def get(self, path: str, target: Path) -> None:
        self.before("get", path)
        assert not target.exists()
        target.write_bytes((self.directory / path).read_bytes())

    def write(self, path: str, data: bytes, *, replace: bool) -> bool:
        self.before("write", path)
        try:
            with self._made(path).open("wb" if replace else "xb") as file:
                file.write(data)
        except FileExistsError:
            return False
        return True

    def read(self, path: str) -> bytes | None:
        self.before("read", path)
        place = self.directory / path
        return place.read_bytes() if place.exists() else None

    def remove(self, path: str) -> None:
        self.before("remove", path)
        place = self.directory / path
        if place.is_dir():
            shutil.rmtree(place)
        else:
            place.unlink(missing_ok=True)

    def _made(self, path: str) -> Path:
        place = self.directory / path
        place.parent.mkdir(parents=True, exist_ok=True)
        return place


class FailingAt:
    """From the n-th call on everything fails; counts them all."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.calls = 0

    def __call__(self, what: str, path: str) -> None:
        self.calls += 1
        if self.calls >= self.number:
            raise ConnectionError(f"{what} {path}: the connection is gone")


class Hanging:
    """Calls of this kind don't come back until `over` is set."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.began = threading.Event()
        self.over = threading.Event()

    def __call__(self, what: str, path: str) -> None:
        if what == self.kind:
            self.began.set()
            self.over.wait(2 * PATIENCE)
