"""Databases in a file (SQLite, H2, HSQLDB, Derby). One in memory is nowhere but in its process."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from headwater.events.identity.errors import IdentityError, Unknown
from headwater.events.identity.jdbc.dialects import Dialect, Fold
from headwater.events.identity.jdbc.urls import Address, malformed, places, split_settings

_MEMORY = re.compile(r"(?:mem(?:ory)?:|:memory:|file::memory:|res:|jar:|classpath:|zip:).*", re.IGNORECASE | re.DOTALL)
_SERVER = re.compile(r"(?:tcp:|ssl:|hsqls?:|https?:)?//(?P<authority>[^/]+)/(?P<path>.*)", re.IGNORECASE | re.DOTALL)
_FILE = re.compile(
    r"(?:(?:nio|async|split|directory)[^:/]*:)*(?:file:(?://(?=/))?)?(?P<path>.*)", re.IGNORECASE | re.DOTALL
)

IN_PROCESS: Final = "the database lives in one process (in memory or among its resources); no other run can meet it"


def embedded_address(rest: str, dialect: Dialect) -> Address | Unknown:
    location, settings = split_settings(rest, "?;" if dialect.name == "sqlite" else ";")
    location = location or settings.get("databasename", "")
    if _MEMORY.fullmatch(location) or (dialect.name == "sqlite" and (not location or settings.get("mode") == "memory")):
        return Unknown(reason=IN_PROCESS)
    if (match := _SERVER.fullmatch(location)) and dialect.name != "sqlite":
        return _on_server(match["authority"], match["path"], dialect, settings)
    match = _FILE.fullmatch(location)
    path = match["path"] if match else ""
    if not path or path.startswith(("~", "//")) or "@" in path:
        raise malformed(dialect, "/absolute/path/of/the/database")
    return Address(dialect=dialect, file=path, schema=settings.get("schema"), fold=_fold(settings))


def _on_server(authority: str, path: str, dialect: Dialect, settings: Mapping[str, str]) -> Address | Unknown:
    if _MEMORY.fullmatch(path):
        return Unknown(reason=IN_PROCESS)
    if "@" in path:
        raise malformed(dialect, "//host:port/database, the user given as a setting")
    if not path.strip("/"):
        msg = f"the {dialect.name} jdbc url names a server but no database; give it as …//host:port/database"
        raise IdentityError(msg)
    suffix = "/" + path.removeprefix("/").rstrip("/")
    found = places(authority, dialect.port)
    return Address(dialect=dialect, places=found, suffix=suffix, schema=settings.get("schema"), fold=_fold(settings))


def _fold(settings: Mapping[str, str]) -> Fold | None:
    """H2 can be configured not to fold, or to fold the other way."""
    if settings.get("database_to_lower", "").lower() == "true":
        return "lower"
    return "keep" if settings.get("database_to_upper", "").lower() == "false" else None
