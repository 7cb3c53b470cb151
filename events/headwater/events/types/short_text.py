"""Writes types as the short text that Spark shows and stores, and names as SQL needs them."""

from __future__ import annotations

import re
from typing import Final

from headwater.events.types.atoms import name_in_sql
from headwater.events.types.json_text import TypeTextError, dumps, excerpt, loads
from headwater.events.types.spark_json import metadata_entries, parse_json
from headwater.events.types.tree import ArrayType, DataType, MapType, StructType, UnknownType, UserDefinedType

COMMENT: Final = "comment"

_PLAIN_NAME: Final = re.compile(r"(?!\d+\Z)[A-Za-z0-9_]+")


def simple_string(type_: DataType) -> str:
    """Return Spark's catalogString, which is its simpleString without a limit: `struct<a:int,b:array<string>>`.

    It has no nullability and no comments, and names stand in it unquoted, so that not every one can be read back.
    """
    if isinstance(type_, ArrayType):
        return f"array<{simple_string(type_.element)}>"
    if isinstance(type_, MapType):
        return f"map<{simple_string(type_.key)},{simple_string(type_.value)}>"
    if isinstance(type_, StructType):
        return f"struct<{','.join([f'{field.name}:{simple_string(field.type)}' for field in type_.fields])}>"
    if isinstance(type_, UserDefinedType):
        return simple_string(_stored_as(type_))
    return _opaque_name(type_) if isinstance(type_, UnknownType) else name_in_sql(type_)


def quoted(name: str) -> str:
    """A name as SQL needs it: in backquotes, unless it is made of letters, digits and underscores only."""
    return name if _PLAIN_NAME.fullmatch(name) else f"`{name.replace('`', '``')}`"


def _stored_as(type_: UserDefinedType) -> DataType:
    stored = metadata_entries(type_.text).get("sqlType")
    if stored is None:
        raise TypeTextError(f"a user-defined type without sqlType has no form in SQL: {excerpt(type_.text)}")
    return parse_json(dumps(stored))


def _opaque_name(type_: UnknownType) -> str:
    name = loads(type_.text)
    if not isinstance(name, str):
        raise TypeTextError(f"a type that isn't known here has no form in SQL: {excerpt(type_.text)}")
    return name
