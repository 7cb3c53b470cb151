"""String literals of Spark's SQL."""

from __future__ import annotations

import re
from typing import Final

_ESCAPE: Final = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|([0-3][0-7]{2})|(.))|(''|\"\")", re.DOTALL)
_LETTERS: Final = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a", "%": "\\%", "_": "\\_"}
_LAST: Final = 0x10FFFF


def unescape(literal: str) -> str:
    """What a literal, with its quotes, says."""
    quote = literal[0]
    return _ESCAPE.sub(lambda match: _said(match, quote), literal[1:-1])


def _said(match: re.Match[str], quote: str) -> str:
    short, long, octal, letter, doubled = match.groups()
    if doubled is not None:
        return quote if doubled[0] == quote else str(doubled)
    if letter is not None:
        return _LETTERS.get(letter, letter)
    code = int(octal, 8) if octal is not None else int(short or long, 16)
    return chr(code) if code <= _LAST else match[0]
