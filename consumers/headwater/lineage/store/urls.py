"""Parses the address of a store, as people write it, to a SQLAlchemy URL.

    jdbc:postgresql://host:5432/lineage?user=me   postgresql://me@host/lineage
    jdbc:mysql://host/lineage                     mysql://host/lineage
    jdbc:mariadb://host/lineage                   mariadb://host/lineage
    jdbc:sqlite:/var/lib/headwater/store.db       sqlite:////var/lib/headwater/store.db
                                                  /var/lib/headwater/store.db

Error messages never repeat the address, because it can contain a password.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import Enum
from pathlib import Path
from typing import Final
from urllib.parse import parse_qsl, unquote

from sqlalchemy import URL, make_url
from sqlalchemy.exc import ArgumentError

from headwater.config import unknown
from headwater.errors import ConfigurationError
from headwater.lineage.store import jdbc

_HOW: Final = (
    "write jdbc:postgresql://host:5432/database, jdbc:mysql://host:3306/database, jdbc:mariadb://host:3306/database, "
    "jdbc:sqlite:path, the path of a SQLite file, or the same as a SQLAlchemy URL"
)


class DatabaseKind(str, Enum):
    """The kinds of databases that can hold a store, each with the client that is used for it."""

    POSTGRESQL = "postgresql+psycopg"
    MYSQL = "mysql+pymysql"
    """MariaDB too."""
    SQLITE = "sqlite+pysqlite"

    @property
    def scheme(self) -> str:
        return self.value.partition("+")[0]


DRIVERS: Final[Mapping[str, DatabaseKind]] = {
    "org.postgresql.Driver": DatabaseKind.POSTGRESQL,
    "com.mysql.cj.jdbc.Driver": DatabaseKind.MYSQL,
    "com.mysql.jdbc.Driver": DatabaseKind.MYSQL,
    "org.mariadb.jdbc.Driver": DatabaseKind.MYSQL,
    "org.sqlite.JDBC": DatabaseKind.SQLITE,
}
"""The values of `jdbc.driver`: names of Java classes, which here only tell the kind of database."""

_SCHEMES: Final = {
    **dict.fromkeys(("postgresql", "postgres"), DatabaseKind.POSTGRESQL),
    **dict.fromkeys(("mysql", "mariadb"), DatabaseKind.MYSQL),
    "sqlite": DatabaseKind.SQLITE,
}
_PARAMETERS: Final = {DatabaseKind.POSTGRESQL: jdbc.POSTGRESQL, DatabaseKind.MYSQL: jdbc.MYSQL}
_JDBC: Final = re.compile(r"jdbc:(?P<scheme>[a-z0-9]+):(?P<rest>.*)", re.DOTALL | re.IGNORECASE)
_SQLALCHEMY: Final = re.compile(r"(?P<scheme>[a-z0-9]+)(?:\+[a-z0-9_]+)?://.*", re.DOTALL | re.IGNORECASE)
_SERVER: Final = re.compile(r"(?://(?P<hosts>[^/?]*)/?)?(?P<database>[^?]*)(?:\?(?P<query>.*))?", re.DOTALL)
_PORT: Final = re.compile(r"(?P<host>\[[^\]]*\]|[^:\[\]]*)(?::(?P<port>\d{1,5}))?")
MEMORY: Final = ":memory:"
SCHEMA: Final = "headwater"
"""The schema of a store's tables on PostgreSQL."""


def parse_url(text: str, driver: str | None = None) -> URL:
    """Parse an address. `driver` has to match it, and tells the kind of database where the address doesn't."""
    wanted = None if driver is None else database_of_driver(driver)
    text = text.strip()
    url = _move_credentials(_parse(text, wanted))
    found = DatabaseKind(url.drivername)
    if wanted is not None and found is not wanted:
        raise ConfigurationError(
            f"jdbc.driver: {driver} is for {wanted.scheme}, and jdbc.url is of {found.scheme}: leave jdbc.driver out, "
            "or name that of the URL"
        )
    return url


def database_of_driver(driver: str) -> DatabaseKind:
    if driver not in DRIVERS:
        raise ConfigurationError(f"jdbc.driver: {unknown('driver', driver, DRIVERS)}")
    return DRIVERS[driver]


def printable_url(url: URL) -> str:
    """Return the URL without password and parameters, as it can be printed and passed to commands."""
    if DatabaseKind(url.drivername) is DatabaseKind.SQLITE:
        return url.database or MEMORY
    hosts = url.query.get("host")
    host = url.host or (hosts if isinstance(hosts, str) else ",".join(hosts or ()))
    place = URL.create(url.drivername.partition("+")[0], url.username, None, host, url.port, url.database)
    return place.render_as_string()


def _parse(text: str, wanted: DatabaseKind | None) -> URL:
    if match := _JDBC.fullmatch(text):
        database = _database_kind(match["scheme"])
        return _sqlite(match["rest"]) if database is DatabaseKind.SQLITE else _of_jdbc(match["rest"], database)
    if match := _SQLALCHEMY.fullmatch(text):
        return _of_sqlalchemy(text, _database_kind(match["scheme"]))
    if wanted is not None and wanted is not DatabaseKind.SQLITE:
        return _of_jdbc(text if text.startswith("//") else f"//{text}", wanted)
    return _sqlite(text)


def _database_kind(scheme: str) -> DatabaseKind:
    if scheme.lower() not in _SCHEMES:
        raise ConfigurationError(f"jdbc.url: {unknown('database', scheme.lower(), _SCHEMES)}; {_HOW}")
    return _SCHEMES[scheme.lower()]


def _of_sqlalchemy(text: str, database: DatabaseKind) -> URL:
    try:
        url = make_url(text)
    except (ArgumentError, ValueError):
        raise ConfigurationError(f"jdbc.url isn't a URL: {_HOW}") from None  # its own words repeat the text
    if database is DatabaseKind.SQLITE:
        if url.query or url.host:
            raise ConfigurationError("jdbc.url: a SQLite file takes no host and no parameters: write its path only")
        return _sqlite(url.database or MEMORY)
    return url.set(drivername=database.value)


def _of_jdbc(rest: str, database: DatabaseKind) -> URL:
    match = _SERVER.fullmatch(rest)
    if match is None or rest.startswith(("replication:", "loadbalance:", "sequential:", "aurora:", "address=")):
        raise ConfigurationError(f"jdbc.url: {_HOW}")
    parameters = jdbc.translate_parameters(_pairs(match["query"] or ""), _PARAMETERS[database])
    credentials, _, hosts = (match["hosts"] or "localhost").rpartition("@")
    name, is_given, password = credentials.partition(":")
    places = [_place(host) for host in hosts.split(",")]
    url = URL.create(
        database.value,
        unquote(name) or None,
        unquote(password) if is_given else None,
        database=unquote(match["database"]) or None,
        query=parameters,
    )
    if len(places) == 1:
        return url.set(host=places[0][0], port=places[0][1])
    return url.update_query_pairs(("host", host if port is None else f"{host}:{port}") for host, port in places)


def _pairs(query: str) -> list[tuple[str, str]]:
    return parse_qsl(query, keep_blank_values=True)


def _place(text: str) -> tuple[str, int | None]:
    match = _PORT.fullmatch(text)
    port = None if match is None or match["port"] is None else int(match["port"])
    if match is None or (port is not None and not 0 < port < 65536):
        raise ConfigurationError(f"jdbc.url: the host and its port can't be read: {_HOW}")
    return match["host"].strip("[]") or "localhost", port


def _sqlite(path: str) -> URL:
    if path == MEMORY:
        return URL.create(DatabaseKind.SQLITE.value)
    if not path or path.startswith("file:") or "?" in path:
        raise ConfigurationError("jdbc.url: a SQLite file takes no parameters: write its path only")
    return URL.create(DatabaseKind.SQLITE.value, database=str(Path(path).expanduser()))


def _move_credentials(url: URL) -> URL:
    """Move user and password from the parameters to their own fields, where nothing prints them."""
    if DatabaseKind(url.drivername) is DatabaseKind.SQLITE:
        return url
    query = dict(url.query)
    for name, place in (("user", "username"), ("password", "password"), ("passwd", "password")):
        value = query.pop(name, None)
        if isinstance(value, str) and getattr(url, place) is None:
            url = url.set(**{place: value})  # type: ignore[arg-type]  # a name and a password are both texts
    url = url.set(query=query)
    if not url.database:
        raise ConfigurationError(f"jdbc.url names no database: {_HOW}")
    if isinstance(query.get("host"), tuple) and url.drivername == DatabaseKind.MYSQL.value:
        raise ConfigurationError("jdbc.url: of several hosts the store's is to be named: one, or a proxy before them")
    return url
