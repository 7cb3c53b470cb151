"""A column of a table and a field of a struct are changed alike; here is where they differ."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import chain
from typing import TypeVar

from headwater.events.apply.errors import ImpossibleChangeError
from headwater.events.tables import Column
from headwater.events.types import MAX_NESTING, DataType, StructField, TypeTextError, parse_json, with_type
from headwater.events.types.columns import CURRENT_DEFAULT
from headwater.events.types.json_text import dumps
from headwater.events.types.short_text import COMMENT
from headwater.events.types.spark_json import metadata_entries
from headwater.events.types.tree import nesting

SchemaNode = TypeVar("SchemaNode", Column, StructField)


def joined(*parts: Iterable[SchemaNode]) -> tuple[SchemaNode, ...]:
    return tuple(chain.from_iterable(parts))


def type_of(node: Column | StructField) -> DataType:
    return parse_type(node.type) if isinstance(node, Column) else node.type


def parse_type(text: str) -> DataType:
    try:
        return parse_json(text)
    except TypeTextError as error:
        raise ImpossibleChangeError(f"the type can't be read: {error}") from error


def retyped(node: SchemaNode, type_: DataType) -> SchemaNode:
    if isinstance(node, StructField):
        return replace(node, type=type_)
    if nesting(type_) > MAX_NESTING:
        raise ImpossibleChangeError(f"more than {MAX_NESTING} types in each other in {node.name}")
    return with_type(node, type_)


def renamed(node: SchemaNode, name: str) -> SchemaNode:
    if isinstance(node, StructField):
        return replace(node, name=name)
    return node.model_copy(update={"name": name})


def with_nullability(node: SchemaNode, *, nullable: bool) -> SchemaNode:
    if isinstance(node, StructField):
        return replace(node, nullable=nullable)
    return node.model_copy(update={"nullable": nullable})


def with_comment(node: SchemaNode, comment: str | None) -> SchemaNode:
    if isinstance(node, StructField):
        return _with_entry(node, COMMENT, comment)
    return node.model_copy(update={"comment": comment})


def with_default(node: SchemaNode, default: str | None) -> SchemaNode:
    """Spark takes an empty text for no default. What rows written before read (EXISTS_DEFAULT) stays as it is."""
    if isinstance(node, StructField):
        return _with_entry(node, CURRENT_DEFAULT, default or None)
    return node.model_copy(update={"default": default or None})


def _with_entry(field: StructField, key: str, value: str | None) -> StructField:
    entries = metadata_entries(field.metadata)
    if value is None:
        entries.pop(key, None)
    else:
        entries[key] = value
    return replace(field, metadata=dumps(entries))
