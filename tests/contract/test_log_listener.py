"""The contract suite on the local log: a real directory, and the seam to the kernel where the disk has to misbehave."""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar

import pytest
from typing_extensions import Buffer

from headwater.journal import OsFiles
from headwater.publishers.log import LogFactory, LogListener
from headwater.testing.memory import MemoryContext
from headwater.testing.publishers import PublishedRecord, PublisherContract
from tests.kit.bus.logs import records_of

pytestmark = pytest.mark.slow


class Disk(OsFiles):
    """The real one, which can be full, or never come to an end with an fsync."""

    def __init__(self) -> None:
        self.is_full = False
        self.syncs = threading.Event()
        self.syncs.set()

    def write(self, descriptor: int, data: Buffer, position: int, /) -> int:
        if self.is_full:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return os.pwrite(descriptor, data, position)

    def sync(self, descriptor: int) -> None:
        self.syncs.wait()
        super().sync(descriptor)


class TestLogListener(PublisherContract):
    configuration: ClassVar[dict[str, str]] = {}

    @pytest.fixture(autouse=True)
    def _log(self, tmp_path: Path) -> Iterator[None]:
        self.directory = tmp_path / "log"
        self.disk = Disk()
        with ThreadPoolExecutor(1) as self.executor:
            yield
        self.disk.syncs.set()

    def create(self) -> LogListener:
        keys = {"dir": str(self.directory), **self.configuration}
        return LogFactory(self.disk).create(MemoryContext("log", keys, self.executor))

    def passed_on(self, listener: Any) -> list[PublishedRecord]:
        return [PublishedRecord(each.key or b"", dict(each.headers), each.value) for each in records_of(self.directory)]

    @contextmanager
    def refusing(self) -> Generator[None]:
        self.disk.is_full = True
        yield
        self.disk.is_full = False

    @contextmanager
    def stalling(self) -> Generator[None]:
        self.disk.syncs.clear()
        yield
        self.disk.syncs.set()


class TestLogListenerThatSyncsAlways(TestLogListener):
    configuration: ClassVar[dict[str, str]] = {"fsync": "always"}


class TestLogListenerThatNeverSyncs(TestLogListener):
    configuration: ClassVar[dict[str, str]] = {"fsync": "none"}
