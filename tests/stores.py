"""Databases of a test's own, on the servers that tests share."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from uuid import uuid4

from sqlalchemy import create_engine, make_url, text

from headwater.local import Service


@contextmanager
def own_database(service: Service) -> Generator[str]:
    """The URL of an empty database, which goes afterwards with all that is in it."""
    name = f"t{uuid4().hex[:12]}"
    server = create_engine(service.address, isolation_level="AUTOCOMMIT")
    with server.connect() as connection:
        connection.execute(text(f"CREATE DATABASE {name}"))
    try:
        yield make_url(service.address).set(database=name).render_as_string(hide_password=False)
    finally:
        with server.connect() as connection:
            force = " WITH (FORCE)" if server.dialect.name == "postgresql" else ""
            connection.execute(text(f"DROP DATABASE {name}{force}"))
        server.dispose()
