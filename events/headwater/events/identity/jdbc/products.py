"""What each database has of its own: MySQL, Oracle, SQL Server, and those that run inside a program."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final

from headwater.events.identity.hosts import Endpoint, endpoint
from headwater.events.identity.jdbc.dialects import (
    Address,
    Dialect,
    Fold,
    database_name,
    first_of,
    malformed,
    places,
    server_address,
    split_settings,
)
from headwater.events.identity.text import IdentityError, Unknown

_MODE = re.compile(
    r"(?:(?:replication|loadbalance|sequential|failover|load-balance-read|aurora|aws):)?(?=//)", re.IGNORECASE
)
_HOST_LIST = re.compile(r"(address=)?\(.*|\[.*\]", re.IGNORECASE | re.DOTALL)
_USER = re.compile(r"[^()\[\]]*@(?=address=|\(|\[)", re.IGNORECASE)
_HOST = re.compile(r"\bhost\s*=\s*([^),]+)", re.IGNORECASE)
_PORT = re.compile(r"\bport\s*=\s*([^),]+)", re.IGNORECASE)
_GROUP = re.compile(r"(?:\([^()]*\))+")


def mysql_address(rest: str, dialect: Dialect) -> Address:
    mode = _MODE.match(rest)
    if mode is None:
        raise malformed(dialect, "//host:port/database")
    location, _ = split_settings(rest[mode.end() + 2 :], "?")
    authority, slash, database = location.rpartition("/") if "/" in location else (location, "", "")
    if user := _USER.match(authority):
        authority = authority[user.end() :]
    if _HOST_LIST.fullmatch(authority):
        base, _ = server_address(f"//placeholder{slash}{database}", dialect)
        return replace(base, places=tuple(_written_out(authority, dialect)))
    address, _ = server_address(f"//{location}", dialect)
    return address


def srv_address(rest: str, dialect: Dialect) -> Address:
    """`mysql+srv`: the name of a DNS service record, which stands for hosts and ports."""
    address = mysql_address(rest, dialect)
    return replace(address, places=tuple(Endpoint(place.host) for place in address.places))


def _written_out(authority: str, dialect: Dialect) -> Iterator[Endpoint]:
    """`address=(host=a)(port=1),(host=b,port=2),[c,d]`."""
    if authority.startswith("["):
        yield from (endpoint(host, dialect.port) for host in authority[1:-1].split(","))
        return
    for group in _GROUP.findall(authority):
        host, port = _HOST.search(group), _PORT.search(group)
        if host is None:
            raise malformed(dialect, "//address=(host=…)(port=…)/database")
        yield endpoint(f"{host[1].strip()}:{port[1].strip()}" if port else host[1], dialect.port)


_FORM = "thin:@//host:port/service"
_PROTOCOL = re.compile(r"(?:tcps?:)?//", re.IGNORECASE)
_COLON_SID = re.compile(r"(?P<hosts>.+?):(?P<port>[0-9]+):(?P<sid>[^:/\s]+)")
_SLASH_SERVICE = re.compile(r"(?P<hosts>[^/]+)/(?P<service>[^/:\s]+)(?:[:/].*)?")
_ADDRESS = re.compile(r"\(\s*address\s*=((?:\s*\([^()]*\))+)\s*\)", re.IGNORECASE)
_DESCRIBED = re.compile(r"\(\s*(service_name|sid)\s*=\s*([^()]+?)\s*\)", re.IGNORECASE)


def oracle_address(rest: str, dialect: Dialect) -> Address:
    """Behind the `@`; credentials stand before it, settings behind a `?`."""
    _, described, descriptor = rest.partition("@(")
    if described:
        return _descriptor(f"({descriptor}", dialect)
    _, at, where = rest.partition("?")[0].rpartition("@")
    where = where.strip()
    if not at or not where:
        raise malformed(dialect, _FORM)
    if where.lower().startswith(("ldap:", "ldaps:")):
        msg = "an oracle jdbc url asks an LDAP server for the database; give host:port/service or the descriptor"
        raise IdentityError(msg)
    return _easy(_PROTOCOL.sub("", where, count=1), dialect)


def _easy(where: str, dialect: Dialect) -> Address:
    if match := _COLON_SID.fullmatch(where):
        return _address(places(f"{match['hosts']}:{match['port']}", dialect.port), match["sid"], dialect)
    if match := _SLASH_SERVICE.fullmatch(where):
        return _address(places(match["hosts"], dialect.port), match["service"], dialect)
    msg = "an oracle jdbc url holds a TNS alias or no service; give host:port/service or the connect descriptor itself"
    raise IdentityError(msg)


def _descriptor(text: str, dialect: Dialect) -> Address:
    found = [_described_place(group, dialect) for group in _ADDRESS.findall(text)]
    names = {key.lower(): value for key, value in _DESCRIBED.findall(text)}
    service = names.get("service_name") or names.get("sid")
    if not found or service is None:
        raise malformed(dialect, "thin:@(DESCRIPTION=(ADDRESS=(HOST=…)(PORT=…))(CONNECT_DATA=(SERVICE_NAME=…)))")
    return _address(tuple(found), service, dialect)


def _described_place(group: str, dialect: Dialect) -> Endpoint:
    host = re.search(r"\(\s*host\s*=\s*([^()]+?)\s*\)", group, re.IGNORECASE)
    port = re.search(r"\(\s*port\s*=\s*([^()]+?)\s*\)", group, re.IGNORECASE)
    if host is None:
        raise malformed(dialect, "thin:@(DESCRIPTION=(ADDRESS=(HOST=…)…)…)")
    where = endpoint(host[1], dialect.port)
    return endpoint(f"{where.host}:{port[1]}") if port else where


def _address(found: tuple[Endpoint, ...], service: str, dialect: Dialect) -> Address:
    return Address(dialect=dialect, places=found, database=database_name(service, dialect))


_URL = re.compile(
    r"//(?P<server>[^;\\/]*)(?:\\(?P<instance>[^;:/]*)(?::(?P<port>[0-9]+))?)?(?:/(?P<path>[^;]*))?(?P<rest>;.*)?",
    re.DOTALL,
)
_SETTING = re.compile(r";\s*([^=;]+?)\s*=\s*(?:\{((?:[^}]|\}\})*)\}|([^;]*))")
_INSTANCE = re.compile(r"[\w$-]+")


def sqlserver_address(rest: str, dialect: Dialect, values: Mapping[str, str]) -> Address:
    match = _URL.fullmatch(rest)
    if match is None:
        raise malformed(dialect, "//host:port;databaseName=…")
    settings = {**values, **_settings(match["rest"] or "")}
    server = match["server"] or first_of(settings, "servername", "server")
    if not server or "@" in server:
        raise malformed(dialect, "//host:port;databaseName=…")
    host, _, named = server.partition("\\")
    place = endpoint(f"{host}:{match['port']}" if match["port"] else host)
    instance = match["instance"] or named or first_of(settings, "instancename", "instance")
    place, suffix = _port_or_instance(place, instance, first_of(settings, "portnumber", "port"), dialect)
    database = match["path"] or first_of(settings, "databasename", "database")
    return Address(dialect=dialect, places=(place,), suffix=suffix, database=database_name(database or "", dialect))


def _settings(text: str) -> dict[str, str]:
    return {key.lower(): braced.replace("}}", "}") or plain.strip() for key, braced, plain in _SETTING.findall(text)}


def _port_or_instance(
    place: Endpoint, instance: str | None, port: str | None, dialect: Dialect
) -> tuple[Endpoint, str]:
    if place.port is None and port:
        place = endpoint(f"{place.host}:{port}")
    if place.port is not None or not instance:
        return Endpoint(place.host, place.port or dialect.port), ""
    if not _INSTANCE.fullmatch(instance):
        raise malformed(dialect, r"//host\instance;databaseName=…")
    return place, f"/{instance.lower()}"


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
