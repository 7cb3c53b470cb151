"""A store in memory; the same stories are told to PostgreSQL and MariaDB in tests/integration."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from sqlalchemy import Connection, Engine, create_engine
from sqlalchemy.pool import StaticPool

from headwater.lineage.sql import METADATA


@pytest.fixture(scope="session")
def empty_store() -> Iterator[Engine]:
    engine = create_engine("sqlite://", poolclass=StaticPool)
    METADATA.create_all(engine)
    yield engine
    engine.dispose()


@pytest.fixture
def connection(empty_store: Engine) -> Iterator[Connection]:
    """What a test stores is gone after it."""
    with empty_store.connect() as connection:
        yield connection
        connection.rollback()
