"""Hosts and ports in one normal form: `Broker-1.:9092` and `broker-1:9092` are one place."""

from __future__ import annotations

import ipaddress
import re
from typing import NamedTuple

from headwater.events.identity.text import IdentityError

_NAME = re.compile(r"(?!.*\.\.)[a-z0-9_](?:[a-z0-9_.-]*[a-z0-9_])?", re.ASCII)
_PORT = re.compile(r"[0-9]{1,5}", re.ASCII)
_BRACKETED = re.compile(r"(\[[^\]]*\])(?::(.*))?", re.DOTALL)
_MAX_LENGTH = 253


class Endpoint(NamedTuple):
    """A host in normal form (an IPv6 address in brackets) and its port, if there is one."""

    host: str
    port: int | None = None

    def __str__(self) -> str:
        return self.host if self.port is None else f"{self.host}:{self.port}"


def normal_host(text: str) -> str:
    """Lower case, no trailing dot, IPv6 compressed in brackets, other alphabets as DNS carries them."""
    bare = text.strip().removesuffix(".").lower()
    if len(bare) > _MAX_LENGTH:
        raise _not_a_host()
    address = _ip(bare.removeprefix("[").removesuffix("]"))
    if address is not None:
        return address
    if not bare.isascii():
        bare = _idna(bare)
    if not _NAME.fullmatch(bare):
        raise _not_a_host()
    return bare


def endpoint(text: str, default_port: int | None = None) -> Endpoint:
    """`host`, `host:port`, `[v6]:port`; a bare IPv6 address has no port."""
    text = text.strip()
    bracketed = _BRACKETED.fullmatch(text)
    if bracketed:
        return Endpoint(normal_host(bracketed[1]), port_number(bracketed[2], default_port))
    host, colon, port = text.rpartition(":")
    if not colon or ":" in host:
        return Endpoint(normal_host(text), default_port)
    return Endpoint(normal_host(host), port_number(port, default_port))


def port_number(text: str | None, default: int | None = None) -> int | None:
    if not text:
        return default
    if not _PORT.fullmatch(text) or not 0 < int(text) <= 65535:
        msg = "a port isn't a number from 1 to 65535; give host:port, and the user apart from the address"
        raise IdentityError(msg)
    return int(text)


def is_loopback(host: str) -> bool:
    """Whether a normal host means "the machine I run on"."""
    return host in {"localhost", "localhost.localdomain", "[::1]"} or bool(re.fullmatch(r"127(\.\d{1,3}){3}", host))


def _ip(text: str) -> str | None:
    if ":" not in text:
        return None
    try:
        address = ipaddress.IPv6Address(text)
    except ValueError:
        return None
    return f"[{address.compressed}]" if address.ipv4_mapped is None else str(address.ipv4_mapped)


def _idna(text: str) -> str:
    try:
        return text.encode("idna").decode("ascii").lower()
    except UnicodeError:
        raise _not_a_host() from None


def _not_a_host() -> IdentityError:
    return IdentityError(
        "an address holds something that isn't a host name; give host or host:port with letters, digits, dots and "
        "hyphens (IPv6 in brackets), with every ${variable} filled in"
    )
