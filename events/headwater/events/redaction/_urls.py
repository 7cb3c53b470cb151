"""Users and passwords in addresses: `https://user:pass@host`, `jdbc:oracle:thin:scott/tiger@host`.

The whole user-info goes, the user too: a token is often given as the user. Azure's `abfss://container@account…` is no
user-info but half of a dataset's name, and stays.
"""

from __future__ import annotations

import re
from typing import Final

from headwater.events.redaction._marker import REDACTED
from headwater.events.redaction._values import Span

_ADDRESS = re.compile(r"[^\s\"'<>`]*")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]{0,15}\Z")
_CONTAINER_SCHEMES: Final = frozenset(["abfs", "abfss", "wasb", "wasbs", "adl"])
_ORACLE = "jdbc:oracle:"
_ORACLE_USER = re.compile(r"(?i:jdbc:oracle):\w{1,16}:(?P<address>(?:\"[^\"\n]*\"|[^\s'\"<>`])*)")
_EZ_CONNECT = re.compile(r"(?<![\w/.:-])\w{1,64}/(?:\"[^\"\n]{1,128}\"|[^\s/@'\"<>]{1,128})@(?=//)")
_WITHOUT_SCHEME = re.compile(
    r"(?<![\w:/@.%+-])(?!(?:mailto|e-?mail|owner|from|to|by|contact|cc):)[\w.%+-]{1,64}:[^\s:@/\"'<>,;()\[\]{}]{1,128}"
    r"@(?=[\w-]{1,63}\.[\w.-]|[\w-]{1,63}:\d|tcp\(|unix\(|localhost\b)"
)
_PORT = re.compile(r"\d{1,5}\Z")


def redact_user_info(text: str) -> str:
    """The text without the users and passwords of its addresses."""
    if "@" not in text:
        return text
    if _ORACLE in text.lower():
        text = _ORACLE_USER.sub(_oracle, text)
    text = _EZ_CONNECT.sub(f"{REDACTED}@", text)
    return _WITHOUT_SCHEME.sub(f"{REDACTED}@", _with_scheme(text))


def _oracle(found: re.Match[str]) -> str:
    """`scott/tiger@host`; a `/` alone is a wallet, which names nobody."""
    address = found["address"]
    user, at, _ = address.partition("?")[0].rpartition("@")
    if not at or user in {"", "/", REDACTED} or user.startswith(("@", "(")):
        return found.group()
    return f"{found.group()[: -len(address)]}{REDACTED}{address[len(user) :]}"


def _with_scheme(text: str) -> str:
    pieces: list[str] = []
    done = 0
    at = text.find("://")
    while at >= 0:
        following = text.find("://", at + 3)
        span = _user_info(text, at, following if following >= 0 else len(text))
        if span and text[span.start : span.end] != REDACTED:
            pieces += (text[done : span.start], REDACTED)
            done = span.end
        at = following
    return "".join([*pieces, text[done:]])


def _user_info(text: str, colon: int, limit: int) -> Span | None:
    start = colon + 3
    address = _ADDRESS.match(text, start, limit)
    whole = address.group() if address else ""
    if "@" not in whole:
        return None
    end = _end_of_user_info(whole)
    if end < 0:
        return None
    kept = _kept_container(text[max(0, colon - 16) : colon], whole[:end])
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


def _kept_container(before: str, user_info: str) -> int:
    scheme = _SCHEME.search(before)
    if not scheme or scheme.group().lower() not in _CONTAINER_SCHEMES:
        return 0
    colon = user_info.find(":")
    return len(user_info) if colon < 0 else colon + 1
