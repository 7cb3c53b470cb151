"""`headwater writer run --processes`: several writers that are begun, asked to stop, and end together."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from http import HTTPStatus
from pathlib import Path
from urllib.request import urlopen
from uuid import uuid4

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from headwater.lineage.store import Store, open_store
from headwater.local import KafkaServer
from headwater.local.process import free_ports
from tests.integration.stores import database_on
from tests.integration.test_writer import CODEC, PATIENCE, commits, digest_by_law, digest_in, on_topic, produced
from tests.waiting import attempts, until

pytestmark = [pytest.mark.slow, pytest.mark.kafka, pytest.mark.database, pytest.mark.sample(1)]


@pytest.fixture
def topic(kafka: KafkaServer) -> str:
    name = f"processes-{uuid4()}"
    client = AdminClient(kafka.client_config())
    client.create_topics([NewTopic(name, 3, 1)])[name].result()
    return name


@pytest.fixture
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    with database_on("postgres", request, tmp_path) as url:
        yield url.render_as_string(hide_password=False)


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    with open_store(url) as opened:
        yield opened


@pytest.fixture
def writing(kafka: KafkaServer, topic: str, url: str, store: Store) -> Iterator[subprocess.Popen[str]]:
    """Both are ready, each at a port of its own, and all there was is stored."""
    produced(kafka, topic, [CODEC.encode(event) for event in commits(60)])
    port, _ = free_ports(2)
    with begun(kafka, topic, url, "--health", f"127.0.0.1:{port}") as process:
        try:
            until_running(lambda: is_ready(port) and is_ready(port + 1) and stored(store) == 60, process)
            yield process
        finally:
            process.kill()


def test_what_is_on_a_topic_is_written_by_all_together(kafka: KafkaServer, topic: str, url: str, store: Store) -> None:
    produced(kafka, topic, [CODEC.encode(event) for event in commits(3_000)])
    with begun(kafka, topic, url, "--until-end", "--batch", "100") as process:
        out, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0
    assert [line.split() for line in out.splitlines() if "events" in line] == [["events", "3000"]], "of all"
    assert digest_in(store) == digest_by_law(on_topic(kafka, topic))


@pytest.mark.sample(1)
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_all(writing: subprocess.Popen[str], number: signal.Signals) -> None:
    children = children_of(writing.pid)
    assert len(children) == 2
    writing.send_signal(number)
    out, _ = writing.communicate(timeout=PATIENCE)
    assert writing.returncode == 0
    assert "60" in out
    assert not any(map(is_there, children))


def test_where_one_fails_all_end(writing: subprocess.Popen[str]) -> None:
    one, other = children_of(writing.pid)
    os.kill(one, signal.SIGKILL)
    _, err = writing.communicate(timeout=PATIENCE)
    assert writing.returncode == 128 + signal.SIGKILL
    assert f"process {one} ended with status -9" in err
    assert not is_there(other)


def test_where_who_began_them_is_killed_they_end(writing: subprocess.Popen[str]) -> None:
    children = children_of(writing.pid)
    assert len(children) == 2
    writing.kill()
    until(lambda: not any(map(is_there, children)))


def begun(kafka: KafkaServer, topic: str, url: str, *more: str) -> subprocess.Popen[str]:
    bus = f"kafka://{kafka.address}/{topic}"
    command = [sys.executable, "-m", "headwater.cli", "writer", "run", "--bus", bus, "--store", url, "--group", topic]
    pipe = subprocess.PIPE
    return subprocess.Popen([*command, "--processes", "2", *more], stdout=pipe, stderr=pipe, text=True)


def is_ready(port: int) -> bool:
    with suppress(OSError), urlopen(f"http://127.0.0.1:{port}/ready", timeout=PATIENCE) as answer:
        return bool(answer.status == HTTPStatus.OK)
    return False


def stored(store: Store) -> int:
    with store.engine.connect() as connection:
        return int(connection.exec_driver_sql("SELECT count(*) FROM commits").scalar_one())


def until_running(holds: Callable[[], bool], process: subprocess.Popen[str]) -> None:
    """Until it holds, which a process brings about that has to go on meanwhile."""
    for _ in attempts("what a process is to bring about", pause=0.05):
        if holds():
            return
        assert process.poll() is None, "it ended"


def children_of(process: int) -> list[int]:
    return [int(each) for each in Path(f"/proc/{process}/task/{process}/children").read_text().split()]


def is_there(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False
