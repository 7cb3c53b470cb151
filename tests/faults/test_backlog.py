"""A database that is away for long: twenty thousand events here, ten times as many in tests/benchmarks/backlog.py."""

from __future__ import annotations

from pathlib import Path

import pytest

from headwater.local import KafkaServer, PostgresServer
from tests.kit.writers.backlog import run_backlog

pytestmark = [pytest.mark.kafka, pytest.mark.database, pytest.mark.slow, pytest.mark.long]

EVENTS = 20_000
MOST_MORE = 160 << 20
"""Two batches, and what the Kafka client reads ahead: 64 MB and what it takes to keep them."""


def test_events_wait_on_the_bus_and_not_in_memory(tmp_path: Path, kafka: KafkaServer) -> None:
    with PostgresServer(durable=False) as server:
        found = run_backlog(tmp_path, kafka.client_config(), server, EVENTS)
    assert found.away - found.before < MOST_MORE, str(found)
    assert found.peak - found.before < MOST_MORE, str(found)
    assert found.rows > EVENTS
