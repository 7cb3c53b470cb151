"""SQL Server: semicolon settings, named instances. A port wins over an instance, as in the driver."""

from __future__ import annotations

import re
from collections.abc import Mapping

from headwater.events.identity.hosts import Endpoint, endpoint
from headwater.events.identity.jdbc.dialects import Dialect
from headwater.events.identity.jdbc.urls import Address, database_name, first_of, malformed

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
