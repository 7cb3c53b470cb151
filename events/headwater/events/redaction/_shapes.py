"""Secrets that are known by their shape, whatever is around them: keys of clouds, tokens of services, PEM blocks."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator
from typing import Final

from headwater.events.redaction._spans import Span

_TOKENS = re.compile(
    r"(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{12,128}(?:[^\w\s]{1,4}[A-Za-z0-9/+=]{30,128})?"  # AWS: id, secret
    r"|ya29\.[\w.-]{8,}|1//0[\w-]{16,}|GOCSPX-[\w-]{16,}|AIza[\w-]{20,}"  # Google
    r"|gh[pousr]_[A-Za-z0-9]{16,}|github_pat_\w{16,}|gl(?:pat|dt|ptt|rt)-[\w-]{16,}"
    r"|xox[a-z]-[\w-]{8,}|xapp-[\w-]{8,}|hooks\.slack\.com/(?:services|workflows)/[\w/]+"
    r"|d(?:api|kea|ose)[0-9a-f]{32}(?:-\d)?"  # Databricks
    r"|eyJ[\w-]{6,}(?P<rest>\.[\w.=-]*)?"  # JSON web tokens, signed or encrypted
    r"|(?<![\w-])sk-[A-Za-z0-9_-]{20,}|(?<![\w-])[sr]k_(?:live|test)_\w{8,}|npm_[A-Za-z0-9]{30,}|pypi-[\w-]{32,}"
    r"|(?<!\w)hv[sbr]\.[\w-]{16,}|(?<!\w)SG\.[\w-]{16,}\.[\w-]{16,}|(?<!\w)hf_[A-Za-z0-9]{24,}"
)
_BEARER = re.compile(r"(?i)\b(?:bearer|negotiate|ntlm)\s+([\w.~+/=-]{8,})")
_BASIC = re.compile(r"(?i)\bbasic\s+([A-Za-z0-9+/_-]{4,}={0,2})")
_DIGEST = re.compile(r"""(?i)\bdigest\s+((?:\w+=(?:\\*"[^"]*"|[^\s,"]+)(?:,\s*)?)+)""")
_CURL_USER = re.compile(r"\s(?:-u|--user)[ =]?[ \t]*([^\s:]+:\S+)")
_PROSE = re.compile(r"[A-Za-z][a-z]{0,15}[.]?")
_PEM_BEGINS: Final = "-----BEGIN "
_PEM_ENDS = re.compile(r"-----END [A-Z0-9 ]{1,40}-----")


def secrets_by_shape(text: str) -> Iterator[Span]:
    """The places of what looks like a secret by itself."""
    yield from pem_blocks(text)
    for token in _TOKENS.finditer(text):
        if not token.group().startswith("eyJ") or token["rest"]:  # base64 of JSON without more is no web token
            yield Span(*token.span())
    for credentials in _BEARER.finditer(text):
        if not _PROSE.fullmatch(credentials[1]):  # "Bearer token expired" is a sentence
            yield Span(*credentials.span(1))
    for credentials in _BASIC.finditer(text):
        if _holds_user_and_password(credentials[1]):
            yield Span(*credentials.span(1))
    for credentials in _DIGEST.finditer(text):
        yield Span(*credentials.span(1))
    if "curl" in text:
        yield from (Span(*argument.span(1)) for argument in _CURL_USER.finditer(text))


def _holds_user_and_password(encoded: str) -> bool:
    padded = encoded.replace("+", "-").replace("/", "_") + "=" * (-len(encoded) % 4)
    try:
        return b":" in base64.urlsafe_b64decode(padded)
    except (binascii.Error, ValueError):
        return False


def pem_blocks(text: str) -> Iterator[Span]:
    """The places of keys and certificates in PEM."""
    begin = text.find(_PEM_BEGINS)
    while begin >= 0:
        end = _PEM_ENDS.search(text, begin)
        yield Span(begin, end.end() if end else len(text))  # a block that was cut off hides all that follows
        begin = text.find(_PEM_BEGINS, end.end()) if end else -1
