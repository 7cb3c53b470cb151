"""Portions of rows: small at first, so that who needs few soon has them; then larger, so that statements are few."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final, TypeVar

T = TypeVar("T")
_FIRST: Final = 64
_LARGEST: Final = 8_192
_GROWTH: Final = 8


def growing_portions(rows: Iterable[T]) -> Iterator[list[T]]:
    """Yield the rows as lists, none of them empty."""
    left, size = iter(rows), _FIRST
    while portion := list(islice(left, size)):
        yield portion
        size = min(size * _GROWTH, _LARGEST)
