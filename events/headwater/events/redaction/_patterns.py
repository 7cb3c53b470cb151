"""Patterns that are compiled where they are first used, with alternatives that stand by their first character."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final, cast

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
