"""Columns of tables to and from the fields of Spark's schemas. What has no place of its own in a Column stays in its
metadata, so that a schema comes back as it was."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from headwater.events.tables import Column
from headwater.events.types.char_varchar import CHAR_VARCHAR, as_carried, has_lengths, with_lengths
from headwater.events.types.json_text import Json, TypeTextError, dumps, excerpt
from headwater.events.types.short_text import COMMENT, simple_string
from headwater.events.types.spark_json import (
    field_to_json,
    metadata_entries,
    parse_field,
    parse_json,
    to_json,
    with_entries,
)
from headwater.events.types.tree import NO_METADATA, DataType, StructField, StructType

CURRENT_DEFAULT: Final = "CURRENT_DEFAULT"
GENERATION_EXPRESSION: Final = "GENERATION_EXPRESSION"
_OWN_PLACE: Final = {"comment": COMMENT, "default": CURRENT_DEFAULT, "generated": GENERATION_EXPRESSION}
"""What has a field of its own in a Column, and the key that Spark has for it."""


def from_field(text: str) -> Column:
    """The column that a Spark StructField, as JSON, is."""
    return column_of(parse_field(text))


def columns_from_schema_json(text: str) -> tuple[Column, ...]:
    """The columns of a Spark StructType, as its `json` writes it."""
    schema = parse_json(text)
    if not isinstance(schema, StructType):
        raise TypeTextError(f"a schema is a struct, not {excerpt(simple_string(schema))!r}")
    return tuple([column_of(field) for field in schema.fields])


def schema_json(columns: Iterable[Column]) -> str:
    """The Spark StructType of these columns: the inverse of `columns_from_schema_json`."""
    fields = ",".join([field_to_json(field_of(column)) for column in columns])
    return f'{{"type":"struct","fields":[{fields}]}}'


def column_of(field: StructField) -> Column:
    """EXISTS_DEFAULT, and how Spark carries char and varchar, stay in the metadata: without them the schema couldn't
    be written again."""
    entries = {} if field.metadata == NO_METADATA else metadata_entries(field.metadata)
    places = {place: text for place, key in _OWN_PLACE.items() if isinstance(text := entries.get(key), str)}
    type_text = entries.get(CHAR_VARCHAR)
    limited = with_lengths(field.type, type_text) if isinstance(type_text, str) else None
    rest = {key: entry for key, entry in entries.items() if not _has_own_place(key, entry)}
    return Column(
        name=field.name,
        type=to_json(field.type if limited is None else limited),
        nullable=field.nullable,
        metadata=dumps(rest) if rest else None,
        comment=places.get("comment"),
        default=places.get("default"),
        generated=places.get("generated"),
    )


def field_of(column: Column) -> StructField:
    """The field as Spark has it in the schema of a table: the inverse of `column_of`."""
    type_ = parse_json(column.type)
    metadata = column.metadata or NO_METADATA
    if CHAR_VARCHAR in metadata:
        type_ = as_carried(type_, metadata_entries(metadata).get(CHAR_VARCHAR))
    places = {key: text for place, key in _OWN_PLACE.items() if (text := getattr(column, place)) is not None}
    return StructField(column.name, type_, column.nullable, with_entries(metadata, places) if places else metadata)


def _has_own_place(key: str, entry: Json) -> bool:
    return key in _OWN_PLACE.values() and isinstance(entry, str)


def with_type(column: Column, type_: DataType) -> Column:
    """The column with another type; where its metadata carries the lengths of strings, it carries the new ones."""
    metadata = column.metadata
    if metadata is not None and CHAR_VARCHAR in metadata:
        entries = metadata_entries(metadata)
        carried = entries.pop(CHAR_VARCHAR, None) is not None
        if carried and has_lengths(type_):
            entries[CHAR_VARCHAR] = simple_string(type_)
        metadata = dumps(entries) if entries else None
    return column.model_copy(update={"type": to_json(type_), "metadata": metadata})
