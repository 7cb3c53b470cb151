"""A text as it is read for secrets: whatever way somebody wrote it, a word in it is found by its letters.

This is the one place that knows spellings. Names and shapes are looked for in the folded text only.

Patterns that are compiled where they are first used, with alternatives that stand by their first character.
"""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Callable, Sequence
from itertools import compress
from typing import Any, Final, NamedTuple, cast
from urllib.parse import unquote_to_bytes

_METHODS: Final = ("search", "match", "fullmatch", "finditer", "findall", "split", "sub", "subn")


class _LazyPattern:
    def __init__(self, source: Callable[[], str]) -> None:
        self._source = source

    def __getattr__(self, name: str) -> Any:
        pattern = re.compile(self._source())
        self.__dict__.update({each: getattr(pattern, each) for each in _METHODS})
        return getattr(pattern, name)


def lazy(source: str | Callable[[], str]) -> re.Pattern[str]:
    """The pattern, compiled at its first use: all of them would be a quarter of what a driver's start imports."""
    return cast("re.Pattern[str]", _LazyPattern(source if callable(source) else lambda: source))


def word_set(words: str) -> frozenset[str]:
    """The words of a list that stands in the source as a text."""
    return frozenset(words.split())


def any_of(*alternatives: str, rest: str = "(?:{})") -> str:
    """A pattern in which alternatives stand by their first character: Python passes over all other ones quickly.

    Each begins with a character as it is, not with a class or group. In a text several may stand, two spaces or a line
    end apart. `rest` is how what follows the first character stands in the pattern.
    """
    branches: dict[str, list[str]] = {}
    for alternative in (each for text in alternatives for each in re.split(r"\n\s*|\s{2,}", text.strip())):
        length = 2 if alternative[0] == "\\" else 1
        branches.setdefault(alternative[:length], []).append(alternative[length:])
    return "|".join(first + rest.format("|".join(rests)) for first, rests in branches.items())


_UNUSUAL: Final = lazy(r"[\\%&\0]|[^\x00-\x7f]")
_QUOTING: Final = lazy(r"\\(?=[\W_])")
_ESCAPE: Final = lazy(
    r"(?i)(?:%[0-9a-f]{2})+|(?:\\u[0-9a-f]{4}|\\x[0-9a-f]{2})+|\\u\{[0-9a-f]{1,5}\}"
    r"|&(?:#\d{1,7};?|#x[0-9a-f]{1,6};?|[a-z]{2,8};)|\\(?:n|r(?!sa|ecovery)|t(?!oken|otp))"
)
_MOST_ESCAPES: Final = 1_000
_MOST_LAYERS: Final = 5
_INVISIBLE: Final = frozenset(["Cf", "Mn", "Me", "Cc"])
_LOOK_ALIKES: Final = str.maketrans(
    "аеёорсухіїјѕԁԛԝкмтвнпгьһӏѵαβγεηικνοπρτυχωßłøđħıɡɑɩᴀʙᴄᴅᴇꜰɢʜɪᴊᴋʟᴍɴᴏᴘʀꜱᴛᴜᴠᴡʏᴢ",
    "aeeopcyxiijsdqwkmtbhnrbhlvabyenikvonptuxwslodhigaiabcdefghijklmnoprstuvwyz",
)  # fmt: skip


class Folded(NamedTuple):
    """The letters have no accents, and those of other alphabets are the Latin ones that they look like."""

    text: str
    places: Sequence[int]
    """Where each of its characters begins in the text that it was made from."""


def fold(text: str) -> Folded | None:
    """The text without escapes, also nested ones, and without invisible characters.

    None where it is escaped so often or so deep that it can't be read in time: who asks has to hide all of it.
    """
    folded = Folded(text, range(len(text)))
    for _ in range(_MOST_LAYERS):
        if not _UNUSUAL.search(folded.text):
            return folded
        plain, count = _ESCAPE.subn(_unescape, _QUOTING.sub("\0", folded.text), _MOST_ESCAPES)
        if count == _MOST_ESCAPES:
            return None
        if not plain.isascii():
            plain = plain.translate(_characters)
        shown = plain.replace("\0", "")
        if shown == folded.text:
            return folded
        stays = len(shown) == len(plain)
        folded = Folded(shown, folded.places if stays else list(compress(folded.places, map("\0".__ne__, plain))))
    return None


def _unescape(found: re.Match[str]) -> str:
    """What was escaped, with NULs behind it up to the length of the escape. A line end is a vertical tab, since of two
    lines in quotes nobody knows whether they were ones."""
    escaped = found.group().lower()  # who puts a text in capitals puts its escapes in capitals
    try:
        if escaped[0] == "%":
            plain = unquote_to_bytes(escaped).decode()
        elif escaped[0] == "&":
            plain = html.unescape(escaped)
        elif escaped in {"\\n", "\\r", "\\t"}:
            plain = "\v"
        elif escaped[-1] == "}":
            plain = chr(int(escaped[3:-1], 16))
        else:
            plain = escaped.encode().decode("unicode_escape").encode("utf-16", "surrogatepass").decode("utf-16")
    except UnicodeError:
        return found.group()
    return plain[: len(escaped)].ljust(len(escaped), "\0")


class _Characters(dict[int, str]):
    """What each character is folded to, as far as it was asked for."""

    def __missing__(self, code: int) -> str:
        self[code] = folded = _folded_character(chr(code))
        return folded


def _folded_character(char: str) -> str:
    if char.isascii():
        return char
    category = unicodedata.category(char)
    if category in _INVISIBLE or char in "\u3164\u115f\u1160\uffa0":
        return "\0"
    first = unicodedata.normalize("NFKC" if category == "Lo" else "NFKD", char)[0]
    return first if first.isascii() else first.casefold()[0].translate(_LOOK_ALIKES)


_characters: Final = _Characters()
