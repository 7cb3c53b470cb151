"""Where Spark keeps char(n) and varchar(n): a column of them is a string, and its metadata has the true type as text.

`{"name": "a", "type": {"type": "array", "elementType": "string"}, "metadata": {"__CHAR_VARCHAR_TYPE_STRING":
"array<varchar(9)>"}}`. Names in that text aren't quoted, so it is read along the type that is known beside it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Final

from headwater.events.types.atoms import STRING
from headwater.events.types.json_text import Json, TypeTextError, dumps
from headwater.events.types.short_text import simple_string
from headwater.events.types.tree import (
    ArrayType,
    CharType,
    DataType,
    MapType,
    StructField,
    StructType,
    UnknownType,
    VarcharType,
)

CHAR_VARCHAR: Final = "__CHAR_VARCHAR_TYPE_STRING"

_HOLE: Final = UnknownType(dumps("\0"))
_STRING_OR_LIMITED: Final = r"(?:(char|varchar)\((\d{1,9})\)|string)"


def with_lengths(type_: DataType, type_text: str) -> DataType | None:
    """The type with the lengths that `type_text` has for its strings, or None where that says nothing of this type."""
    lengths = None if has_lengths(type_) else _lengths(type_, type_text)
    if lengths is None:
        return None
    limited = _map_leaves(type_, lambda leaf: _type_of_length(lengths) if leaf == STRING else leaf)
    return limited if has_lengths(limited) else None


def as_carried(type_: DataType, type_text: Json) -> DataType:
    """The type as it stands beside `type_text` in the schemas of tables: strings, whatever their length."""
    plain = _without_lengths(type_)
    return plain if isinstance(type_text, str) and with_lengths(plain, type_text) == type_ else type_


def has_lengths(type_: DataType) -> bool:
    return _without_lengths(type_) != type_


def _without_lengths(type_: DataType) -> DataType:
    return _map_leaves(type_, lambda leaf: STRING if isinstance(leaf, (CharType, VarcharType)) else leaf)


def _lengths(type_: DataType, type_text: str) -> Iterator[tuple[str | None, str | None]] | None:
    """For each string in the type, in its order, what `type_text` has there."""
    try:
        if "\0" in simple_string(type_):
            return None
        shape = simple_string(_map_leaves(type_, lambda leaf: _HOLE if leaf == STRING else leaf)).split("\0")
    except TypeTextError:
        return None
    found = re.fullmatch(_STRING_OR_LIMITED.join(map(re.escape, shape)), type_text)
    if found is None:
        return None
    return iter(zip(found.groups()[::2], found.groups()[1::2], strict=True))


def _type_of_length(lengths: Iterator[tuple[str | None, str | None]]) -> DataType:
    word, length = next(lengths)
    if word is None or length is None:
        return STRING
    return CharType(int(length)) if word == "char" else VarcharType(int(length))


def _map_leaves(type_: DataType, change: Callable[[DataType], DataType]) -> DataType:
    if isinstance(type_, ArrayType):
        return ArrayType(_map_leaves(type_.element, change), type_.contains_null)
    if isinstance(type_, MapType):
        return MapType(_map_leaves(type_.key, change), _map_leaves(type_.value, change), type_.value_contains_null)
    if isinstance(type_, StructType):
        return StructType(tuple([_map_field(field, change) for field in type_.fields]))
    return change(type_)


def _map_field(field: StructField, change: Callable[[DataType], DataType]) -> StructField:
    return replace(field, type=_map_leaves(field.type, change))
