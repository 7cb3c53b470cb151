"""Where Spark 4 keeps the collations of strings: in the metadata of the field they are in, by path.

`{"name": "a", "type": {"type": "array", "elementType": "string"}, "metadata": {"__COLLATIONS": {"a.element":
"icu.UNICODE_CI"}}}` is `array<string collate UNICODE_CI>`: readers that know nothing of collations see plain strings.
Structs below start anew, their fields have metadata of their own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from headwater.events.types.atoms import BINARY_COLLATION, STRING
from headwater.events.types.json_text import Json
from headwater.events.types.tree import ArrayType, Atomic, CollatedStringType, DataType, MapType, SimpleType

COLLATIONS: Final = "__COLLATIONS"


def with_collations(type_: DataType, name: str, collations: Json) -> DataType | None:
    """The type of the field `name` with the collations that its metadata tells, or None where they don't fit it:
    then nobody may touch them."""
    names = _names(collations)
    if names is None:
        return None
    placed: set[str] = set()

    def place(string: Atomic, path: str) -> DataType:
        if string != STRING or path not in names:
            return string
        placed.add(path)
        return CollatedStringType(names[path])

    collated = _map_atoms(type_, name, place)
    return collated if len(placed) == len(names) else None


def without_collations(type_: DataType, name: str) -> tuple[DataType, dict[str, Json]]:
    """The type as Spark writes it for the field `name`, and what goes into the field's metadata."""
    collations: dict[str, Json] = {}

    def take(string: Atomic, path: str) -> DataType:
        if not isinstance(string, CollatedStringType):
            return string
        collations[path] = f"{_provider(string.collation)}.{string.collation}"
        return STRING

    return _map_atoms(type_, name, take), collations


def _names(collations: Json) -> dict[str, str] | None:
    """The collation by path, if all of them are written as Spark writes them."""
    if not isinstance(collations, dict) or not collations:
        return None
    names: dict[str, str] = {}
    for path, carried in collations.items():
        provider, _, name = carried.partition(".") if isinstance(carried, str) else ("", "", "")
        if not name.isidentifier() or provider != _provider(name) or name == BINARY_COLLATION:
            return None
        names[path] = name
    return names


def _provider(collation: str) -> str:
    return "spark" if collation.startswith("UTF8") else "icu"


def _map_atoms(type_: DataType, path: str, change: Callable[[Atomic, str], DataType]) -> DataType:
    if isinstance(type_, ArrayType):
        return ArrayType(_map_atoms(type_.element, f"{path}.element", change), type_.contains_null)
    if isinstance(type_, MapType):
        key = _map_atoms(type_.key, f"{path}.key", change)
        return MapType(key, _map_atoms(type_.value, f"{path}.value", change), type_.value_contains_null)
    return change(type_, path) if isinstance(type_, (SimpleType, CollatedStringType)) else type_
