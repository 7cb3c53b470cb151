"""A store on each database, for tests of what goes on in it."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final
from uuid import uuid4

import pytest
from sqlalchemy import URL, Engine, create_engine, make_url

from headwater.lineage.sql import METADATA
from headwater.local import Service

DATABASES: Final = [
    "sqlite",
    pytest.param("postgres", marks=pytest.mark.database),
    pytest.param("mariadb", marks=pytest.mark.database),
]
"""For parameters of fixtures."""


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
        return
    service: Service = request.getfixturevalue(name)
    server = create_engine(service.address, isolation_level="AUTOCOMMIT")
    own = f"store_{uuid4().hex}"
    with server.connect() as connection:
        connection.exec_driver_sql(f"CREATE DATABASE {own}")
        yield server.url.set(database=own)
        connection.exec_driver_sql(f"DROP DATABASE {own}" + (" WITH (FORCE)" if name == "postgres" else ""))
    server.dispose()
