"""Users who may read the views, and nothing else."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from sqlalchemy import Engine, text

PASSWORD = "secret"


@contextmanager
def postgres_reader(engine: Engine, *_: str) -> Generator[None]:
    """Roles are the whole server's; their rights go with the database."""
    _run(engine, "DROP ROLE IF EXISTS reader", f"CREATE ROLE reader LOGIN PASSWORD '{PASSWORD}'")
    yield
    _run(engine, "DROP OWNED BY reader", "DROP ROLE reader")


@contextmanager
def mariadb_reader(engine: Engine, *databases: str) -> Generator[None]:
    _run(engine, "DROP USER IF EXISTS reader@'%'", f"CREATE USER reader@'%' IDENTIFIED BY '{PASSWORD}'")
    _run(engine, *(f"GRANT SELECT ON {name}.* TO reader@'%'" for name in databases))
    yield
    _run(engine, "DROP USER reader@'%'")


def _run(engine: Engine, *statements: str) -> None:
    with engine.begin() as connection:
        for statement in statements:
            connection.execute(text(statement))
