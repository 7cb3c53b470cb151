"""Engines: connections as the store needs them, of each kind of database.

What all have in common: values of parameters are in no error, a connection is looked at before it is used, and the
password is asked for when a connection is made, so that neither an engine nor its URL has it.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any, Final

from sqlalchemy import Engine, create_engine, event

from headwater.errors import ConfigurationError
from headwater.lineage.store.engines import mysql, postgresql, sqlite
from headwater.lineage.store.options import Target
from headwater.lineage.store.urls import Database

_KINDS: Final = {Database.POSTGRESQL: postgresql, Database.MYSQL: mysql, Database.SQLITE: sqlite}
_EXTRAS: Final = {Database.POSTGRESQL: ("psycopg", "postgres"), Database.MYSQL: ("pymysql", "mysql")}


def engine_for(target: Target, *, readonly: bool = False) -> Engine:
    """Nothing is connected yet."""
    _require_client(target.kind)
    kind = _KINDS[target.kind]
    url, settings = kind.prepared(target.url, readonly=readonly)
    engine = create_engine(url, hide_parameters=True, **settings)
    kind.attend(engine, readonly=readonly)
    password = target.password
    if password is not None:

        @event.listens_for(engine, "do_connect")
        def give(_: Any, __: Any, ___: Any, parameters: dict[str, Any]) -> None:
            parameters["password"] = password()

    return engine


def _require_client(kind: Database) -> None:
    package, extra = _EXTRAS.get(kind, ("sqlite3", ""))
    if find_spec(package) is None:
        advice = f"pip install 'headwater[{extra}]'" if extra else "use a Python that was built with SQLite"
        raise ConfigurationError(f"for {kind.scheme} there is no Python package {package} here: {advice}")
