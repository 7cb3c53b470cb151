"""A database that is away while events arrive: what a writer's memory does meanwhile, and how soon all is stored."""

from __future__ import annotations

import time
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from confluent_kafka import Producer
from sqlalchemy import Engine, create_engine, select
from sqlalchemy.exc import DBAPIError

from headwater.lineage.sql.writer_tables import OFFSETS
from headwater.local import PostgresServer
from tests.kit.events.many import encoded_events
from tests.kit.faults.measured import resident
from tests.kit.topics import new_topic
from tests.kit.waiting import attempts
from tests.kit.writers.process import WriterProcess
from tests.kit.writers.store_check import check_store, state_of

PATIENCE: Final = 600.0
PARTITIONS: Final = 3
_BEFORE: Final = 6_000
"""Events that are stored before the database goes."""
_WAITS: Final = "waiting for the store"
_MEGABYTE: Final = 1 << 20


@dataclass(frozen=True)
class Backlog:
    """How it went."""

    events: int
    before: int
    """The most bytes until the database went."""
    away: int
    """The most while it was away."""
    peak: int
    catching_up: float
    """Seconds, from when the database was back."""
    rows: int

    def __str__(self) -> str:
        return (
            f"{self.events} events while the database was away: memory {self.before / _MEGABYTE:.0f} MB before, "
            f"{self.away / _MEGABYTE:.0f} MB meanwhile, {self.peak / _MEGABYTE:.0f} MB at most; "
            f"all stored after {self.catching_up:.1f} s ({self.events / self.catching_up:,.0f} a second)"
        )


def run_backlog(folder: Path, kafka: Mapping[str, Any], server: PostgresServer, count: int) -> Backlog:
    """An AssertionError says what is wrong."""
    topic = new_topic(kafka["bootstrap.servers"], "backlog", PARTITIONS)
    engine = create_engine(server.address, connect_args={"options": "-c search_path=headwater"}, pool_pre_ping=True)
    source = encoded_events(_BEFORE + count)
    sent: list[bytes] = []
    flags = ["--bus", f"kafka://{kafka['bootstrap.servers']}/{topic}", "--store", server.address]
    with _running(WriterProcess(folder / "writer.log", flags, {})) as writer:
        _send(kafka, topic, source, _BEFORE, sent)
        before = _follow(writer, engine, len(sent))
        server.kill()
        _send(kafka, topic, source, count, sent)
        away = _wait_for_words(writer)
        server.start()
        began = time.monotonic()
        after = _follow(writer, engine, len(sent))
        took = time.monotonic() - began
        writer.stop()
        assert not writer.faults, f"{writer.faults}\n{writer.words[-3_000:]}"
    rows = check_store(engine, state_of(sent))
    engine.dispose()
    return Backlog(count, before, away, max(before, away, after), took, rows)


@contextmanager
def _running(writer: WriterProcess) -> Generator[WriterProcess]:
    writer.start()
    try:
        yield writer
    finally:
        writer.kill()


def _send(kafka: Mapping[str, Any], topic: str, source: Iterator[bytes], count: int, sent: list[bytes]) -> None:
    producer = Producer({**kafka, "enable.idempotence": True, "linger.ms": 20, "compression.type": "zstd"})
    for number in range(count):
        sent.append(next(source))
        producer.produce(topic, sent[-1], partition=number % PARTITIONS)
        if number % 20_000 == 0:
            assert producer.flush(PATIENCE) == 0
    assert producer.flush(PATIENCE) == 0


def _follow(writer: WriterProcess, engine: Engine, wanted: int) -> int:
    """Until so many events are stored; the most bytes meanwhile."""
    most = 0
    for _ in attempts(lambda: f"{_stored(engine)} of {wanted} are stored\n{writer.words[-3_000:]}", PATIENCE, 0.05):
        if _stored(engine) >= wanted:
            break
        most = max(most, resident(writer.pid))
    return most


def _wait_for_words(writer: WriterProcess) -> int:
    """Until it says that it waits, and a little longer; the most bytes meanwhile."""
    most = 0
    for looks in attempts(lambda: f"it doesn't say that it waits\n{writer.words[-3_000:]}", PATIENCE, 0.05):
        most = max(most, resident(writer.pid))
        if looks > 40 and _WAITS in writer.words:
            break
    return most


def _stored(engine: Engine) -> int:
    try:
        with engine.connect() as connection:
            return sum(connection.execute(select(OFFSETS.c.next_offset)).scalars())
    except DBAPIError:  # the tables aren't there yet
        return 0
