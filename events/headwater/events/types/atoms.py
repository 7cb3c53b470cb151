"""The names of types without inner types, in Spark's JSON and in its SQL."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from headwater.events.types.tree import (
    Atomic,
    CharType,
    CollatedStringType,
    DecimalType,
    SimpleType,
    TimeType,
    VarcharType,
)

STRING: Final = SimpleType("string")
BINARY_COLLATION: Final = "UTF8_BINARY"
"""How a plain string compares."""
MAX_PRECISION: Final = 38
MAX_TIME_PRECISION: Final = 6

_SPANS: Final = (("year", "month"), ("day", "hour", "minute", "second"))
_INTERVALS: Final = tuple(
    f"interval {first}" if first == last else f"interval {first} to {last}"
    for units in _SPANS
    for start, first in enumerate(units)
    for last in units[start:]
)
_NAMES: Final = (
    *("string", "boolean", "byte", "short", "integer", "long", "float", "double", "binary"),
    *("date", "timestamp", "timestamp_ntz", "void", "variant", "interval"),
    *_INTERVALS,
)
_SQL_NAMES: Final = {"byte": "tinyint", "short": "smallint", "integer": "int", "long": "bigint"}
_PARAMETRISED: Final = re.compile(
    r"(?P<word>decimal|char|varchar|time)\(\s*(?P<first>\d{1,9})\s*(?:,\s*(?P<second>-?\d{1,9})\s*)?\)"
)
_COLLATED: Final = re.compile(r"string collate (?P<collation>\w+)")

SIMPLE: Final[dict[str, SimpleType]] = {name: SimpleType(name) for name in _NAMES}
"""By their names in Spark's JSON."""
_OLD_NAMES: Final[dict[str, Atomic]] = {
    "null": SIMPLE["void"],
    "decimal": DecimalType(10, 0),
    "timestamp_ltz": SIMPLE["timestamp"],
}


def atom(name: str) -> Atomic | None:
    """The type of a name in Spark's JSON, or None where the name isn't one that is known here."""
    known = SIMPLE.get(name) or _OLD_NAMES.get(name)
    if known is not None:
        return known
    if collated := _COLLATED.fullmatch(name):
        return collated_string(collated["collation"])
    if found := _PARAMETRISED.fullmatch(name):
        numbers = [int(number) for number in found.group("first", "second") if number is not None]
        return parametrised(found["word"], numbers)
    return None


def parametrised(word: str, numbers: list[int]) -> Atomic | None:
    """decimal(10,2), char(3), varchar(9), time(6); None where Spark has no such type."""
    if word == "decimal":
        return _decimal(numbers)
    makers: dict[str, Callable[[int], Atomic]] = {"char": CharType, "varchar": VarcharType, "time": TimeType}
    if word not in makers or len(numbers) != 1 or numbers[0] < 0:
        return None
    if word == "time" and numbers[0] > MAX_TIME_PRECISION:
        return None
    return makers[word](numbers[0])


def _decimal(numbers: list[int]) -> DecimalType | None:
    precision, scale = (*numbers, 0)[:2]
    return DecimalType(precision, scale) if 0 <= precision <= MAX_PRECISION and scale <= precision else None


def collated_string(collation: str) -> Atomic:
    return STRING if collation.upper() == BINARY_COLLATION else CollatedStringType(collation)


def name_in_json(atomic: Atomic) -> str:
    if isinstance(atomic, SimpleType):
        return atomic.name
    if isinstance(atomic, DecimalType):
        return f"decimal({atomic.precision},{atomic.scale})"
    if isinstance(atomic, TimeType):
        return f"time({atomic.precision})"
    if isinstance(atomic, CollatedStringType):
        return f"string collate {atomic.collation}"
    return f"{'char' if isinstance(atomic, CharType) else 'varchar'}({atomic.length})"


def name_in_sql(atomic: Atomic) -> str:
    name = name_in_json(atomic)
    return _SQL_NAMES.get(name, name)
