"""Credentials within identities: the user-info of URLs, and tokens that are known by their whole shape.

An identity tells one thing from another, so it loses nothing that only might be a secret: `load token accounts_2023`
and `/data/token=eu` are names, and tables are called `ASIAPACIFICORDERS` and `SG.customer_orders` too.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

from headwater.events.redaction._folding import any_of, lazy
from headwater.events.redaction._places import AWS, BEGINNINGS, DATABRICKS, looks_random
from headwater.events.redaction._texts import REDACTED

Span = tuple[int, int]

_HINT: Final = lazy(
    any_of("@", "-----BEGIN ", "hooks[.]slack", "sk-", AWS, DATABRICKS, *BEGINNINGS, r"\?(?i:sig|x-)", "&(?i:sig|x-)")
)
_TOKENS: Final = lazy(
    rf"(?<![A-Za-z0-9])(?:{AWS}(?=[A-Z]{{0,15}}[2-7])[A-Z2-7]{{16}}(?![A-Za-z0-9])(?:[^\w\s]{{1,4}}[A-Za-z0-9/+=]{{30,128}})?"
    rf"|{DATABRICKS}(?:-\d)?|hooks\.slack\.com/(?:services|workflows)/[\w/]+|eyJ[A-Za-z0-9]{{10,}}(?:\.[\w-]*){{2,4}}"
    rf"|(?P<random>(?:{'|'.join(BEGINNINGS)}|sk-)[\w.-]{{20,}}))"
)
_SIGNATURE: Final = lazy(r"(?i)[?&](?:sig|x-(?:amz|goog)-(?:signature|security-token|credential))=([\w%+/=.-]{30,})")
_PEM: Final = lazy(r"-----BEGIN (?:(?!-----END )[\s\S])*(?:-----END [A-Z0-9 ]{1,40}-----)?")
_ADDRESS: Final = lazy(r"(?<![A-Za-z0-9+.-])([A-Za-z][A-Za-z0-9+.-]{0,15})://((?:(?!://)[^\s\"'<>`])*)")
_NAMES_USER: Final = frozenset(
    ["abfs", "abfss", "wasb", "wasbs", "adl", "oci", "sftp", "ssh", "scp", "ftp", "ftps", "smb", "hdfs", "webhdfs"]
)
"""Of these the word before the `@` says what is meant: a container, a bucket, whose files."""
_ORACLE: Final = lazy(r"(?i:jdbc:oracle):\w{1,16}:((?:\"[^\"\n]*\"|[^\s'\"<>`])*)")
_PROPERTIES: Final = lazy(r"[;(](?=[\w.]{1,64}=)")
_PORT: Final = lazy(r"\d{1,5}\Z")


def without_credentials(text: str) -> str:
    """The name, path, URL or id without its credentials; the very same text where it has none."""
    return _without(text, _credentials(text)) if _HINT.search(text) else text


def _credentials(text: str) -> Iterator[Span]:
    yield from (found.span() for found in _PEM.finditer(text))
    if "@" in text:
        yield from (_user_info(found) for found in _ADDRESS.finditer(text))
        yield from (_oracle_user(found) for found in _ORACLE.finditer(text))
    yield from (
        found.span() for found in _TOKENS.finditer(text) if not found["random"] or looks_random(found["random"])
    )
    yield from (found.span(1) for found in _SIGNATURE.finditer(text))


def _user_info(found: re.Match[str]) -> Span:
    start, address = found.start(2), _PROPERTIES.split(found[2], maxsplit=1)[0]
    end = _end_of_user_info(address) if "@" in address else -1
    if end < 0:
        return start, start
    user, colon, _ = address[:end].partition(":")
    names_user = found[1].lower() in _NAMES_USER
    return (start + (len(user) + len(colon) if names_user else 0), start + end)


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


def _oracle_user(found: re.Match[str]) -> Span:
    """`scott/tiger@host`, which is no URL; a `/` alone is a wallet, which names nobody."""
    user = found[1].partition("?")[0].rpartition("@")[0]
    is_nobody = user in {"", "/"} or user.startswith(("@", "("))
    return found.start(1), found.start(1) + (0 if is_nobody else len(user))


def _without(text: str, spans: Iterable[Span]) -> str:
    """The text with a mark for each span; spans that overlap or touch share one."""
    pieces: list[str] = []
    done = shown = 0
    for start, end in sorted(span for span in spans if span[1] > span[0]):
        if text[start:end] == REDACTED:
            continue
        if start > done or not pieces:
            pieces += (text[shown:start], REDACTED)
        done = shown = max(done, end)
    return "".join([*pieces, text[shown:]]) if pieces else text
