"""Mutated messages among good ones: every good one is stored, every bad one is a dead letter, memory stays what it is.
Twenty thousand here, a million in tests/benchmarks/mutants.py."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlalchemy import create_engine

from headwater.local import KafkaServer, Service
from headwater.testing.examples import EXAMPLES
from tests.kit import seeds
from tests.kit.events.mutations import large_events, messages
from tests.kit.faults.measured import run_measured
from tests.kit.faults.mutant_runs import Checking, fill_log, fill_topic, in_log, on_topic
from tests.kit.stores import own_database
from tests.kit.topics import new_topic

pytestmark = [pytest.mark.slow]

GOOD, MUTANTS, LARGE = 1_500, 3_000, 100
PARTITIONS = 3
MOST_MEMORY = 450 << 20
"""A writer takes so much at most, whatever comes; 5,000 events are a batch, and two batches are held."""


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With all of them, other ones for each seed of a run."""
    seed = seeds.seed()
    directory = tmp_path_factory.mktemp(f"seed-{seed}-") / "log"
    fill_log(directory, messages(GOOD, MUTANTS, seed))
    return directory


def written(bus: str, store: str) -> None:
    measured = run_measured(["writer", "run", "--until-end", "--bus", bus, "--store", store], timeout=300)
    assert measured.peak < MOST_MEMORY, str(measured)


def test_from_a_log_into_sqlite(log: Path, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/store.db"
    written(f"log:{log}", url)
    engine = create_engine(url)
    found = Checking(engine).check(in_log(log))
    engine.dispose()
    assert found.messages == GOOD + MUTANTS + len(EXAMPLES)
    assert found.letters["UNDECODABLE"] > MUTANTS // 4
    assert found.letters["REFUSED"] == 0


@pytest.mark.long
def test_many_large_events_from_a_log(tmp_path: Path) -> None:
    """None is known for a megabyte of names, and a batch is bounded by its bytes."""
    fill_log(tmp_path / "log", large_events(LARGE, seed=1))
    url = f"sqlite:///{tmp_path}/store.db"
    written(f"log:{tmp_path}/log", url)
    engine = create_engine(url)
    found = Checking(engine).check(in_log(tmp_path / "log"))
    engine.dispose()
    assert found.messages == LARGE
    assert 0 < sum(found.letters.values()) < LARGE, "some are larger than events may be"


@pytest.mark.long
@pytest.mark.kafka
@pytest.mark.database
def test_from_kafka_into_postgresql(log: Path, kafka: KafkaServer, postgres: Service) -> None:
    topic, config = new_topic(kafka.address, "mutants", PARTITIONS), kafka.client_config()
    fill_topic(config, topic, PARTITIONS, (each.data for each in in_log(log)))
    with own_database(postgres) as url:
        written(f"kafka://{kafka.address}/{topic}", url)
        engine = create_engine(url, connect_args={"options": "-c search_path=headwater"})
        found = Checking(engine).check(on_topic(config, topic))
        engine.dispose()
    assert found.messages == GOOD + MUTANTS + len(EXAMPLES)
    assert found.letters["UNDECODABLE"] > MUTANTS // 4
