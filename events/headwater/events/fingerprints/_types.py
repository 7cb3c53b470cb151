"""The type of a column in one spelling: key order, white space, comments and other notes of nested fields don't count.

What makes another type of it does, wherever Spark keeps it: the lengths of char and varchar, collations.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import Final

from headwater.events.types import (
    ArrayType,
    DataType,
    MapType,
    StructField,
    StructType,
    TypeTextError,
    UnknownType,
    UserDefinedType,
    parse_json,
    to_json,
)
from headwater.events.types.char_varchar import CHAR_VARCHAR, with_lengths
from headwater.events.types.collations import COLLATIONS
from headwater.events.types.json_text import Json, dumps, loads
from headwater.events.types.spark_json import metadata_entries

_LONGEST_KEPT: Final = 2048
_PICKLED: Final = "serializedClass"
"""The code of a type that was defined in a notebook: bytes that depend on the Python."""


def canonical_type(text: str) -> str:
    """Total: a text that isn't a type counts as it is."""
    return _remembered(text) if len(text) <= _LONGEST_KEPT else _canonical(text)


@lru_cache(maxsize=4096)
def _remembered(text: str) -> str:
    return _canonical(text)


def _canonical(text: str) -> str:
    try:
        return to_json(_bare(parse_json(text)))
    except (TypeTextError, RecursionError):
        return text


def _bare(type_: DataType) -> DataType:
    if isinstance(type_, ArrayType):
        return ArrayType(_bare(type_.element), type_.contains_null)
    if isinstance(type_, MapType):
        return MapType(_bare(type_.key), _bare(type_.value), type_.value_contains_null)
    if isinstance(type_, StructType):
        return StructType(tuple([_bare_field(field) for field in type_.fields]))
    if isinstance(type_, (UserDefinedType, UnknownType)):
        return replace(type_, text=dumps(_ordered(loads(type_.text))))
    return type_


def _bare_field(field: StructField) -> StructField:
    type_ = _bare(field.type)
    if CHAR_VARCHAR not in field.metadata and COLLATIONS not in field.metadata:
        return StructField(field.name, type_, field.nullable)
    entries = metadata_entries(field.metadata)
    type_text = entries.get(CHAR_VARCHAR)
    limited = with_lengths(type_, type_text) if isinstance(type_text, str) else None
    kept = {COLLATIONS} if limited is not None else {COLLATIONS, CHAR_VARCHAR}
    rest: Json = {key: entry for key, entry in entries.items() if key in kept}
    return StructField(field.name, limited or type_, field.nullable, dumps(_ordered(rest)))


def _ordered(value: Json) -> Json:
    if isinstance(value, dict):
        return {key: _ordered(value[key]) for key in sorted(value) if key != _PICKLED}
    return [_ordered(item) for item in value] if isinstance(value, list) else value
