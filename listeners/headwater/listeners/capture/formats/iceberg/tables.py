"""Descriptions of tables, from what the extractor wrote of their metadata."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from headwater.events import Table
from headwater.events.base import StringMap
from headwater.events.scalars import FieldPath
from headwater.events.tables import SortField, TableKind, Transform
from headwater.events.types import columns_from_schema_json

_WITH_ARGUMENT: Final = re.compile(r"(\w+)\[(\d+)\]")
_COMMENT: Final = "comment"
_OWNER: Final = "owner"


def table_of(state: Mapping[str, Any]) -> Table:
    """What a table was, by its metadata."""
    properties = dict(state["properties"])
    comment, owner = properties.pop(_COMMENT, None), properties.pop(_OWNER, None)
    return Table(
        columns=columns_from_schema_json(state["schema"]),
        partitioning=partitioning_of(state),
        ordering=tuple(_sort_field(order) for order in state["order"]),
        primary_key=primary_key_of(state),
        properties=StringMap(properties),
        comment=comment,
        location=state["location"],
        provider="iceberg",
        table_kind=TableKind.UNKNOWN,
        owner=owner,
    )


def primary_key_of(fields: Mapping[str, Any]) -> tuple[FieldPath, ...]:
    """Its identifier fields, which nothing enforces."""
    return tuple(path_of(name) for name in fields.get("key", ()))


def partitioning_of(fields: Mapping[str, Any]) -> tuple[Transform, ...]:
    return tuple(_field(field) for field in fields.get("fields", ()))


def path_of(name: str) -> FieldPath:
    return tuple(name.split("."))


def _field(fields: Mapping[str, Any]) -> Transform:
    transform = _transform(fields)
    own = fields.get("name")
    return transform.model_copy(update={"field_name": own}) if own not in _default_names(transform) else transform


def _transform(fields: Mapping[str, Any]) -> Transform:
    """Iceberg's word for it, with the column: `bucket[16]` of id is bucket(16, id)."""
    word, column = str(fields["transform"]), fields.get("column")
    columns: tuple[FieldPath, ...] = () if column is None else (path_of(column),)
    parsed = _WITH_ARGUMENT.fullmatch(word)
    if parsed is None:
        return Transform(name=_SPARK_TRANSFORMS.get(word, word), columns=columns)
    return Transform(name=parsed[1], columns=columns, arguments=(parsed[2],))


_SPARK_TRANSFORMS: Final[Mapping[str, str]] = {"year": "years", "month": "months", "day": "days", "hour": "hours"}
"""Spark's words, which are the same for all formats."""


def transform_of(fields: Mapping[str, Any], name: str | None = None) -> Transform:
    """A transform as Spark's parser has it: what isn't a column is an argument, the width of `truncate` among them."""
    columns: list[FieldPath] = [tuple(argument["column"]) for argument in fields["arguments"] if "column" in argument]
    arguments: list[str] = [argument["text"] for argument in fields["arguments"] if "column" not in argument]
    word: str = fields["transform"]
    return Transform(
        name=_SPARK_TRANSFORMS.get(word, word), columns=tuple(columns), arguments=tuple(arguments), field_name=name
    )


def _default_names(transform: Transform) -> Iterable[str | None]:
    """What Iceberg calls a field that was given no name."""
    column = ".".join(transform.columns[0]) if transform.columns else ""
    if transform.is_identity:
        return (column,)
    word = {"truncate": "trunc"}.get(transform.name, transform.name.removesuffix("s"))
    return (f"{column}_{word}", f"{column}_{word}_{''.join(transform.arguments)}")


def _sort_field(fields: Mapping[str, Any]) -> SortField:
    return SortField(by=_transform(fields), descending=fields["descending"], nulls_first=fields["nullsFirst"])
