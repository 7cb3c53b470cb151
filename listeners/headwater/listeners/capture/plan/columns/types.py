"""Casts that leave a value as it is: to a wider type of the same kind."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

_DIGITS_NEEDED: Final = {"byte": 3, "short": 5, "integer": 10, "long": 19}
_DIGITS_HELD: Final = {"byte": 2, "short": 4, "integer": 9, "long": 18}
"""Digits: how many the largest number has, and how many of them may be any."""
_EXACT_IN_DOUBLE: Final = {"byte", "short", "integer", "float", "double"}
_EXACT_IN_FLOAT: Final = {"byte", "short", "float"}
_DECIMAL: Final = re.compile(r"decimal\((\d+),(-?\d+)\)\Z")
_TEXT: Final = re.compile(r"string|(?:var)?char\(\d+\)")
_SQL: Final = {"integer": "int", "long": "bigint", "short": "smallint", "byte": "tinyint"}


@lru_cache(maxsize=4096)
def keeps_values(given: str, wanted: str) -> bool:
    """Whether every value of the one type is the same value in the other; both are Spark's type JSON."""
    before, after = json.loads(given), json.loads(wanted)
    return before == after or (isinstance(before, str) and isinstance(after, str) and _widens(before, after))


def _widens(given: str, wanted: str) -> bool:
    if wanted in {"double", "float"}:
        return given in (_EXACT_IN_DOUBLE if wanted == "double" else _EXACT_IN_FLOAT)
    if _TEXT.match(wanted):
        return bool(_TEXT.match(given)) and wanted == "string"
    room, needed = _integral_and_fraction(wanted, _DIGITS_HELD), _integral_and_fraction(given, _DIGITS_NEEDED)
    return room is not None and needed is not None and needed[0] <= room[0] and needed[1] <= room[1]


def _integral_and_fraction(kind: str, digits: Mapping[str, int]) -> tuple[int, int] | None:
    if kind in digits:
        return digits[kind], 0
    found = _DECIMAL.match(kind)
    return (int(found[1]) - int(found[2]), int(found[2])) if found else None


@lru_cache(maxsize=4096)
def field_type(struct: str, name: str) -> str | None:
    """The type JSON of a struct's field."""
    parsed: Any = json.loads(struct)
    fields: list[Mapping[str, Any]] = parsed.get("fields", []) if isinstance(parsed, dict) else []
    return next((json.dumps(field["type"]) for field in fields if field["name"] == name), None)


def sql_name(kind: str) -> str:
    """How a type is called in the text of an expression; nested ones by their kind only."""
    parsed: Any = json.loads(kind)
    name = str(parsed["type"] if isinstance(parsed, dict) else parsed)
    return _SQL.get(name, name)
