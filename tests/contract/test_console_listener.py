"""The contract suite on the console: a real pipe, which can be full, and a real device that refuses."""

from __future__ import annotations

import io
import json
import os
import re
import sys
import threading
from collections.abc import Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, ClassVar
from uuid import UUID

import pytest

from headwater.events.envelope import EventId
from headwater.publishers.console import ConsoleFactory, ConsoleListener
from headwater.testing.examples import EXAMPLES
from headwater.testing.listeners import ListenerContract
from headwater.testing.memory import MemoryContext

TIMES = {event.time.isoformat(" ")[:19]: event.event_id for event in EXAMPLES}
"""The examples are a second apart, so that the time tells which one a line of text is about."""


class Pipe:
    """Standard error as a pipe with a reader that keeps all it reads, unless it is told not to read."""

    def __init__(self) -> None:
        self._end, descriptor = os.pipe()
        self.stream = io.TextIOWrapper(os.fdopen(descriptor, "wb", buffering=0), encoding="utf-8", write_through=True)
        self._data = b""
        self._reads = threading.Event()
        self._reads.set()
        self._thread = threading.Thread(target=self._read_on)
        self._thread.start()

    def _read_on(self) -> None:
        while self._reads.wait() and (data := os.read(self._end, 65536)):
            self._data += data

    def lines(self) -> list[str]:
        """Everything that was ever written to it; nothing can be written any more."""
        self.close()
        return self._data.decode().splitlines()

    def close(self) -> None:
        self.stream.close()
        self._thread.join()

    @contextmanager
    def full(self) -> Generator[None]:
        """Nobody reads, and there is no room."""
        self._reads.clear()
        os.set_blocking(self.stream.fileno(), False)
        with pytest.raises(BlockingIOError):
            self._fill()
        os.set_blocking(self.stream.fileno(), True)
        yield
        self._reads.set()

    def _fill(self) -> None:
        while True:
            os.write(self.stream.fileno(), b"-" * 4095 + b"\n")

    @contextmanager
    def refusing(self) -> Generator[None]:
        """Where it led is a device that has no room."""
        descriptor = self.stream.fileno()
        kept, device = os.dup(descriptor), os.open("/dev/full", os.O_WRONLY)
        os.dup2(device, descriptor)
        yield
        os.dup2(kept, descriptor)
        os.close(kept)
        os.close(device)


class TestConsoleAsJson(ListenerContract):
    configuration: ClassVar[dict[str, str]] = {"format": "json"}

    @pytest.fixture(autouse=True)
    def _console(self, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
        self.pipe = Pipe()
        self.seen: list[str] | None = None
        self.patch = monkeypatch
        with ThreadPoolExecutor(1) as self.executor:
            yield
        monkeypatch.undo()
        self.pipe.close()

    def create(self) -> ConsoleListener:
        self.patch.setattr(sys, "stderr", self.pipe.stream)  # here, because pytest puts its own before each test
        return ConsoleFactory().create(MemoryContext("console", self.configuration, self.executor))

    def lines(self) -> list[str]:
        if self.seen is None:
            self.seen = [line for line in self.pipe.lines() if not line.startswith("----")]
        return self.seen

    def delivered(self, listener: Any) -> list[EventId]:
        printed = [json.loads(line) for line in self.lines()]
        return [EventId(UUID(each["producer"]), int(each["sequence"])) for each in printed if each["kind"]]

    def missed(self, listener: Any) -> int:
        return sum(int(printed.get("missed", 0)) for printed in map(json.loads, self.lines()))

    def refusing(self) -> Any:
        return self.pipe.refusing()

    def stalling(self) -> Any:
        return self.pipe.full()


class TestConsoleAsText(TestConsoleAsJson):
    configuration: ClassVar[dict[str, str]] = {}

    def delivered(self, listener: Any) -> list[EventId]:
        return [TIMES[line[:19]] for line in self.lines() if not line.startswith("- ")]

    def missed(self, listener: Any) -> int:
        return sum(int(found[1]) for line in self.lines() if (found := re.match(r"-  (\d+) events were missed", line)))
