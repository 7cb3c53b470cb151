"""Backups of a store that is in use, and setting it back to one: what came after the backup is lost."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Generator
from contextlib import closing, contextmanager
from pathlib import Path

from sqlalchemy import URL, Connection, create_engine

Backup = Callable[[], None]
"""Sets the store back to when the backup was made. It can be called once."""


def back_up(url: URL, *, replace: bool = False) -> Backup:
    """Make a backup. With `replace` the file of a SQLite database is replaced by another one, and not written over."""
    if url.get_backend_name() == "sqlite":
        return _sqlite(Path(str(url.database)), replace=replace)
    return _postgres(url) if url.get_backend_name() == "postgresql" else _mariadb(url)


def _sqlite(path: Path, *, replace: bool) -> Backup:
    copy = path.with_suffix(".backup")
    _copy(path, copy)

    def overwrite() -> None:
        _copy(copy, path)

    def put_another() -> None:
        copy.replace(path)
        for suffix in ("-wal", "-shm"):
            path.with_name(path.name + suffix).unlink(missing_ok=True)

    return put_another if replace else overwrite


def _copy(source: Path, target: Path) -> None:
    with closing(sqlite3.connect(source, timeout=60)) as a, closing(sqlite3.connect(target, timeout=60)) as b:
        a.backup(b)


def _postgres(url: URL) -> Backup:
    """A copy of the database, which takes its name in one transaction; all its connections end, as in a failover."""
    live = str(url.database)
    with _server(url, "postgres") as server, _alone(server, live):
        server.exec_driver_sql(f"CREATE DATABASE {live}_copy TEMPLATE {live}")

    def set_back() -> None:
        with _server(url, "postgres") as server, _alone(server, live):
            moves = (f"ALTER DATABASE {each} RENAME TO" for each in (live, f"{live}_copy"))
            server.exec_driver_sql(f"BEGIN; {next(moves)} {live}_lost; {next(moves)} {live}; COMMIT")
            server.exec_driver_sql(f"DROP DATABASE {live}_lost")

    return set_back


@contextmanager
def _alone(server: Connection, database: str) -> Generator[None]:
    """End all connections to a database, and admit none meanwhile."""
    server.exec_driver_sql(f"ALTER DATABASE {database} ALLOW_CONNECTIONS false")
    try:
        ended = f"SELECT pg_terminate_backend(pid, 30000) FROM pg_stat_activity WHERE datname = '{database}'"
        server.exec_driver_sql(ended)
        yield
    finally:
        server.exec_driver_sql(f"ALTER DATABASE {database} ALLOW_CONNECTIONS true")


def _mariadb(url: URL) -> Backup:
    """A copy of each table. One statement puts all of them in the places of the others."""
    live, copy, lost = (f"{url.database}{suffix}" for suffix in ("", "_copy", "_lost"))
    with _server(url, "mysql") as server:
        server.exec_driver_sql("SET sql_mode = ''")  # which lets values for generated columns be ignored
        server.exec_driver_sql(f"CREATE DATABASE {copy}")
        kept = f"SHOW FULL TABLES FROM {live} WHERE Table_type = 'BASE TABLE'"
        names = [name for name, _ in server.exec_driver_sql(kept)]
        locked = ", ".join(f"{live}.{name} READ" for name in names)
        for name in names:
            server.exec_driver_sql(f"CREATE TABLE {copy}.{name} LIKE {live}.{name}")
        locked += "".join(f", {copy}.{name} WRITE" for name in names)
        server.exec_driver_sql(f"LOCK TABLES {locked}")
        for name in names:
            server.exec_driver_sql(f"INSERT INTO {copy}.{name} SELECT * FROM {live}.{name}")
        server.exec_driver_sql("UNLOCK TABLES")

    def set_back() -> None:
        with _server(url, "mysql") as server:
            server.exec_driver_sql(f"CREATE DATABASE {lost}")
            moves = [f"{live}.{name} TO {lost}.{name}, {copy}.{name} TO {live}.{name}" for name in names]
            server.exec_driver_sql(f"RENAME TABLE {', '.join(moves)}")
            server.exec_driver_sql(f"DROP DATABASE {lost}")
            server.exec_driver_sql(f"DROP DATABASE {copy}")

    return set_back


@contextmanager
def _server(url: URL, database: str) -> Generator[Connection]:
    engine = create_engine(url.set(database=database), isolation_level="AUTOCOMMIT")
    try:
        with engine.connect() as connection:
            yield connection
    finally:
        engine.dispose()
