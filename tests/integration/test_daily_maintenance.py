"""What a store needs once a day is done by whoever writes to it."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from pathlib import Path
from uuid import UUID

import pytest
from sqlalchemy import Engine

from headwater.lineage.bulk import WriteBatch, WriterInstant
from headwater.lineage.maintenance.daily import StoreMaintenance, maintain_store
from headwater.lineage.maintenance.partitions import months_from
from headwater.lineage.store import Store, open_store
from tests.kit.stores import database_on
from tests.kit.waiting import until

pytestmark = [pytest.mark.slow, pytest.mark.database]
MONTH = months_from(None, 3)[-1].partition_of("commits")


@pytest.fixture
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    with (
        database_on("postgres", request, tmp_path) as url,
        open_store(url.render_as_string(hide_password=False)) as one,
    ):
        yield one


def is_there(engine: Engine, table: str) -> bool:
    with engine.connect() as connection:
        return bool(connection.exec_driver_sql(f"SELECT to_regclass('{table}') IS NOT NULL").scalar())


def run(engine: Engine, statement: str) -> None:
    with engine.begin() as connection:
        connection.exec_driver_sql(statement)


def test_months_to_come_are_made_and_dead_writers_forgotten(store: Store) -> None:
    run(store.engine, f"DROP TABLE {MONTH}")
    alive, dead = UUID(int=1), UUID(int=2)
    store.bulk.merge(WriteBatch(instants=[WriterInstant(alive, 1), WriterInstant(dead, 1)]))
    run(store.engine, f"UPDATE writer_instants SET requested_at = 5 WHERE writer = '\\x{dead.hex}'")
    with StoreMaintenance([store.engine], every=0.05):
        until(lambda: is_there(store.engine, MONTH))
        run(store.engine, f"DROP TABLE {MONTH}")
        until(lambda: is_there(store.engine, MONTH))
    assert list(store.bulk.instants(alive))
    assert not list(store.bulk.instants(dead))


def test_statistics_of_partitioned_tables_are_refreshed(store: Store) -> None:
    """Autovacuum never does, so that joins would be planned without."""
    assert not is_analyzed(store.engine)
    maintain_store(store.engine)
    assert is_analyzed(store.engine)


def is_analyzed(engine: Engine) -> bool:
    with engine.connect() as connection:
        found = connection.exec_driver_sql(
            "SELECT bool_and(reltuples >= 0) FROM pg_class WHERE relkind = 'p' AND relname IN ('commits', 'reads')"
        )
        return bool(found.scalar())


def test_who_may_not_says_so_once(store: Store, caplog: pytest.LogCaptureFixture) -> None:
    run(store.engine, f"DROP TABLE {MONTH}")
    run(store.engine, "CREATE ROLE only_writes LOGIN PASSWORD 'writes'")
    run(store.engine, "GRANT USAGE ON SCHEMA headwater TO only_writes")
    run(store.engine, "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA headwater TO only_writes")
    url = store.engine.url.set(username="only_writes", password="writes")
    with open_store(url.render_as_string(hide_password=False), create=False) as restricted:
        try:
            with caplog.at_level(logging.INFO), StoreMaintenance([restricted.engine], every=0.01):
                until(lambda: "headwater store maintain" in caplog.text)
                time.sleep(0.2)
        finally:
            run(store.engine, "DROP OWNED BY only_writes")
            run(store.engine, "DROP ROLE only_writes")
    assert len([each for each in caplog.records if "maintenance: " in each.getMessage()]) == 1
    assert not is_there(store.engine, MONTH)
