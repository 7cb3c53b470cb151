"""Spark's data types as immutable values. Two types are equal if Spark would write them alike."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, TypeAlias

NO_METADATA: Final = "{}"


@dataclass(frozen=True, slots=True)
class Simple:
    """A type without parameters, by its name in Spark's JSON: string, integer, interval day to second."""

    name: str


@dataclass(frozen=True, slots=True)
class Decimal:
    precision: int
    scale: int


@dataclass(frozen=True, slots=True)
class Char:
    length: int


@dataclass(frozen=True, slots=True)
class Varchar:
    length: int


@dataclass(frozen=True, slots=True)
class Time:
    """A time of day (Spark 4.1); `precision` is the digits of its fraction of a second."""

    precision: int


@dataclass(frozen=True, slots=True)
class Collated:
    """A string that doesn't compare by its bytes (Spark 4)."""

    collation: str


@dataclass(frozen=True, slots=True)
class Array:
    element: DataType
    contains_null: bool = True


@dataclass(frozen=True, slots=True)
class Map:
    key: DataType
    value: DataType
    value_contains_null: bool = True


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a struct. `metadata` is JSON text, as it was written, without the collations that `type` tells."""

    name: str
    type: DataType
    nullable: bool = True
    metadata: str = NO_METADATA


@dataclass(frozen=True, slots=True)
class Struct:
    fields: tuple[Field, ...] = ()


@dataclass(frozen=True, slots=True)
class UserDefined:
    """A user-defined type, kept whole as its JSON text."""

    text: str


@dataclass(frozen=True, slots=True)
class Opaque:
    """A type that isn't known here, kept whole as its JSON text: what a later Spark brings."""

    text: str


DataType: TypeAlias = Simple | Decimal | Char | Varchar | Time | Collated | Array | Map | Struct | UserDefined | Opaque
Atomic: TypeAlias = Simple | Decimal | Char | Varchar | Time | Collated


def nesting(type_: DataType) -> int:
    """How many arrays, maps and structs stand in each other."""
    if isinstance(type_, Array):
        return 1 + nesting(type_.element)
    if isinstance(type_, Map):
        return 1 + max(nesting(type_.key), nesting(type_.value))
    if isinstance(type_, Struct):
        return 1 + max([nesting(field.type) for field in type_.fields], default=0)
    return 0
