"""What is particular to each database: its name in identities, its port, how it folds and qualifies a table's name.

The parts of a JDBC url that say where the database is. Users, passwords and settings are left behind here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, Literal, TypeAlias
from urllib.parse import unquote

from headwater.events.identity.hosts import Endpoint, endpoint
from headwater.events.identity.paths import without_user
from headwater.events.identity.text import IdentityError, required

Fold: TypeAlias = Literal["lower", "upper", "keep"]
Level: TypeAlias = Literal["database", "schema", "table"]

USER: Final = "{user}"
"""A default that is the connecting user."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    name: str
    """The scheme of the namespace."""
    port: int | None = None
    fold: Fold = "keep"
    """What happens to an unquoted name."""
    folds_quoted: bool = False
    """Quoted names are compared without case as well."""
    folds_database: bool = False
    """The database's name in the url is compared without case."""
    levels: tuple[Level, ...] = ("database", "schema", "table")
    """The parts of a full name; empty where they aren't known."""
    defaults: Mapping[Level, str] = field(default_factory=dict[Level, str])
    """What an unqualified name most likely means; recorded as an assumption."""
    quotes: str = '"`'
    dashes: bool = False
    """Unquoted names may hold hyphens."""


def _dialects() -> dict[str, Dialect]:
    two: tuple[Level, ...] = ("database", "table")
    inner: tuple[Level, ...] = ("schema", "table")
    postgres = Dialect(name="postgres", port=5432, fold="lower", defaults={"schema": "public"})
    mysql = Dialect(name="mysql", port=3306, levels=two)
    mssql = Dialect(name="mssql", port=1433, defaults={"schema": "dbo"}, quotes='"[')
    h2 = Dialect(name="h2", port=9092, fold="upper", levels=inner, defaults={"schema": "PUBLIC"})
    trino = Dialect(name="trino", fold="lower", folds_quoted=True, folds_database=True)
    clickhouse = Dialect(name="clickhouse", port=8123, levels=two, defaults={"database": "default"})
    hive2 = Dialect(
        name="hive2", port=10000, fold="lower", folds_quoted=True, levels=two, defaults={"database": "default"}
    )
    return {
        "postgresql": postgres,
        "postgres": postgres,
        "redshift": Dialect(name="redshift", port=5439, fold="lower", defaults={"schema": "public"}),
        "crate": Dialect(name="crate", port=5432, fold="lower", defaults={"database": "crate", "schema": "doc"}),
        "vertica": Dialect(name="vertica", port=5433, defaults={"schema": "public"}),
        "mysql": mysql,
        "mariadb": mysql,
        "oceanbase": Dialect(name="oceanbase", port=2881, levels=two),
        "sqlserver": mssql,
        "mssql": mssql,
        "oracle": Dialect(name="oracle", port=1521, fold="upper", folds_database=True, defaults={"schema": USER}),
        # 446 is the driver's own default; a server on 50000 has to be named with its port anyway.
        "db2": Dialect(name="db2", port=446, fold="upper", folds_database=True, defaults={"schema": USER}),
        "snowflake": Dialect(name="snowflake", fold="upper", folds_database=True),
        "bigquery": Dialect(name="bigquery", quotes="`", dashes=True),
        "trino": trino,
        "presto": Dialect(name="presto", fold="lower", folds_quoted=True, folds_database=True),
        "clickhouse": clickhouse,
        "ch": clickhouse,
        "teradata": Dialect(
            name="teradata",
            port=1025,
            fold="upper",
            folds_quoted=True,
            folds_database=True,
            levels=two,
            defaults={"database": USER},
        ),
        "cassandra": Dialect(name="cassandra", port=9042, fold="lower", levels=two),
        "hive2": hive2,
        "sqlite": Dialect(
            name="sqlite", fold="lower", folds_quoted=True, levels=inner, defaults={"schema": "main"}, quotes='"`['
        ),
        "h2": h2,
        "hsqldb": Dialect(name="hsqldb", port=9001, fold="upper", levels=inner, defaults={"schema": "PUBLIC"}),
        "derby": Dialect(name="derby", port=1527, fold="upper", levels=inner, defaults={"schema": USER}),
    }


DIALECTS: Final[Mapping[str, Dialect]] = MappingProxyType(_dialects())


def dialect_of(subprotocol: str) -> Dialect:
    """A database without rules of its own is named by its subprotocol, and its names are kept as they are."""
    known = DIALECTS.get(subprotocol)
    return known or Dialect(name=subprotocol, levels=())


_SUBPROTOCOL = re.compile(
    r"(?:jdbc(?:-secretsmanager)?:)(?P<name>[a-z0-9_+.-]+):(?P<rest>.*)", re.IGNORECASE | re.ASCII | re.DOTALL
)
_INNER = re.compile(r"(?P<name>[a-z0-9_+.-]+):(?P<rest>.*)", re.IGNORECASE | re.ASCII | re.DOTALL)
_WRAPPERS = frozenset({"aws-wrapper", "p6spy", "log4jdbc", "otel", "tracing"})
_SETTINGS = re.compile(r"[;&]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """Where a database is. One of: servers (`places`), a fixed name of a service, a file of the local machine."""

    dialect: Dialect
    places: tuple[Endpoint, ...] = ()
    service: str | None = None
    file: str | None = None
    suffix: str = ""
    """What tells databases of one server apart where that isn't part of a table's name."""
    database: str | None = None
    schema: str | None = None
    fold: Fold | None = None


def subprotocol(url: str) -> tuple[str, str]:
    """`jdbc:mysql://h/d` → (`mysql`, `//h/d`); tracing and failover wrappers in front are skipped."""
    rest = required(url, "the jdbc url").strip()
    match = _SUBPROTOCOL.match(rest)
    while match and match["name"].lower() in _WRAPPERS:
        rest = match["rest"]
        match = _SUBPROTOCOL.match(rest) or _INNER.match(rest)
    if match is None:
        msg = "the jdbc url isn't of the form jdbc:<database>:…; check option 'url'"
        raise IdentityError(msg)
    return match["name"].lower(), match["rest"]


def server_address(rest: str, dialect: Dialect, settings_mark: str = "?;") -> tuple[Address, dict[str, str]]:
    """The common form `//host,host:port/database?settings` (or `;settings`), and its settings."""
    if not rest.startswith("//"):
        raise malformed(dialect, "//host:port/database")
    location, settings = split_settings(rest[2:], settings_mark)
    authority, _, path = location.partition("/")
    database = database_name(path.rstrip("/"), dialect)
    address = Address(dialect=dialect, places=places(authority, dialect.port), database=database)
    return address, settings


def split_settings(text: str, marks: str) -> tuple[str, dict[str, str]]:
    """What stands before the first mark, and the settings behind it with their names in lower case."""
    cut = min((text.index(mark) for mark in marks if mark in text), default=len(text))
    return text[:cut], settings_of(text[cut + 1 :])


def settings_of(text: str) -> dict[str, str]:
    pairs = (setting.partition("=") for setting in _SETTINGS.split(text))
    return {key.strip().lower(): value.strip() for key, _, value in pairs if key.strip()}


def places(authority: str, default_port: int | None) -> tuple[Endpoint, ...]:
    """The hosts of a list; none means this machine. Users stand before the first host or before each."""
    entries = [entry.strip() for entry in authority.split(",")]
    users = ["@" in entry for entry in entries]
    if any(users[1:]) and not all(users):
        msg = "the hosts of the jdbc url can't be distinguished from its user; give the user as an option"
        raise IdentityError(msg)
    hosts = [without_user(entry) or "localhost" for entry in entries]
    return tuple(endpoint(host, default_port) for host in hosts)


def database_name(text: str, dialect: Dialect) -> str | None:
    if not text:
        return None
    if "@" in text or "/" in text:
        raise malformed(dialect, "//host:port/database, the user given as an option")
    try:
        return required(unquote(text, errors="strict"), "the database of the jdbc url")
    except UnicodeDecodeError:
        raise malformed(dialect, "…/database percent-encoded in UTF-8") from None


def first_of(settings: Mapping[str, str], *keys: str) -> str | None:
    return next((settings[key] for key in keys if settings.get(key)), None)


def malformed(dialect: Dialect, form: str) -> IdentityError:
    return IdentityError(f"the {dialect.name} jdbc url names no server; give it as jdbc:{dialect.name}:{form}")
