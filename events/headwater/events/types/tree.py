"""Spark's data types as immutable values. Two types are equal if Spark would write them alike."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, TypeAlias

NO_METADATA: Final = "{}"


@dataclass(frozen=True, slots=True)
class SimpleType:
    """A type without parameters, by its name in Spark's JSON: string, integer, interval day to second."""

    name: str


@dataclass(frozen=True, slots=True)
class DecimalType:
    precision: int
    scale: int


@dataclass(frozen=True, slots=True)
class CharType:
    length: int


@dataclass(frozen=True, slots=True)
class VarcharType:
    length: int


@dataclass(frozen=True, slots=True)
class TimeType:
    """A time of day (Spark 4.1); `precision` is the digits of its fraction of a second."""

    precision: int


@dataclass(frozen=True, slots=True)
class CollatedStringType:
    """A string that doesn't compare by its bytes (Spark 4)."""

    collation: str


@dataclass(frozen=True, slots=True)
class ArrayType:
    element: DataType
    contains_null: bool = True


@dataclass(frozen=True, slots=True)
class MapType:
    key: DataType
    value: DataType
    value_contains_null: bool = True


@dataclass(frozen=True, slots=True)
class StructField:
    """A field of a struct. `metadata` is JSON text, as it was written, without the collations that `type` tells."""

    name: str
    type: DataType
    nullable: bool = True
    metadata: str = NO_METADATA


@dataclass(frozen=True, slots=True)
class StructType:
    fields: tuple[StructField, ...] = ()


@dataclass(frozen=True, slots=True)
class UserDefinedType:
    """A user-defined type, kept whole as its JSON text."""

    text: str


@dataclass(frozen=True, slots=True)
class UnknownType:
    """A type that isn't known here, kept whole as its JSON text: what a later Spark brings."""

    text: str


DataType: TypeAlias = (
    SimpleType
    | DecimalType
    | CharType
    | VarcharType
    | TimeType
    | CollatedStringType
    | ArrayType
    | MapType
    | StructType
    | UserDefinedType
    | UnknownType
)
Atomic: TypeAlias = SimpleType | DecimalType | CharType | VarcharType | TimeType | CollatedStringType


def nesting(type_: DataType) -> int:
    """How many arrays, maps and structs stand in each other."""
    if isinstance(type_, ArrayType):
        return 1 + nesting(type_.element)
    if isinstance(type_, MapType):
        return 1 + max(nesting(type_.key), nesting(type_.value))
    if isinstance(type_, StructType):
        return 1 + max([nesting(field.type) for field in type_.fields], default=0)
    return 0
