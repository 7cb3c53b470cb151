"""Oracle: EZConnect, the old colon form and connect descriptors. A bare alias lives in a file that isn't known."""

from __future__ import annotations

import re

from headwater.events.identity.errors import IdentityError
from headwater.events.identity.hosts import Endpoint, endpoint
from headwater.events.identity.jdbc.dialects import Dialect
from headwater.events.identity.jdbc.urls import Address, database_name, malformed, places

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
