"""Users and passwords in addresses: `https://user:pass@host`, `jdbc:oracle:thin:scott/tiger@host`.

The whole user-info goes, the user too: a token is often given as the user. Azure's `abfss://container@account…` is no
user-info but half of a dataset's name, and stays.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from headwater.events.redaction._spans import Span

_ADDRESS = re.compile(r"[^\s\"'<>`]*")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]{0,15}\Z")
_CONTAINER_SCHEMES: Final = frozenset(["abfs", "abfss", "wasb", "wasbs", "adl"])
_ORACLE_USER = re.compile(r"(?i:jdbc:oracle):\w{1,16}:(?P<address>(?:\"[^\"\n]*\"|[^\s'\"<>`])*)")
_EZ_CONNECT = re.compile(r"(?<![\w/.:-])(\w{1,64}/(?:\"[^\"\n]{1,128}\"|[^\s/@'\"<>]{1,128}))@(?=//)")
_WITHOUT_SCHEME = re.compile(
    r"(?<![\w:/@.%+-])(?!(?:mailto|e-?mail|owner|from|to|by|contact|cc):)([\w.%+-]{1,64}:[^\s:@/\"'<>,;()\[\]{}]{1,128})"
    r"@(?=[\w-]{1,63}\.[\w.-]|[\w-]{1,63}:\d|tcp\(|unix\(|localhost\b)"
)
_PROPERTIES = re.compile(r"[;(](?=[\w.]{1,64}=)")
_PORT = re.compile(r"\d{1,5}\Z")


def user_infos(text: str) -> Iterator[Span]:
    """The places of the users and passwords in the addresses of a text."""
    if "@" not in text:
        return
    yield from url_user_infos(text)
    for pattern in (_EZ_CONNECT, _WITHOUT_SCHEME):
        yield from (Span(*found.span(1)) for found in pattern.finditer(text))
    yield from oracle_user_infos(text)


def oracle_user_infos(text: str) -> Iterator[Span]:
    """Those of `jdbc:oracle:thin:scott/tiger@host`, which is no URL."""
    if "@" in text and "jdbc:oracle:" in text.lower():
        yield from (_oracle(found) for found in _ORACLE_USER.finditer(text))


def _oracle(found: re.Match[str]) -> Span:
    """`scott/tiger@host`; a `/` alone is a wallet, which names nobody."""
    user = found["address"].partition("?")[0].rpartition("@")[0]
    start = found.start("address")
    is_nobody = user in {"", "/"} or user.startswith(("@", "("))
    return Span(start, start if is_nobody else start + len(user))


def url_user_infos(text: str) -> Iterator[Span]:
    """Those of URLs, which begin with a scheme."""
    if "@" not in text:
        return
    at = text.find("://")
    while at >= 0:
        following = text.find("://", at + 3)
        span = _user_info(text, at, following if following >= 0 else len(text))
        if span:
            yield span
        at = following


def _user_info(text: str, colon: int, limit: int) -> Span | None:
    start = colon + 3
    address = _ADDRESS.match(text, start, limit)
    whole = _PROPERTIES.split(address.group(), maxsplit=1)[0] if address else ""
    if "@" not in whole:
        return None
    end = _end_of_user_info(whole)
    if end < 0:
        return None
    kept = _length_of_container(text[max(0, colon - 16) : colon], whole[:end])
    return Span(start + kept, start + end) if kept < end else None


def _end_of_user_info(address: str) -> int:
    """Where the user-info ends, -1 without one. Passwords with a raw `/`, `?`, `#` or `@` are wrong, and happen."""
    authority = re.split(r"[/?#]", address, maxsplit=1)[0]
    path = re.split(r"[?#]", address, maxsplit=1)[0]
    if "@" in authority:
        return path.rfind("@") if ":" in authority.split("@", 1)[0] else authority.rfind("@")
    _, colon, port = authority.partition(":")
    if not colon or not port or (_PORT.match(port) and int(port) < 65536) or authority.startswith("["):
        return -1
    return path.rfind("@") if "@" in path else address.rfind("@")


def _length_of_container(before: str, user_info: str) -> int:
    """How much of what stands before the `@` names a container of a store such as abfss, and is no secret."""
    scheme = _SCHEME.search(before)
    if not scheme or scheme.group().lower() not in _CONTAINER_SCHEMES:
        return 0
    colon = user_info.find(":")
    return len(user_info) if colon < 0 else colon + 1
