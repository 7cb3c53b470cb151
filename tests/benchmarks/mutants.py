"""A million mutated messages among good ones, from a local log into SQLite and from Kafka into PostgreSQL: every good
one is stored, every bad one is a dead letter with its bytes and its place, and memory stays what it is.

    .venv/bin/python -m tests.benchmarks.mutants [--mutants 1000000] [--seed S]
"""

from __future__ import annotations

import sys
import tempfile
import time
from argparse import ArgumentParser
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import Engine, create_engine

from headwater import local
from tests.kit import seeds
from tests.kit.events.mutations import messages
from tests.kit.faults.measured import run_measured
from tests.kit.faults.mutant_runs import Checking, Placed, fill_log, fill_topic, in_log, on_topic
from tests.kit.topics import create_topic

MOST_MEMORY = 450 << 20
MOST_GROWTH = 32 << 20
"""In the last third, against the third before it."""
TOPIC, PARTITIONS = "mutants", 3
PATIENCE = 7_200.0
FAULTS: list[str] = []


def say(text: str) -> None:
    print(f"{time.strftime('%X')} {text}", flush=True)


def write(name: str, bus: str, store: str) -> None:
    measured = run_measured(["writer", "run", "--until-end", "--bus", bus, "--store", store], timeout=PATIENCE)
    say(f"{name}: {measured}")
    if measured.peak > MOST_MEMORY or measured.growth > MOST_GROWTH:
        FAULTS.append(f"{name}: memory isn't flat ({measured})")


def check(name: str, engine: Engine, placed: Iterator[Placed]) -> None:
    try:
        say(f"{name}: {Checking(engine).check(placed)}")
    except AssertionError as e:
        FAULTS.append(f"{name}: {e}")
        say(f"{name}: WRONG: {e}")
    engine.dispose()


def into_sqlite(log: Path, store: Path) -> None:
    url = f"sqlite:///{store}"
    write("log to SQLite", f"log:{log}", url)
    check("log to SQLite", create_engine(url), in_log(log))


@contextmanager
def topic(log: Path) -> Generator[local.Service]:
    with local.kafka() as kafka:
        config: dict[str, Any] = {"bootstrap.servers": kafka.address}
        create_topic(kafka.address, TOPIC, PARTITIONS)
        fill_topic(config, TOPIC, PARTITIONS, (each.data for each in in_log(log)))
        yield kafka


def into_postgres(log: Path) -> None:
    with topic(log) as kafka, local.postgres(durable=False) as postgres:
        write("Kafka to PostgreSQL", f"kafka://{kafka.address}/{TOPIC}", postgres.address)
        engine = create_engine(postgres.address, connect_args={"options": "-c search_path=headwater"})
        check("Kafka to PostgreSQL", engine, on_topic({"bootstrap.servers": kafka.address}, TOPIC))


def main() -> int:
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--mutants", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=seeds.seed())
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        log = Path(place) / "log"
        fill_log(log, messages(given.mutants // 5, given.mutants, given.seed))
        say(f"{given.mutants} mutated messages among {given.mutants // 5} good ones, seed {given.seed}")
        into_sqlite(log, Path(place) / "store.db")
        into_postgres(log)
    for fault in FAULTS:
        print(fault[:2_000])
    return 1 if FAULTS else 0


if __name__ == "__main__":
    sys.exit(main())
