"""SQLAlchemy engines with the settings that a store needs, for each kind of database.

All of them keep parameter values out of error messages, test a connection before use, and ask for the password at each
connect, so that neither the engine nor its URL contains it.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any, Final

from sqlalchemy import Engine, create_engine, event

from headwater.errors import ConfigurationError
from headwater.lineage.store.engines import mysql, postgresql, sqlite
from headwater.lineage.store.options import StoreAddress
from headwater.lineage.store.urls import DatabaseKind
from headwater.plugins import extra_command

_KINDS: Final = {DatabaseKind.POSTGRESQL: postgresql, DatabaseKind.MYSQL: mysql, DatabaseKind.SQLITE: sqlite}
_EXTRAS: Final = {DatabaseKind.POSTGRESQL: ("psycopg", "postgres"), DatabaseKind.MYSQL: ("pymysql", "mysql")}


def engine_for(target: StoreAddress, *, readonly: bool = False) -> Engine:
    """Return an engine. It doesn't connect yet."""
    _require_client(target.kind)
    kind = _KINDS[target.kind]
    url, settings = kind.prepare_url(target.url, readonly=readonly)
    if target.kind is not DatabaseKind.SQLITE:  # whose transactions see one state anyway
        # Questions take several statements. What is stored in between mustn't be in a part of the answer.
        settings["isolation_level"] = "REPEATABLE READ" if readonly else "READ COMMITTED"
    engine = create_engine(url, hide_parameters=True, **settings)
    kind.register_events(engine, target, readonly=readonly)
    password = target.password
    if password is not None:

        @event.listens_for(engine, "do_connect")
        def give(_: Any, __: Any, ___: Any, parameters: dict[str, Any]) -> None:
            parameters["password"] = password()

    return engine


@contextmanager
def open_engine(target: StoreAddress, *, readonly: bool = False) -> Generator[Engine]:
    """Make an engine for a block, and close its connections behind it."""
    engine = engine_for(target, readonly=readonly)
    try:
        yield engine
    finally:
        engine.dispose()


def _require_client(kind: DatabaseKind) -> None:
    package, extra = _EXTRAS.get(kind, ("sqlite3", ""))
    if find_spec(package) is None:
        advice = extra_command(extra) if extra else "use a Python that was built with SQLite"
        raise ConfigurationError(f"for {kind.scheme} there is no Python package {package} here: {advice}")
