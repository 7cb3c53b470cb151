"""Secrets that are known by their shape, whatever is around them: keys of clouds, tokens of services, PEM blocks."""

from __future__ import annotations

import base64
import binascii
import re
from typing import Final

from headwater.events.redaction._marker import REDACTED

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
_BEARER = re.compile(r"(?i)\b(bearer|negotiate|ntlm)\s+([\w.~+/=-]{8,})")
_BASIC = re.compile(r"(?i)\bbasic\s+([A-Za-z0-9+/_-]{4,}={0,2})")
_DIGEST = re.compile(r"""(?i)\bdigest\s+((?:\w+=(?:\\*"[^"]*"|[^\s,"]+)(?:,\s*)?)+)""")
_SIGNED = re.compile(r"(?i)\bcurl\b[^\n]{0,512}?\s(?:-u|--user)[ =]?\s*(\S+:\S+)")
_PROSE = re.compile(r"[A-Za-z][a-z]{0,15}[.]?")
_PEM_BEGINS: Final = "-----BEGIN "
_PEM_ENDS = re.compile(r"-----END [A-Z0-9 ]{1,40}-----")


def redact_shapes(text: str) -> str:
    """The text without what looks like a secret by itself."""
    text = _TOKENS.sub(_token, _without_pem(text))
    text = _BEARER.sub(_bearer, text)
    text = _BASIC.sub(_basic, text)
    text = _DIGEST.sub(_first_group, text)
    return _SIGNED.sub(_first_group, text) if " -u" in text or "--user" in text else text


def _token(found: re.Match[str]) -> str:
    """Plain base64 of JSON isn't secret by itself; with the parts of a web token it is."""
    return found.group() if found.group().startswith("eyJ") and found["rest"] is None else REDACTED


def _first_group(found: re.Match[str]) -> str:
    return found.group()[: found.start(1) - found.start()] + REDACTED


def _bearer(found: re.Match[str]) -> str:
    """ "Bearer token expired" is a sentence, "Bearer 0aF…" isn't."""
    if _PROSE.fullmatch(found[2]):
        return found.group()
    return found.group()[: found.start(2) - found.start()] + REDACTED


def _basic(found: re.Match[str]) -> str:
    encoded = found[1]
    try:
        decoded = base64.urlsafe_b64decode(encoded.replace("+", "-").replace("/", "_") + "=" * (-len(encoded) % 4))
    except (binascii.Error, ValueError):
        decoded = b""
    return _first_group(found) if b":" in decoded else found.group()


def _without_pem(text: str) -> str:
    begin = text.find(_PEM_BEGINS)
    if begin < 0:
        return text
    pieces: list[str] = []
    done = 0
    while begin >= 0:
        end = _PEM_ENDS.search(text, begin)
        pieces += (text[done:begin], REDACTED)
        done = end.end() if end else len(text)  # a block that was cut off hides all that follows
        begin = text.find(_PEM_BEGINS, done)
    return "".join([*pieces, text[done:]])
