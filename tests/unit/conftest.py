"""A store in memory; what is marked `on_every_database` gets one on PostgreSQL and one on MariaDB too."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from sqlalchemy import Connection, Engine

from tests.kit.stores import engine_on


@pytest.fixture(scope="session")
def empty_store(request: pytest.FixtureRequest) -> Iterator[Engine]:
    with engine_on(getattr(request, "param", "sqlite"), request) as engine:
        yield engine


@pytest.fixture
def connection(empty_store: Engine) -> Iterator[Connection]:
    """What a test stores is gone after it."""
    with empty_store.connect() as connection:
        yield connection
        connection.rollback()


@pytest.fixture
def own_connection(request: pytest.FixtureRequest) -> Iterator[Connection]:
    """For a test that commits: to a store that is nobody else's."""
    with engine_on("sqlite", request) as engine, engine.connect() as connection:
        yield connection
