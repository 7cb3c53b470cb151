"""Columns as DataHub's schema fields, with field paths as DataHub's own sources write them for a platform.

Two entities have the same column only if both name it alike. The sources of Iceberg and Delta write all paths in
version 2 of DataHub's encoding, those of SQL a plain column by its name and a nested one in version 2. Only below maps
of Iceberg our paths differ: there DataHub's source writes another path each time that it runs.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from typing import Any, Final

from datahub.metadata.schema_classes import (
    ArrayTypeClass,
    BooleanTypeClass,
    BytesTypeClass,
    DateTypeClass,
    MapTypeClass,
    NullTypeClass,
    NumberTypeClass,
    RecordTypeClass,
    SchemaFieldClass,
    SchemaFieldDataTypeClass,
    StringTypeClass,
    TimeTypeClass,
)

from headwater.events.scalars import FieldPath
from headwater.events.tables import Column
from headwater.events.types import (
    ArrayType,
    DataType,
    DecimalType,
    MapType,
    SimpleType,
    StructType,
    TypeTextError,
    UnknownType,
    column_of,
    parse_json,
    simple_string,
)

_VERSION: Final = "[version=2.0]"
_STRUCT: Final = "[type=struct]"
_STEPS: Final = frozenset({"element", "key", "value"})
"""How events name the inside of arrays and maps."""


class PathStyle(Enum):
    """Whose field paths are written."""

    ICEBERG = "iceberg"
    DELTA = "delta-lake"
    SQL = "sql"

    @classmethod
    def of(cls, platform: str) -> PathStyle:
        return next((style for style in cls if style.value == platform), cls.SQL)


_NUMBERS: Final = {
    "byte": "int",
    "short": "int",
    "integer": "int",
    "long": "long",
    "float": "float",
    "double": "double",
}
_AVRO: Final = {
    PathStyle.ICEBERG: {
        "boolean": "boolean",
        "binary": "bytes",
        "date": "int",
        "timestamp": "long",
        "decimal": "fixed",
    },
    PathStyle.SQL: {"boolean": "boolean", "binary": "string", "date": "int", "timestamp": "int", "decimal": "bytes"},
}
"""The Avro type that stands for a type in a path."""


@dataclass(frozen=True)
class SchemaFields:
    """The fields of a schema, and where each column of an event is among them."""

    fields: tuple[SchemaFieldClass, ...]
    paths: dict[FieldPath, str]

    def path(self, column: FieldPath) -> str:
        """Return the field path of a column. One whose type isn't known is written in version 1 of the encoding, as
        DataHub's own parser of SQL does."""
        return self.paths.get(column) or simple_path(column)


def simple_path(column: FieldPath) -> str:
    """Return the field path in version 1 of the encoding: names with dots."""
    return ".".join([column[0], *(step for step in column[1:] if step not in _STEPS)])


@lru_cache(maxsize=256)
def schema_fields(
    columns: tuple[Column, ...],
    style: PathStyle,
    keys: tuple[FieldPath, ...] = (),
    partitioned_by: tuple[FieldPath, ...] = (),
) -> SchemaFields:
    """Return the fields of these columns, nested ones after the column that holds them. Jobs tell the same again."""
    builder = _Builder(style, frozenset(keys), frozenset(partitioned_by))
    fields = tuple(field for column in columns for field in builder.column(column))
    return SchemaFields(fields, builder.paths)


class _Builder:
    def __init__(self, style: PathStyle, keys: frozenset[FieldPath], partitioned_by: frozenset[FieldPath]) -> None:
        self._style = style
        self._keys = keys
        self._partitioned_by = partitioned_by
        self.paths: dict[FieldPath, str] = {}

    def column(self, column: Column) -> Iterator[SchemaFieldClass]:
        type_ = _type_of(column)
        yield from self._field(self._root(type_), column, type_, (column.name,))

    def _root(self, type_: DataType) -> str:
        """Return what stands before the first column of a path; nothing where a plain name is the path."""
        nested = isinstance(type_, (ArrayType, MapType, StructType))
        if self._style is PathStyle.ICEBERG or nested:
            return f"{_VERSION}.{_STRUCT}"
        return _VERSION if self._style is PathStyle.DELTA else ""

    def _field(self, before: str, column: Column, type_: DataType, path: FieldPath) -> Iterator[SchemaFieldClass]:
        field_path = f"{before}.{self._words(type_)}.{column.name}" if before else column.name
        self.paths.setdefault(path, field_path)
        yield SchemaFieldClass(
            fieldPath=field_path,
            type=SchemaFieldDataTypeClass(type=_datahub_type(type_)),
            nativeDataType=_native(type_, column),
            nullable=column.nullable,
            description=column.comment,
            isPartOfKey=path in self._keys,
            isPartitioningKey=path in self._partitioned_by,
            jsonProps=_expressions(column),
        )
        yield from self._inside(field_path, type_, path)

    def _inside(self, field_path: str, type_: DataType, path: FieldPath) -> Iterator[SchemaFieldClass]:
        """Yield the fields that stand in a type. An array is its elements, a map its values."""
        if isinstance(type_, StructType):
            for field in type_.fields:
                yield from self._field(field_path, column_of(field), field.type, (*path, field.name))
        elif isinstance(type_, ArrayType):
            self.paths.setdefault((*path, "element"), field_path)
            yield from self._inside(field_path, type_.element, (*path, "element"))
        elif isinstance(type_, MapType):
            self.paths.setdefault((*path, "key"), field_path)
            self.paths.setdefault((*path, "value"), field_path)
            yield from self._inside(field_path, type_.value, (*path, "value"))

    def _words(self, type_: DataType) -> str:
        """Return the words for a type in a path: [type=array].[type=string]."""
        if isinstance(type_, StructType):
            return _STRUCT
        if isinstance(type_, ArrayType):
            return f"[type=array].{self._words(type_.element)}"
        if isinstance(type_, MapType):
            return f"[type=map].{self._words(type_.value)}"
        return f"[type={self._avro(type_)}]"

    def _avro(self, type_: DataType) -> str:
        if isinstance(type_, SimpleType) and type_.name in _NUMBERS:
            return _NUMBERS[type_.name]
        word = _word(type_)
        known = _AVRO[PathStyle.ICEBERG if self._style is PathStyle.ICEBERG else PathStyle.SQL]
        return word if word == "boolean" else known.get(word, "string")


def _word(type_: DataType) -> str:
    """Return one word for a type without inner types."""
    if isinstance(type_, DecimalType):
        return "decimal"
    name = type_.name if isinstance(type_, SimpleType) else ""
    return "timestamp" if name == "timestamp_ntz" else name


_CLASSES: Final[dict[str, Callable[[], Any]]] = {
    **dict.fromkeys((*_NUMBERS, "decimal"), NumberTypeClass),
    "boolean": BooleanTypeClass,
    "binary": BytesTypeClass,
    "date": DateTypeClass,
    "timestamp": TimeTypeClass,
    "void": NullTypeClass,
}
_RECORD: Final[Callable[[], Any]] = RecordTypeClass


def _datahub_type(type_: DataType) -> Any:
    if isinstance(type_, StructType):
        return _RECORD()
    if isinstance(type_, ArrayType):
        return ArrayTypeClass(nestedType=[_short(type_.element)])
    if isinstance(type_, MapType):
        return MapTypeClass(keyType=_short(type_.key), valueType=_short(type_.value))
    return _CLASSES.get(_word(type_), StringTypeClass)()


def _short(type_: DataType) -> str:
    if isinstance(type_, StructType):
        return "record"
    if isinstance(type_, ArrayType):
        return "array"
    return "map" if isinstance(type_, MapType) else simple_string(type_)


def _type_of(column: Column) -> DataType:
    try:
        return parse_json(column.type)
    except TypeTextError:
        return UnknownType(column.type)


def _native(type_: DataType, column: Column) -> str:
    return column.type if isinstance(type_, UnknownType) else simple_string(type_)


def _expressions(column: Column) -> str | None:
    """Return how a column gets its values, as JSON; None if nothing but what is written."""
    told = {"default": column.default, "generated": column.generated}
    known = {name: text for name, text in told.items() if text is not None}
    return json.dumps(known, sort_keys=True) if known else None
