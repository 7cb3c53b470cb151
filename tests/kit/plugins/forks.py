"""`--forks 2` collects tests once and plays them in two processes; each takes the next group that nobody has.

Workers of xdist collect everything each, and for fast tests that takes as long as to play them. A process that is
forked after the collection has all modules, and the longest groups come first, so that both end at the same time.
"""

from __future__ import annotations

import gc
import json
import os
import selectors
import signal
import struct
import traceback
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO, Final

import pytest

from tests.kit.plugins.tiers import grouped

Groups = Sequence[Sequence[pytest.Item]]
_NUMBER: Final = struct.Struct("<H")
"""The number of a group. All of them fit into a pipe, which is read as a queue."""


def pytest_addoption(parser: pytest.Parser) -> None:
    words = "collect once and play the tests in so many processes"
    parser.getgroup("tiers").addoption("--forks", type=int, default=0, metavar="N", help=words)


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool | None:
    """Play the tests in forked processes, if that was requested."""
    count: int = session.config.getoption("--forks")
    if not count or session.config.option.collectonly or session.testsfailed:
        return None
    groups = grouped(session.items)
    queue = queue_of(range(len(groups)))
    gc.freeze()
    workers = [Worker(session, groups, queue, number) for number in range(count)]
    os.close(queue)
    receive(session, workers)
    return True


def queue_of(numbers: Sequence[int]) -> int:
    """A descriptor from which each process reads the next number."""
    reading, writing = os.pipe()
    os.write(writing, b"".join(map(_NUMBER.pack, numbers)))
    os.close(writing)
    return reading


class Worker:
    """A forked process that plays groups of tests, and the reports that come from it."""

    def __init__(
        self, session: pytest.Session, groups: Sequence[Sequence[pytest.Item]], queue: int, number: int
    ) -> None:
        reading, writing = os.pipe()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of threads: those of numpy, which know of forks
            self.process: Final = os.fork()
        if not self.process:
            os.close(reading)
            status = 1
            try:
                play(session, groups, queue, number, os.fdopen(writing, "wb", buffering=0))
                status = 0
            except BaseException:  # noqa: BLE001 - nothing of it may come back into the parent's code
                traceback.print_exc()
            finally:
                os._exit(status)
        os.close(writing)
        self.reports: Final = os.fdopen(reading, "rb")
        self.running = ""
        """The test that was begun last."""
        self.rest = b""
        """The beginning of a line that isn't there as a whole yet."""

    def end(self) -> str:
        """Wait until the process has ended, and say how if it didn't end well."""
        self.reports.close()
        status = os.waitstatus_to_exitcode(os.waitpid(self.process, 0)[1])
        words = f"the process that played it ended with {status}; what else it had taken wasn't played"
        return words if status else ""


def play(session: pytest.Session, groups: Groups, queue: int, number: int, out: BinaryIO) -> None:
    """Play the groups of the queue, in a process of its own, and write the reports."""
    config = session.config
    capture: Any = config.pluginmanager.getplugin("capturemanager")
    capture.stop_global_capturing()  # else both would read and cut one file
    capture.start_global_capturing()
    config.pluginmanager.unregister(name="terminalreporter")
    config.pluginmanager.register(ReportWriter(config, out))
    use_own_folder(config, number)
    items = (item for group in numbers_in(queue) for item in groups[group])
    item = next(items, None)
    while item is not None:
        following = next(items, None)
        config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        item = following


def use_own_folder(config: pytest.Config, number: int) -> None:
    """Let `tmp_path` be below a folder of this process: the parent removes the whole."""
    factory: Any = config._tmp_path_factory  # type: ignore[attr-defined] # as xdist's workers have one
    folder = Path(factory.getbasetemp(), f"fork-{number}")
    folder.mkdir(mode=0o700)
    factory._basetemp = folder


def numbers_in(queue: int) -> Iterator[int]:
    while data := os.read(queue, _NUMBER.size):
        yield _NUMBER.unpack(data)[0]


class ReportWriter:
    """Writes what happens in a process, a line of JSON each."""

    def __init__(self, config: pytest.Config, out: BinaryIO) -> None:
        self._config = config
        self._out = out

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self._write({"running": nodeid})

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._write(self._config.hook.pytest_report_to_serializable(config=self._config, report=report))

    def _write(self, value: object) -> None:
        data = json.dumps(value, default=str).encode() + b"\n"
        while data:
            data = data[self._out.write(data) :]


def receive(session: pytest.Session, workers: Sequence[Worker]) -> None:
    """Pass reports on as if the tests had run here, until all processes have ended. If this is interrupted, so are
    they."""
    with selectors.DefaultSelector() as selector:
        for worker in workers:
            selector.register(worker.reports, selectors.EVENT_READ, worker)
        try:
            while selector.get_map():
                for key, _ in selector.select():
                    if not pass_on(session, key.data):
                        selector.unregister(key.fileobj)
                        note_end(session, key.data)
        except BaseException:
            for key in selector.get_map().values():
                os.kill(key.data.process, signal.SIGKILL)
            raise


def pass_on(session: pytest.Session, worker: Worker) -> bool:
    """Pass on what can be read at once; return False at the end."""
    data = worker.reports.read1()
    *lines, worker.rest = (worker.rest + data).split(b"\n")
    for line in lines:
        value = json.loads(line)
        if "running" in value:
            worker.running = value["running"]
        else:
            report = session.config.hook.pytest_report_from_serializable(config=session.config, data=value)
            session.config.hook.pytest_runtest_logreport(report=report)
    return bool(data)


def note_end(session: pytest.Session, worker: Worker) -> None:
    """Report the test as failed in which a process ended."""
    if words := worker.end():
        place = worker.running or "before the first test"
        report = pytest.TestReport(place, (place, None, place), {}, "failed", words, "call")
        session.config.hook.pytest_runtest_logreport(report=report)
