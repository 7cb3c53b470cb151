"""Shows text of others on terminals: names, errors and headers can hold anything, and must do nothing there.

A control character can clear a screen or write into a clipboard (OSC 52), a carriage return can hide what stands before
it, U+202E turns a name around, and a line feed forges a line. All of them are shown as escapes, such as `\\x1b`.
"""

from __future__ import annotations

import json
import re
import unicodedata
from typing import Any, Final

_KEPT: Final = "Zs"
"""The category of blanks, which `isprintable` doesn't count as printable."""
_SUSPECT: Final = re.compile(r"[^\x20-\x7e]")


class Styled(str):
    """Text with this program's own colours, whose foreign parts went through `printable`."""

    __slots__ = ()


def printable(text: str) -> str:
    """Return text as one line that a terminal only shows."""
    return text if text.isprintable() else _SUSPECT.sub(_escape, text)


def printable_lines(text: str) -> str:
    """Return text with its lines and tabs, and nothing else that a terminal would act on."""
    if isinstance(text, Styled):
        return text
    return "\n".join("\t".join(map(printable, line.split("\t"))) for line in text.split("\n"))


def printable_json(value: Any, **more: Any) -> str:
    """Return the JSON of a value, in which what isn't printable is escaped as JSON does it."""
    text = json.dumps(value, ensure_ascii=False, **more)
    return "\n".join(each if each.isprintable() else _SUSPECT.sub(_json_escape, each) for each in text.split("\n"))


def _escape(found: re.Match[str]) -> str:
    character = found[0]
    return character if _is_shown(character) else character.encode("unicode_escape").decode()


def _json_escape(found: re.Match[str]) -> str:
    return found[0] if _is_shown(found[0]) else json.dumps(found[0])[1:-1]


def _is_shown(character: str) -> bool:
    return character.isprintable() or unicodedata.category(character) == _KEPT
