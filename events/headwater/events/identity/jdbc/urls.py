"""The parts of a JDBC url that say where the database is. Users, passwords and settings are left behind here."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import unquote

from headwater.events.identity.errors import IdentityError
from headwater.events.identity.filesystems import without_user
from headwater.events.identity.hosts import Endpoint, endpoint
from headwater.events.identity.jdbc.dialects import Dialect, Fold
from headwater.events.identity.text import required

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
