"""A store that is rebuilt from a topic while a writer fills it: nothing is lost, whatever comes at that moment."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient
from sqlalchemy import URL

from headwater.events.clock import moment_of, wall_micros
from headwater.lineage.replacement.areas import Area, drop_area, has_area
from headwater.lineage.store import Store, StoreOptions, open_store
from headwater.local import KafkaServer
from tests.kit.events.written import digest_by_law, digest_in, on_topic, produced
from tests.kit.stores import DATABASES, database_on
from tests.kit.topics import new_topic
from tests.kit.waiting import PATIENCE, until
from tests.kit.writers.set_back import EVENTS, stored

pytestmark = [pytest.mark.slow, pytest.mark.kafka, pytest.mark.database]

COMMAND = [sys.executable, "-m", "headwater.cli"]


@pytest.fixture(params=DATABASES[1:2])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[URL]:
    with database_on(request.param, request, tmp_path) as url:
        yield url


@pytest.fixture
def store(url: URL) -> Iterator[Store]:
    with open_store(text_of(url)) as opened:
        yield opened


@pytest.fixture
def topic(kafka: KafkaServer) -> str:
    return new_topic(kafka.address, "replay", 3)


def text_of(url: URL) -> str:
    return url.render_as_string(hide_password=False)


def bus_of(kafka: KafkaServer, topic: str) -> str:
    return f"kafka://{kafka.address}/{topic}"


def replay(url: URL, *flags: str) -> subprocess.CompletedProcess[str]:
    return run("replay", "--store", text_of(url), *flags)


def run(*words: str) -> subprocess.CompletedProcess[str]:
    command = [*COMMAND, "-o", "json", *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=4 * PATIENCE, check=False)


@contextmanager
def writing(kafka: KafkaServer, topic: str, url: URL, err: Path, *flags: str) -> Generator[subprocess.Popen[bytes]]:
    """A writer's process, until the end of the block."""
    command = [*COMMAND, "writer", "run", "--bus", bus_of(kafka, topic), "--store", text_of(url), *flags]
    with err.open("wb") as words, subprocess.Popen(command, stderr=words, stdout=subprocess.DEVNULL) as process:
        try:
            yield process
        finally:
            process.terminate()
            process.wait(PATIENCE)


@pytest.mark.long
@pytest.mark.parametrize(
    "flags", [(), pytest.param(("--processes", "2"), marks=pytest.mark.long)], ids=["plain", "coordinated"]
)
def test_a_writer_under_load_goes_on_in_the_rebuilt_store(
    kafka: KafkaServer, topic: str, url: URL, store: Store, tmp_path: Path, *, flags: tuple[str, ...]
) -> None:
    """Events come all the while. In the end the store has the rows of all of them, each once."""
    produced(kafka, topic, EVENTS[:100])
    stop = threading.Event()

    def produce() -> None:
        at = 100
        while at < 300 and not stop.wait(0.05):
            produced(kafka, topic, EVENTS[at : at + 4])
            at += 4
        produced(kafka, topic, EVENTS[at:300])

    loading = threading.Thread(target=produce)
    with writing(kafka, topic, url, tmp_path / "err", *flags) as writer:
        until(lambda: stored(store) == 100, (tmp_path / "err").read_text)
        loading.start()
        try:
            done = replay(url, "--from", bus_of(kafka, topic))
        finally:
            stop.set()
            loading.join()
        assert done.returncode == 0, done.stderr
        until(lambda: stored(store) == 300, (tmp_path / "err").read_text, 2 * PATIENCE)
        assert writer.poll() is None
    found = json.loads(done.stdout)
    assert found["replay"]["switched"] is True
    assert digest_in(store) == digest_by_law(on_topic(kafka, topic))
    words = (tmp_path / "err").read_text()
    assert "a replay put other tables in the place of the store's" in words
    assert "set back" not in words


@pytest.mark.long
def test_a_topic_that_has_forgotten_its_beginning_needs_an_archive(
    kafka: KafkaServer, topic: str, url: URL, tmp_path: Path
) -> None:
    """The archive has the beginning, the topic the end, and both have the middle: each event is read once."""
    bus, archive = bus_of(kafka, topic), tmp_path / "archive"
    produced(kafka, topic, EVENTS[:150])
    command = [*COMMAND, "archive", "run", "--bus", bus, "--archive", str(archive), "--until-end", "--group", topic]
    subprocess.run(command, check=True, capture_output=True, timeout=2 * PATIENCE)
    produced(kafka, topic, EVENTS[150:])
    with open_store(text_of(url)):
        writer = [*COMMAND, "writer", "run", "--until-end", "--bus", bus, "--store", text_of(url)]
        subprocess.run(writer, check=True, capture_output=True, timeout=2 * PATIENCE)
    law = digest_by_law(on_topic(kafka, topic))
    forgotten = [TopicPartition(topic, number, 20) for number in range(3)]
    client = AdminClient(kafka.client_config())
    for each in client.delete_records(forgotten).values():
        each.result()
    refused = replay(url, "--from", bus)
    assert refused.returncode == 1, refused.stderr
    assert has_area(StoreOptions.at(text_of(url)), Area.FRESH)
    assert f"offsets 0 to 19 of partition 0 of {topic}" in refused.stderr
    assert replay(url, "--from", bus, "--accept-loss", "--no-switch").returncode == 0
    lossy = run("store", "compare", "--store", text_of(url), "--with", "fresh", "--differences", "9999")
    assert lossy.returncode == 1, lossy.stderr
    differing = [each["table"] for each in json.loads(lossy.stdout)["differences"]]
    assert (differing.count("commits"), differing.count("gaps")) == (60, 3)
    assert "a replay from" in replay(url, "--from", f"archive:{archive}", "--from", bus).stderr
    assert replay(url, "--abort").returncode == 0
    done = replay(url, "--from", f"archive:{archive}", "--from", bus)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["replay"]["events"] == 300
    with open_store(text_of(url)) as store:
        assert digest_in(store) == law


@pytest.mark.long
def test_a_writer_of_another_group_brings_lost_rows_back(
    kafka: KafkaServer, topic: str, url: URL, store: Store
) -> None:
    """It finds a merge of old events that changes what is there, or moves the offsets of the store's own writer."""
    command = [*COMMAND, "writer", "run", "--until-end", "--bus", bus_of(kafka, topic), "--store", text_of(url)]
    produced(kafka, topic, EVENTS[:200])
    subprocess.run(command, check=True, capture_output=True, timeout=2 * PATIENCE)
    before, right = store.bulk.offsets("headwater-writer"), digest_in(store)
    with store.engine.begin() as connection:
        connection.exec_driver_sql("DELETE FROM commits WHERE job IN ('job-3', 'job-4')")
    assert digest_in(store) != right
    subprocess.run([*command, "--group", "again"], check=True, capture_output=True, timeout=2 * PATIENCE)
    assert digest_in(store) == right
    assert store.bulk.offsets("headwater-writer") == before


def test_a_topic_up_to_a_time_fills_a_new_store(kafka: KafkaServer, topic: str, url: URL) -> None:
    """By the broker's own times: events of before are there, later ones aren't."""
    produced(kafka, topic, EVENTS[:60])
    times = sorted(time for _, time in on_topic(kafka, topic) if time is not None)
    until(lambda: wall_micros() > times[-1] + 5_000)
    border = wall_micros()
    until(lambda: wall_micros() > border + 5_000)
    produced(kafka, topic, EVENTS[60:100])
    moment = moment_of(border).isoformat()
    done = replay(url, "--from", bus_of(kafka, topic), "--until", moment)
    assert done.returncode == 0, done.stderr
    with open_store(text_of(url)) as store:
        assert stored(store) == 60
    refused = replay(url, "--from", bus_of(kafka, topic), "--until", moment)
    assert refused.returncode == 78
    assert "--until is for a new store" in refused.stderr
    drop_area(StoreOptions.at(text_of(url)), Area.FRESH)
