"""Sizes and durations as people write them; in code they are numbers of bytes and of seconds."""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Annotated, Final, TypeAlias

from pydantic import BeforeValidator
from pydantic_core import PydanticCustomError

_AMOUNT: Final = re.compile(r"\s*(\d{1,40}(?:\.\d{1,40})?)\s*([a-z]*)\s*", re.IGNORECASE | re.ASCII)
_SIZES: Final = {"": Decimal(1), "b": Decimal(1)} | {
    unit: Decimal(1 << 10 * power)
    for power, letter in enumerate("kmgtp", 1)
    for unit in (letter, f"{letter}b", f"{letter}ib")
}
_DURATIONS: Final = {
    unit: Decimal(seconds)
    for units, seconds in (
        ("us microsecond microseconds", "0.000001"),
        ("ms millisecond milliseconds", "0.001"),
        ("s sec second seconds", "1"),
        ("m min minute minutes", "60"),
        ("h hour hours", "3600"),
        ("d day days", "86400"),
    )
    for unit in units.split(" ")
} | {"": Decimal(1)}


_LIMIT: Final = Decimal(1 << 63)
_SIZE_WORDS: Final = "write a size, such as 1048576, 512m or 1 GiB (units: b, k, m, g, t, p)"
_DURATION_WORDS: Final = "write a duration, such as 30, 100 ms or 1 h (units: us, ms, s, min, h, d)"


def bytes_of(value: object) -> int:
    """A ValueError that says how a size is written, for what is none."""
    number = _number(value, _SIZES)
    if number is None or number != int(number):
        raise PydanticCustomError("size", _SIZE_WORDS)
    return int(number)


def seconds_of(value: object) -> float:
    """A ValueError that says how a duration is written, for what is none."""
    number = _number(value, _DURATIONS)
    if number is None:
        raise PydanticCustomError("duration", _DURATION_WORDS)
    return float(number)


def _number(value: object, units: Mapping[str, Decimal]) -> Decimal | None:
    """None for what is no amount: no number, an unknown unit, less than nothing, or too much for anything."""
    if type(value) in {int, float}:
        number = Decimal(repr(value))
    elif isinstance(value, str) and (match := _AMOUNT.fullmatch(value)) and match[2].lower() in units:
        number = Decimal(match[1]) * units[match[2].lower()]
    else:
        return None
    return number if number.is_finite() and 0 <= number < _LIMIT else None


Bytes: TypeAlias = Annotated[int, BeforeValidator(bytes_of)]
"""A size: `1048576`, `512m`, `1 GiB`. As in Spark's own settings, k, kb and KiB are all 1024."""

Seconds: TypeAlias = Annotated[float, BeforeValidator(seconds_of)]
"""A duration: `30` and `30s` are seconds; `100 ms`, `5 min`, `1 h`, `7 days`. As in Spark's settings, m is minutes."""
