"""Databases for views: a new one for each test that asks, gone after it."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from datetime import datetime, timezone
from typing import Any
from uuid import uuid4

from sqlalchemy import Connection, Engine, create_engine, make_url, text

from headwater.events import Event
from headwater.lineage.bulk import merge_rows
from headwater.lineage.mapping import map_event
from headwater.lineage.sql import METADATA, create_views


@contextmanager
def database_of(address: str, schema: str | None = None) -> Generator[Engine]:
    """An engine on a database of its own, with the tables of a store, on PostgreSQL in a schema of their own."""
    url, name = make_url(address), f"views_{uuid4().hex[:12]}"
    server = create_engine(url, isolation_level="AUTOCOMMIT")
    with server.connect() as connection:
        connection.execute(text(f"CREATE DATABASE {name}"))
    where = {"connect_args": {"options": f"-c search_path={schema}"}} if schema else {}
    engine = create_engine(url.set(database=name), **where)
    try:
        if schema:
            with engine.begin() as connection:
                connection.execute(text(f"CREATE SCHEMA {schema}"))
        METADATA.create_all(engine)
        yield engine
    finally:
        engine.dispose()
        with server.connect() as connection:
            connection.execute(text(f"DROP DATABASE {name}"))
        server.dispose()


def fill(engine: Engine, events: list[Event], *views: tuple[str, str | None]) -> None:
    with engine.begin() as connection:
        for database, catalog in views:
            create_views(connection, database, catalog)
        merge_rows(connection, [row for event in events for row in map_event(event)])


def rows_of(connection: Connection, view: str) -> list[tuple[Any, ...]]:
    """Times in UTC, as they are known there or not."""
    return [tuple(map(_plain, row)) for row in connection.execute(text(f"SELECT * FROM {view}"))]


def _plain(value: Any) -> Any:
    if isinstance(value, str) and value[:2] == "20" and value.count(":") == 2:
        value = datetime.fromisoformat(value)
    if not isinstance(value, datetime):
        return value
    return value.replace(tzinfo=timezone.utc) if value.tzinfo is None else value.astimezone(timezone.utc)
