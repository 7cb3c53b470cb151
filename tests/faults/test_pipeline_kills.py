"""kill -9 of the pipeline's driver and of its executors, in the midst of micro-batches: the rows are those of the law,
and offsets never stand before what is stored.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from headwater import local
from headwater.events.avro import Codec
from headwater.lineage.store import Store
from headwater.local import KafkaServer
from headwater.testing.examples import EXAMPLES
from tests.kit.events.mixture import events
from tests.kit.seeds import seed
from tests.kit.topics import new_topic
from tests.kit.waiting import until
from tests.kit.writers.pipeline import GROUP, assert_by_law, new_store, produce, url_of

pytestmark = [
    pytest.mark.spark,
    pytest.mark.kafka,
    pytest.mark.database,
    pytest.mark.slow,
    pytest.mark.long,
    pytest.mark.xdist_group("pipeline kills"),
]
SECONDS = 300
CODEC = Codec()
DATA = [CODEC.encode(each) for each in [*events(3_000, shapes=30), *EXAMPLES]]
EXECUTOR = "CoarseGrainedExecutorBackend"
TWO_EXECUTORS = "local-cluster[2,1,900]"


@pytest.fixture
def topic(kafka: KafkaServer) -> str:
    name = new_topic(kafka.address, "pipeline", 3)
    produce(kafka, name, DATA)
    return name


@pytest.fixture
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    with new_store(request, tmp_path) as opened:
        yield opened


class Driver:
    """A driver as a process group of its own, with its JVM and its executors."""

    def __init__(self, kafka: KafkaServer, topic: str, store: Store, place: Path, master: str) -> None:
        self._log = place / "driver.log"
        arguments = [kafka.address, topic, url_of(store), master]
        environment = {**os.environ, "JAVA_HOME": str(local.java().home), "SPARK_LOCAL_IP": "127.0.0.1"}
        with self._log.open("a") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "tests.kit.writers.pipeline_victim", *arguments],
                env=environment,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def executors(self) -> list[int]:
        """The processes of executors: Spark starts them in its own process group."""
        found = []
        for each in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                if EXECUTOR in (each / "cmdline").read_text() and os.getpgid(int(each.name)) == self.process.pid:
                    found.append(int(each.name))
        return sorted(found)

    def wait_for_half_a_batch(self, store: Store, completed: int) -> None:
        """Wait until so many micro-batches are completed and the next one is half written."""
        until(lambda: self._is_half_written(store, completed), "half a micro-batch", seconds=SECONDS)

    def _is_half_written(self, store: Store, completed: int) -> bool:
        code = self.process.poll()
        assert code is None, f"the driver ended by itself, with {code}: {self._log.read_text()[-4000:]}"
        return rows_before_offsets(store, completed)

    def kill(self) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def check_ended_well(self) -> None:
        assert self.process.wait(SECONDS) == 0, self._log.read_text()[-4000:]
        assert "DONE" in self._log.read_text()


@contextmanager
def driver(kafka: KafkaServer, topic: str, store: Store, place: Path, master: str) -> Generator[Driver]:
    started = Driver(kafka, topic, store, place, master)
    try:
        yield started
    finally:
        started.kill()


def rows_before_offsets(store: Store, completed: int) -> bool:
    """Whether a micro-batch is half written: more instants than are completed, and rows of the open one."""
    with store.engine.connect() as connection:
        done = connection.exec_driver_sql("SELECT count(*) FROM writer_instants WHERE state = 'COMPLETED'").scalar_one()
        opened = connection.exec_driver_sql("SELECT count(*) FROM writer_instants").scalar_one()
        numbers = connection.exec_driver_sql("SELECT coalesce(max(number), 0) FROM writer_marks").scalar_one()
    return bool(done >= completed and opened > done and numbers >= (completed + 1) << 20)


def assert_all_is_there(store: Store, kafka: KafkaServer, topic: str) -> None:
    assert sum(store.bulk.offsets(GROUP).values()) == len(DATA)
    assert_by_law(store, kafka, topic)


def test_a_driver_that_is_killed_goes_on_where_it_was(
    kafka: KafkaServer, topic: str, store: Store, tmp_path: Path
) -> None:
    for completed in (0, 1):
        with driver(kafka, topic, store, tmp_path, "local[2]") as running:
            running.wait_for_half_a_batch(store, completed)
            running.kill()
        assert sum(store.bulk.offsets(GROUP).values()) < len(DATA)
    with driver(kafka, topic, store, tmp_path, "local[2]") as running:
        running.check_ended_well()
    assert_all_is_there(store, kafka, topic)


def test_executors_that_are_killed_do_no_harm(kafka: KafkaServer, topic: str, store: Store, tmp_path: Path) -> None:
    chance, killed = random.Random(seed()), set[int]()
    with driver(kafka, topic, store, tmp_path, TWO_EXECUTORS) as running:
        for completed in (0, 2):
            running.wait_for_half_a_batch(store, completed)
            victim = chance.choice(running.executors())
            os.kill(victim, signal.SIGKILL)
            killed.add(victim)
        running.check_ended_well()
    assert len(killed) == 2
    assert_all_is_there(store, kafka, topic)
