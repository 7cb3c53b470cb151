"""`headwater writer run --processes`: its processes end with it, however it ends, and nothing is lost."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from http import HTTPStatus
from pathlib import Path
from urllib.request import urlopen

import pytest

from headwater.lineage.store import Store, open_store
from headwater.local import KafkaServer
from headwater.local.process import free_ports
from tests.kit.events.written import (
    CODEC,
    commits,
    digest_by_law,
    digest_in,
    on_topic,
    produced,
)
from tests.kit.processes import children_of, is_alive
from tests.kit.stores import database_on
from tests.kit.topics import new_topic
from tests.kit.waiting import PATIENCE, until
from tests.kit.writers.process import wait_for_rows, writer_process

pytestmark = [pytest.mark.slow, pytest.mark.kafka, pytest.mark.database]

PROCESSES = ("--processes", "2")


@pytest.fixture
def topic(kafka: KafkaServer) -> str:
    return new_topic(kafka.address, "processes", 3)


@pytest.fixture
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    with database_on("postgres", request, tmp_path) as url:
        yield url.render_as_string(hide_password=False)


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    with open_store(url) as opened:
        yield opened


def test_a_signal_to_all_of_them_ends_it_in_order(kafka: KafkaServer, topic: str, url: str, store: Store) -> None:
    """As a supervisor sends it to a whole group of processes. One port shows the health of all."""
    produced(kafka, topic, [CODEC.encode(event) for event in commits(60)])
    (port,) = free_ports(1)
    with writer_process(kafka, topic, url, *PROCESSES, "--health", f"127.0.0.1:{port}") as process:
        try:
            until(lambda: is_ready(port) and sum(store.bulk.offsets("g").values()) == 60)
            children = children_of(process.pid)
            assert len(children) == 4
            for each in (*children, process.pid):
                os.kill(each, signal.SIGTERM)
            out, _ = process.communicate(timeout=PATIENCE)
        finally:
            process.kill()
    assert process.returncode == 0
    assert "60" in out
    assert not any(map(is_alive, children))
    assert digest_in(store) == digest_by_law(on_topic(kafka, topic))


@pytest.mark.long
def test_writers_that_are_killed_lose_and_change_nothing(
    kafka: KafkaServer, topic: str, url: str, store: Store
) -> None:
    data = [CODEC.encode(event) for event in commits(4_000)]
    sending = threading.Thread(target=produced, args=(kafka, topic, data, 20))
    killed = 0
    sending.start()
    try:
        while sending.is_alive() or killed < 3:
            with writer_process(kafka, topic, url, *PROCESSES, "--batch", "50") as process:
                try:
                    wait_for_rows(store, process, len(data))
                    children = children_of(process.pid)
                finally:
                    process.kill()
                assert process.wait() == -signal.SIGKILL
                killed += 1
            assert len(children) == 4
            until(partial(none_is_alive, children))
    finally:
        sending.join()
    with writer_process(kafka, topic, url, *PROCESSES, "--until-end") as process:
        assert process.wait(PATIENCE) == 0
    assert digest_in(store) == digest_by_law(on_topic(kafka, topic))
    assert sum(store.bulk.offsets("g").values()) == len(data)


def is_ready(port: int) -> bool:
    with suppress(OSError), urlopen(f"http://127.0.0.1:{port}/ready", timeout=PATIENCE) as answer:
        return bool(answer.status == HTTPStatus.OK)
    return False


def none_is_alive(processes: list[int]) -> bool:
    return not any(map(is_alive, processes))
