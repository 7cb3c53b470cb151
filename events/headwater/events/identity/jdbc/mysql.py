"""MySQL and MariaDB: one server speaks to both drivers, so both name the same datasets."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from headwater.events.identity.hosts import Endpoint, endpoint
from headwater.events.identity.jdbc.dialects import Dialect
from headwater.events.identity.jdbc.urls import Address, malformed, server_address, split_settings

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
