"""What a column holds at one place of a plan: origins of its values, distinguished by the expression they came
through.

Casts that leave a value as it is: to a wider type of the same kind.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, NamedTuple, TypeAlias

from headwater.listeners.capture.plan.columns.origins import NO_MEMBERS, Members, OriginSets

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


class ValuePart(NamedTuple):
    """One way in which values come: a UNION gives a column several."""

    members: Members
    text: str | None = None
    """The expression, where there is one."""
    is_compound: bool = False
    """Whether the text needs brackets inside of another."""


@dataclass(frozen=True, slots=True, eq=False)
class ColumnValue:
    parts: tuple[ValuePart, ...] = ()
    members: Members = NO_MEMBERS
    """Of all parts."""
    struct: StructValue | StructChoice | None = None
    """Where the column is a struct that the query made: what its fields are is asked there."""


@dataclass(frozen=True, slots=True, eq=False)
class StructValue:
    reference: int
    """A CreateNamedStruct, or an aggregate that chooses one."""
    scope: Scope


@dataclass(frozen=True, slots=True, eq=False)
class StructChoice:
    """Sometimes one of these, sometimes another."""

    choices: tuple[ColumnValue, ...]
    depth: int
    """How many choices there are within each other."""


Scope: TypeAlias = dict[int, ColumnValue]
"""By the ids of attributes: what an operator sees of those below it."""
NO_VALUE: Final = ColumnValue()
"""Of literals and the like, and of what isn't known."""


def make_value(part: ValuePart, struct: StructValue | StructChoice | None = None) -> ColumnValue:
    return ColumnValue((part,), part.members, struct)


_DEEPEST_CHOICE: Final = 30
"""Beyond this a field is made from all fields of the struct, so that following it never goes deep."""


def choose_struct(values: Iterable[ColumnValue]) -> StructChoice | None:
    """The struct that is one of these; None where the query made none of them."""
    choices = tuple(values)
    if not any(choice.struct is not None for choice in choices):
        return None
    depth = 1 + max(choice.struct.depth if isinstance(choice.struct, StructChoice) else 0 for choice in choices)
    return StructChoice(choices, depth) if depth <= _DEEPEST_CHOICE else None


def merge_values(values: Iterable[ColumnValue]) -> ColumnValue:
    """A column that is sometimes one of these, sometimes another."""
    several = list({id(value): value for value in values if value.parts}.values())
    if len(several) < 2:
        return several[0] if several else NO_VALUE
    merged: dict[str | None, ValuePart] = {}
    for part in (part for value in several for part in value.parts):
        known = merged.get(part.text)
        merged[part.text] = part if known is None else part._replace(members=known.members | part.members)
    members = NO_MEMBERS.union(*(value.members for value in several))
    return ColumnValue(tuple(merged.values()), members, choose_struct(several))


def field_of(whole: ColumnValue, fields: tuple[str, ...], origins: OriginSets) -> ColumnValue:
    """A field of a struct, however deep."""
    if not fields or not whole.parts:
        return whole
    parts: list[ValuePart] = []
    for members, text, is_compound in whole.parts:
        deeper = frozenset(origins.deeper(member, fields) for member in members)
        base = f"({text})" if is_compound else text
        parts.append(ValuePart(deeper, None if base is None else ".".join((base, *fields))))
    return ColumnValue(tuple(parts), NO_MEMBERS.union(*(part.members for part in parts)))
