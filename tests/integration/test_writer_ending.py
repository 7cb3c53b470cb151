"""How a writer ends: well, in time, at once; and what its exit code says."""

from __future__ import annotations

import json
import signal
import sqlite3
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from headwater.events.avro import Codec
from headwater.journal import LocalLog
from headwater.local.process import free_ports
from headwater.testing.examples import EXAMPLES
from tests.kit.ports import refusing_port
from tests.kit.waiting import PATIENCE, until

pytestmark = [
    pytest.mark.slow,
    pytest.mark.sample(1, keep=("test_it_is_ready_and_alive_and_drains_when_it_is_reported_to",)),
]


class Writing:
    """A process, and what it says of itself."""

    def __init__(self, place: Path, process: subprocess.Popen[str], port: int) -> None:
        self.place, self.process, self.port = place, process, port

    def get(self, path: str) -> tuple[int, str]:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=PATIENCE) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as e:
            return e.code, e.read().decode()
        except OSError:
            return 0, ""

    def wait_for(self, path: str, words: str) -> None:
        def is_said() -> bool:
            assert self.process.poll() is None
            return words in self.get(path)[1]

        until(is_said, lambda: self.get(path), PATIENCE)

    def tell(self, count: int) -> None:
        """All at once: with the store away no more than two batches are taken, and each by itself would be one."""
        with LocalLog.open(self.place / "log").writer() as journal:
            journal.append_many([Codec().encode(event) for event in EXAMPLES[:count]])

    @contextmanager
    def locked(self) -> Generator[None]:
        """Nobody else can write to the store meanwhile."""
        held = sqlite3.connect(self.place / "store.db", PATIENCE, isolation_level=None)
        held.execute("BEGIN IMMEDIATE")
        try:
            yield
        finally:
            held.close()


@contextmanager
def writing(place: Path, *more: str) -> Generator[Writing]:
    LocalLog.open(place / "log").writer().close()
    (port,) = free_ports(1)
    bus, store = f"log:{place}/log", f"sqlite:///{place}/store.db"
    command = [sys.executable, "-m", "headwater.cli", "writer", "run", "--bus", bus, "--store", store]
    with subprocess.Popen([*command, "--health", f"127.0.0.1:{port}", *more], stderr=subprocess.PIPE, text=True) as one:
        try:
            found = Writing(place, one, port)
            found.wait_for("/ready", "ready\n")
            yield found
        finally:
            one.kill()


def test_it_is_ready_and_alive_and_drains_when_it_is_reported_to(tmp_path: Path) -> None:
    with writing(tmp_path) as one:
        assert (one.get("/live"), one.get("/ready")) == ((200, "alive\n"), (200, "ready\n"))
        with one.locked():
            one.tell(5)
            one.wait_for("/metrics", "headwater_writer_polled_total 5\n")
            one.process.send_signal(signal.SIGTERM)
        _, printed = one.process.communicate(timeout=PATIENCE)
        assert one.process.returncode == 0
    assert "stopping: the events it holds" in printed
    assert sqlite3.connect(tmp_path / "store.db").execute("SELECT next_offset FROM consumer_offsets").fetchall() == [
        (5,)
    ]


def test_what_is_not_drained_in_time_is_given_up(tmp_path: Path) -> None:
    with writing(tmp_path, "--drain-seconds", "1") as one, one.locked():
        one.tell(5)
        one.wait_for("/metrics", "headwater_writer_polled_total 5\n")
        one.process.send_signal(signal.SIGTERM)
        _, printed = one.process.communicate(timeout=PATIENCE)
        assert one.process.returncode == 3
    assert "what isn't stored is read again" in printed
    assert not sqlite3.connect(tmp_path / "store.db").execute("SELECT * FROM consumer_offsets").fetchall()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_told_twice_it_ends_at_once(tmp_path: Path, number: signal.Signals) -> None:
    with writing(tmp_path, "--drain-seconds", "1000") as one, one.locked():
        one.tell(5)
        one.wait_for("/metrics", "headwater_writer_polled_total 5\n")
        one.process.send_signal(number)
        assert one.process.stderr is not None
        while "stopping: the events it holds" not in one.process.stderr.readline():
            assert one.process.poll() is None
        one.process.send_signal(number)
        assert one.process.wait(PATIENCE) == 128 + number


def test_a_store_that_nobody_may_write_to_any_more_ends_it(tmp_path: Path) -> None:
    with writing(tmp_path) as one:
        with sqlite3.connect(tmp_path / "store.db", PATIENCE) as held:
            held.execute("ALTER TABLE consumer_offsets RENAME TO elsewhere")
        one.tell(1)
        assert one.process.wait(PATIENCE) == 1
        _, printed = one.process.communicate()
    assert "consumer_offsets" in printed


def ended(*arguments: str) -> tuple[int, str]:
    command = [sys.executable, "-m", "headwater.cli", "writer", "run", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
    return done.returncode, done.stderr


def test_a_flag_that_is_wrong_is_wrong_usage(tmp_path: Path) -> None:
    status, printed = ended("--bus", f"log:{tmp_path}", "--store", f"{tmp_path}/store.db", "--batch", "0")
    assert (status, "--batch" in printed, "write 1 or more" in printed) == (2, True, True)
    assert not (tmp_path / "store.db").exists()


def test_a_store_that_is_not_there_when_it_begins_may_be_there_later(tmp_path: Path) -> None:
    LocalLog.open(tmp_path / "log").writer().close()
    with refusing_port() as port:
        status, printed = ended("--bus", f"log:{tmp_path}/log", "--store", f"postgresql://127.0.0.1:{port}/lineage")
    assert (status, "try again" in printed) == (75, True)


def test_a_bus_that_is_not_there_is_waited_for_and_its_client_speaks_json_too(tmp_path: Path) -> None:
    with refusing_port() as port:
        lines = until_it_waits_and_is_ended(port, tmp_path)
    printed = [json.loads(each) for each in lines]
    refused = [each["message"] for each in printed if each["logger"].endswith(".librdkafka_log")]
    assert any("Connection refused" in each for each in refused)
    assert len(refused) == len(set(refused)) < 20, "it tried for twenty seconds, and says each thing once"


def until_it_waits_and_is_ended(port: int, tmp_path: Path) -> list[str]:
    """What the writer says."""
    flags = ["--bus", f"kafka://127.0.0.1:{port}/events", "--store", f"{tmp_path}/store.db", "--drain-seconds", "0"]
    command = [
        sys.executable,
        "-m",
        "headwater.cli",
        "writer",
        "run",
        *flags,
        "--log-format",
        "json",
        "--no-maintenance",
    ]
    lines: list[str] = []
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as one:
        try:
            assert one.stderr is not None
            while not any("waiting for the bus" in each for each in lines):
                lines.append(one.stderr.readline())
                assert one.poll() is None, lines
            one.send_signal(signal.SIGTERM)
            lines += one.communicate(timeout=PATIENCE)[1].splitlines()
            assert one.returncode in {0, 3}
        finally:
            one.kill()
    return lines
