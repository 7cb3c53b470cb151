"""Types as SQL text: what stands in a CREATE TABLE, and the shorter form that Spark shows and stores."""

from __future__ import annotations

import re
from typing import Final

from headwater.events.types.atoms import name_in_sql
from headwater.events.types.errors import TypeTextError, excerpt
from headwater.events.types.json_text import dumps, loads
from headwater.events.types.spark_json import metadata_entries, parse_json
from headwater.events.types.tree import NO_METADATA, Array, Collated, DataType, Field, Map, Opaque, Struct, UserDefined

COMMENT: Final = "comment"

_PLAIN_NAME: Final = re.compile(r"(?!\d+\Z)[A-Za-z0-9_]+")


def to_ddl(type_: DataType) -> str:
    """`STRUCT<a: INT NOT NULL COMMENT 'x', b: ARRAY<STRING>>`, as Spark 4 writes it: `parse_ddl` reads it back.

    SQL has no words for whether elements and map values may be null, for metadata other than the comment and for
    user-defined types (which show as what they are stored as): these are lost.
    """
    if isinstance(type_, Array):
        return f"ARRAY<{to_ddl(type_.element)}>"
    if isinstance(type_, Map):
        return f"MAP<{to_ddl(type_.key)}, {to_ddl(type_.value)}>"
    if isinstance(type_, Struct):
        return f"STRUCT<{', '.join([field_to_ddl(field) for field in type_.fields])}>"
    if isinstance(type_, UserDefined):
        return to_ddl(_stored_as(type_))
    if isinstance(type_, Collated):
        return f"STRING COLLATE {type_.collation}"
    return _opaque_name(type_) if isinstance(type_, Opaque) else name_in_sql(type_).upper()


def simple_string(type_: DataType) -> str:
    """`struct<a:int,b:array<string>>`: Spark's catalogString, which is its simpleString without a limit. It has no
    nullability and no comments, and names stand in it unquoted, so that not every one can be read back."""
    if isinstance(type_, Array):
        return f"array<{simple_string(type_.element)}>"
    if isinstance(type_, Map):
        return f"map<{simple_string(type_.key)},{simple_string(type_.value)}>"
    if isinstance(type_, Struct):
        return f"struct<{','.join([f'{field.name}:{simple_string(field.type)}' for field in type_.fields])}>"
    if isinstance(type_, UserDefined):
        return simple_string(_stored_as(type_))
    return _opaque_name(type_) if isinstance(type_, Opaque) else name_in_sql(type_)


def field_to_ddl(field: Field) -> str:
    not_null = "" if field.nullable else " NOT NULL"
    return f"{quoted(field.name)}: {to_ddl(field.type)}{not_null}{_comment(field)}"


def quoted(name: str) -> str:
    """A name as SQL needs it: in backquotes, unless it is made of letters, digits and underscores only."""
    return name if _PLAIN_NAME.fullmatch(name) else f"`{name.replace('`', '``')}`"


def _comment(field: Field) -> str:
    comment = None if field.metadata == NO_METADATA else metadata_entries(field.metadata).get(COMMENT)
    if not isinstance(comment, str):
        return ""
    escaped = comment.replace("\\", "\\\\").replace("'", "\\'")
    return f" COMMENT '{escaped}'"


def _stored_as(type_: UserDefined) -> DataType:
    stored = metadata_entries(type_.text).get("sqlType")
    if stored is None:
        raise TypeTextError(f"a user-defined type without sqlType has no form in SQL: {excerpt(type_.text)}")
    return parse_json(dumps(stored))


def _opaque_name(type_: Opaque) -> str:
    name = loads(type_.text)
    if not isinstance(name, str):
        raise TypeTextError(f"a type that isn't known here has no form in SQL: {excerpt(type_.text)}")
    return name
