"""A column of a table and a field of a struct are changed alike; here is where they differ."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import chain
from typing import TypeVar

from headwater.events.apply.errors import ImpossibleChangeError
from headwater.events.tables import Column
from headwater.events.types import MAX_NESTING, DataType, Field, TypeTextError, parse_json, with_type
from headwater.events.types.columns import CURRENT_DEFAULT
from headwater.events.types.ddl import COMMENT
from headwater.events.types.json_text import dumps
from headwater.events.types.spark_json import metadata_entries
from headwater.events.types.tree import nesting

Node = TypeVar("Node", Column, Field)


def joined(*parts: Iterable[Node]) -> tuple[Node, ...]:
    return tuple(chain.from_iterable(parts))


def type_of(node: Column | Field) -> DataType:
    return typed(node.type) if isinstance(node, Column) else node.type


def typed(text: str) -> DataType:
    try:
        return parse_json(text)
    except TypeTextError as error:
        raise ImpossibleChangeError(f"the type can't be read: {error}") from error


def retyped(node: Node, type_: DataType) -> Node:
    if isinstance(node, Field):
        return replace(node, type=type_)
    if nesting(type_) > MAX_NESTING:
        raise ImpossibleChangeError(f"more than {MAX_NESTING} types in each other in {node.name}")
    return with_type(node, type_)


def renamed(node: Node, name: str) -> Node:
    if isinstance(node, Field):
        return replace(node, name=name)
    return node.model_copy(update={"name": name})


def with_nullability(node: Node, *, nullable: bool) -> Node:
    if isinstance(node, Field):
        return replace(node, nullable=nullable)
    return node.model_copy(update={"nullable": nullable})


def with_comment(node: Node, comment: str | None) -> Node:
    if isinstance(node, Field):
        return _with_entry(node, COMMENT, comment)
    return node.model_copy(update={"comment": comment})


def with_default(node: Node, default: str | None) -> Node:
    """Spark takes an empty text for no default. What rows written before read (EXISTS_DEFAULT) stays as it is."""
    if isinstance(node, Field):
        return _with_entry(node, CURRENT_DEFAULT, default or None)
    return node.model_copy(update={"default": default or None})


def _with_entry(field: Field, key: str, value: str | None) -> Field:
    entries = metadata_entries(field.metadata)
    if value is None:
        entries.pop(key, None)
    else:
        entries[key] = value
    return replace(field, metadata=dumps(entries))
