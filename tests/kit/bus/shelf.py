"""A file system that isn't asked for by paths, kept in a directory; its calls can fail, or not come back."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from headwater.listeners.bus.handover import LocalDirectory
from tests.kit.waiting import PATIENCE

URI = "shelf://anywhere/spools"


class Shelf(LocalDirectory):
    """`before` is called with what is asked, before it is done."""

    def __init__(self, directory: Path, before: Callable[[str, str], object] = lambda *_: None) -> None:
        super().__init__(directory)
        self.directory = directory
        self.before = before

    def sizes(self) -> dict[str, int]:
        self.before("sizes", "")
        return super().sizes()

    def create(self, name: str) -> Any:
        self.before("create", name)
        return super().create(name)

    def rename(self, name: str, to: str) -> None:
        self.before("rename", name)
        super().rename(name, to)

    def read(self, name: str, count: int) -> bytes:
        self.before("read", name)
        return super().read(name, count)

    def fetch(self, name: str, size: int, target: Path) -> None:
        self.before("fetch", name)
        super().fetch(name, size, target)

    def remove(self, name: str) -> None:
        self.before("remove", name)
        super().remove(name)


class FailingAt:
    """From the n-th call on everything fails; counts them all."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.calls = 0

    def __call__(self, what: str, name: str) -> None:
        self.calls += 1
        if self.calls >= self.number:
            raise ConnectionError(f"{what} {name}: the connection is gone")


class Hanging:
    """Calls of this kind don't come back until `over` is set."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.began = threading.Event()
        self.over = threading.Event()

    def __call__(self, what: str, name: str) -> None:
        if what == self.kind:
            self.began.set()
            self.over.wait(2 * PATIENCE)
