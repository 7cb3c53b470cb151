"""Databases of a test's own on the servers that tests share, and stores in them."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final
from uuid import uuid4

import pytest
from sqlalchemy import URL, Connection, Engine, create_engine, make_url
from sqlalchemy.pool import StaticPool

from headwater.lineage.sql import METADATA
from headwater.lineage.store import Store, open_store
from headwater.local import Service

DATABASES: Final = [
    "sqlite",
    pytest.param("postgres", marks=pytest.mark.database),
    pytest.param("mariadb", marks=pytest.mark.database),
]
"""For parameters of fixtures."""
on_every_database: Final = pytest.mark.parametrize(
    "empty_store",
    [
        "sqlite",
        pytest.param("postgres", marks=[pytest.mark.slow, pytest.mark.database]),
        pytest.param("mariadb", marks=[pytest.mark.slow, pytest.mark.database, pytest.mark.long]),
    ],
    indirect=True,
    scope="session",
)
"""For tests in tests/unit/lineage, whose store is in memory otherwise."""


@contextmanager
def store_on(name: str, request: pytest.FixtureRequest, directory: Path) -> Generator[Engine]:
    """A store in a database of its own, which is gone afterwards."""
    with database_on(name, request, directory) as url:
        engine = create_engine(url)
        METADATA.create_all(engine)
        yield engine
        engine.dispose()


@contextmanager
def database_on(name: str, request: pytest.FixtureRequest, directory: Path) -> Generator[URL]:
    """An empty one of its own."""
    if name == "sqlite":
        yield make_url(f"sqlite:///{directory}/store.db")
    else:
        with own_database(request.getfixturevalue(name)) as url:
            yield make_url(url)


@contextmanager
def engine_on(name: str, request: pytest.FixtureRequest) -> Generator[Engine]:
    """A store with nothing in it, in memory or in a database of its own."""
    with ExitStack() as stack:
        if name == "sqlite":
            engine = create_engine("sqlite://", poolclass=StaticPool)
        else:
            engine = create_engine(stack.enter_context(own_database(request.getfixturevalue(name))))
        METADATA.create_all(engine)
        yield engine
        engine.dispose()


@contextmanager
def memory_connection() -> Generator[Connection]:
    """A connection to an empty store in memory, which nobody else sees."""
    engine = create_engine("sqlite://", poolclass=StaticPool)
    METADATA.create_all(engine)
    with engine.connect() as connection:
        yield connection
    engine.dispose()


def open_new_store(place: str) -> Store:
    """A store with nothing in it, in a SQLite file that this names as a path or a URL. It is a copy of one that was
    created once: to create one takes longer than most tests of what is in it."""
    file = Path(place.removeprefix("sqlite:///"))
    if not file.exists():
        file.write_bytes(_empty_store())
    return open_store(place)


@cache
def _empty_store() -> bytes:
    with TemporaryDirectory() as folder:
        file = Path(folder, "store.db")
        open_store(str(file)).close()
        return file.read_bytes()


@contextmanager
def own_database(service: Service) -> Generator[str]:
    """The URL of an empty database, which goes afterwards with all that is in it."""
    name = f"t{uuid4().hex[:12]}"
    server = create_engine(service.address, isolation_level="AUTOCOMMIT")
    with server.connect() as connection:
        connection.exec_driver_sql(f"CREATE DATABASE {name}")
    try:
        yield make_url(service.address).set(database=name).render_as_string(hide_password=False)
    finally:
        with server.connect() as connection:
            force = " WITH (FORCE)" if server.dialect.name == "postgresql" else ""
            connection.exec_driver_sql(f"DROP DATABASE {name}{force}")
        server.dispose()
