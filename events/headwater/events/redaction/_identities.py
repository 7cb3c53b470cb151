"""Credentials within identities: the user-info of URLs, and tokens that are known by their whole shape.

An identity tells one thing from another, so it loses nothing that only might be a secret: `load token accounts_2023`
and `/data/token=eu` are names. The shapes here are narrower than those for texts, since tables are called
`ASIAPACIFICORDERS` and `SG.customer_orders` too.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterable, Iterator
from typing import Final

from headwater.events.redaction._texts import REDACTED

Span = tuple[int, int]

_HINT: Final = re.compile(
    r"://|jdbc:oracle:|-----begin |a(?:kia|sia|bia|cca|iza)|ya29\.|1//0|gocspx-|g(?:h[pousr]_|ithub_pat_|l[a-z]+-)"
    r"|xox|xapp-|hooks\.slack|d(?:api|kea|ose)|eyj|[srv]k[-_]|npm_|pypi-|hv[sbr]\.|sg\.|hf_|[?&](?:sig|x-)"
)
_MIXED: Final = r"(?=[\w-]{0,60}?\d)(?=[\w-]{0,60}?[A-Z])(?=[\w-]{0,60}?[a-z])"
_TOKENS: Final = re.compile(
    r"(?<![A-Za-z0-9])(?:"
    r"A(?:KIA|SIA|BIA|CCA)(?=[A-Z]{0,15}[2-7])[A-Z2-7]{16}(?![A-Za-z0-9])(?:[^\w\s]{1,4}[A-Za-z0-9/+=]{30,128})?"  # AWS
    r"|ya29\.[\w-][\w.-]{15,}|1//0[\w-]{30,}|GOCSPX-[\w-]{20,}|AIza[\w-]{35}"  # Google
    r"|gh[pousr]_[A-Za-z0-9]{30,}|github_pat_[A-Za-z0-9]{20,}_\w{20,}"
    rf"|gl(?:pat|dt|ptt|rt)-{_MIXED}[\w-]{{20,}}"
    r"|xox[a-z]-\d[\w-]{10,}|xapp-\d-[\w-]{10,}|hooks\.slack\.com/(?:services|workflows)/[\w/]+"
    r"|d(?:api|kea|ose)[0-9a-f]{32}(?:-\d)?"  # Databricks
    r"|eyJ[\w-]{10,}(?:\.[\w-]*){2,4}"  # JSON web tokens
    r"|sk-(?:proj|svcacct|admin|ant-\w{1,8})-[\w-]{20,}|sk-[A-Za-z0-9]{32,}|[sr]k_(?:live|test)_[A-Za-z0-9]{24,}"
    rf"|npm_[A-Za-z0-9]{{36}}|pypi-AgE[\w-]{{32,}}|hv[sbr]\.{_MIXED}[\w-]{{24,}}"
    r"|SG\.[\w-]{22}\.[\w-]{43}|hf_[A-Za-z0-9]{30,}"
    r")"
)
_SIGNATURE: Final = re.compile(
    r"(?i)[?&](?:sig|x-(?:amz|goog)-(?:signature|security-token|credential))=([\w%+/=.-]{30,})"
)
_PEM: Final = re.compile(r"-----BEGIN (?:(?!-----END )[\s\S])*(?:-----END [A-Z0-9 ]{1,40}-----)?")
_ADDRESS: Final = re.compile(r"(?<![A-Za-z0-9+.-])([A-Za-z][A-Za-z0-9+.-]{0,15})://((?:(?!://)[^\s\"'<>`])*)")
_NAMES_USER: Final = frozenset(
    ["abfs", "abfss", "wasb", "wasbs", "adl", "oci", "sftp", "ssh", "scp", "ftp", "ftps", "smb", "hdfs", "webhdfs"]
)
"""Of these the word before the `@` says what is meant: a container, a bucket, whose files."""
_ORACLE: Final = re.compile(r"(?i:jdbc:oracle):\w{1,16}:((?:\"[^\"\n]*\"|[^\s'\"<>`])*)")
_PROPERTIES: Final = re.compile(r"[;(](?=[\w.]{1,64}=)")
_PORT: Final = re.compile(r"\d{1,5}\Z")


def without_credentials(text: str) -> str:
    """The name, path, URL or id without its credentials; the very same text where it has none."""
    if not _HINT.search(text.lower()):
        return text
    return _without(text, _credentials(text))


def _credentials(text: str) -> Iterator[Span]:
    yield from (found.span() for found in _PEM.finditer(text))
    if "@" in text:
        yield from (_user_info(found) for found in _ADDRESS.finditer(text))
        yield from (_oracle_user(found) for found in _ORACLE.finditer(text))
    yield from (found.span() for found in _TOKENS.finditer(text) if _is_token(found.group()))
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


def _is_token(text: str) -> bool:
    """A web token has a header that names its algorithm; `eyJ_orders.eu.2023` hasn't."""
    if not text.startswith("eyJ"):
        return True
    header = text.partition(".")[0]
    try:
        return b'"alg"' in base64.urlsafe_b64decode(header + "=" * (-len(header) % 4))
    except (binascii.Error, ValueError):
        return False


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
