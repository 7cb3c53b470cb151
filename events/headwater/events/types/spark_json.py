"""Spark's own JSON for types and fields, read and written without loss.

Outside of a field (as the type of a column, which stands alone) a collated string is written `"string collate X"`; in a
field its collation is in the metadata, as Spark has it.
"""

from __future__ import annotations

from json.encoder import encode_basestring
from typing import Final, TypeAlias, TypeVar, Union

from headwater.events.types.atoms import SIMPLE, atom, name_in_json
from headwater.events.types.collations import COLLATIONS, with_collations, without_collations
from headwater.events.types.json_text import (
    MAX_NESTING,
    Json,
    TypeTextError,
    bounded_stack,
    dumps,
    excerpt,
    loads,
    name_of,
)
from headwater.events.types.tree import (
    NO_METADATA,
    ArrayType,
    DataType,
    MapType,
    StructField,
    StructType,
    UnknownType,
    UserDefinedType,
)

Where: TypeAlias = Union["tuple[Where, str]", None]
"""A place in the JSON, from the inside out."""

T = TypeVar("T")

_NOUNS: Final[dict[type, str]] = {str: "a string", bool: "a boolean", dict: "an object", list: "a list"}
_STRUCT_KEYS: Final = {"type", "fields"}
_FIELD_KEYS: Final = {"name", "type", "nullable", "metadata"}
_ARRAY_KEYS: Final = {"type", "elementType", "containsNull"}
_MAP_KEYS: Final = {"type", "keyType", "valueType", "valueContainsNull"}


def parse_json(text: str) -> DataType:
    """The type that Spark's `DataType.json` wrote; anything else raises TypeTextError."""
    with bounded_stack():
        return _read(loads(text), None, 0)


def parse_field(text: str) -> StructField:
    """The field that Spark's `StructField.json` wrote; anything else raises TypeTextError."""
    with bounded_stack():
        return _read_field(loads(text), None, 0)


def to_json(type_: DataType) -> str:
    """Compact, with the keys as Spark's JVM orders them; `parse_json` gives back the same type."""
    if isinstance(type_, StructType):
        return f'{{"type":"struct","fields":[{",".join([field_to_json(field) for field in type_.fields])}]}}'
    if isinstance(type_, ArrayType):
        element = to_json(type_.element)
        return f'{{"type":"array","elementType":{element},"containsNull":{dumps(type_.contains_null)}}}'
    if isinstance(type_, MapType):
        inner = f'"keyType":{to_json(type_.key)},"valueType":{to_json(type_.value)}'
        return f'{{"type":"map",{inner},"valueContainsNull":{dumps(type_.value_contains_null)}}}'
    if isinstance(type_, (UserDefinedType, UnknownType)):
        return type_.text
    return encode_basestring(name_in_json(type_))


def field_to_json(field: StructField) -> str:
    plain, collations = without_collations(field.type, field.name)
    metadata = with_entries(field.metadata, {COLLATIONS: collations}) if collations else field.metadata
    head = f'"name":{encode_basestring(field.name)},"type":{to_json(plain)}'
    return f'{{{head},"nullable":{dumps(field.nullable)},"metadata":{metadata}}}'


def with_entries(metadata: str, entries: dict[str, Json]) -> str:
    """Metadata as JSON text with these entries put in, or set to these values."""
    if metadata == NO_METADATA:
        return dumps(entries)
    return dumps({**metadata_entries(metadata), **entries})


def metadata_entries(metadata: str) -> dict[str, Json]:
    value = loads(metadata)
    if not isinstance(value, dict):
        raise TypeTextError(f"metadata must be an object, not {name_of(value)}")
    return value


def _read(value: Json, where: Where, depth: int) -> DataType:
    if isinstance(value, str):
        return SIMPLE.get(value) or _read_name(value, where)
    if not isinstance(value, dict):
        raise _error(where, f"a type is a name or an object, not {name_of(value)}")
    if depth >= MAX_NESTING:
        raise _error(where, f"more than {MAX_NESTING} types in each other")
    kind = _member(value, "type", str, where)
    keys = value.keys()
    if kind == "struct" and keys <= _STRUCT_KEYS:
        return _read_struct(value, where, depth)
    if kind == "array" and keys <= _ARRAY_KEYS:
        element = _read(_present(value, "elementType", where), (where, "elementType"), depth + 1)
        return ArrayType(element, _member(value, "containsNull", bool, where))
    if kind == "map" and keys <= _MAP_KEYS:
        key = _read(_present(value, "keyType", where), (where, "keyType"), depth + 1)
        inner = _read(_present(value, "valueType", where), (where, "valueType"), depth + 1)
        return MapType(key, inner, _member(value, "valueContainsNull", bool, where))
    return UserDefinedType(dumps(value)) if kind == "udt" else UnknownType(dumps(value))


def _read_name(name: str, where: Where) -> DataType:
    if not name.strip():
        raise _error(where, "the name of the type is empty")
    return atom(name) or UnknownType(dumps(name))


def _read_struct(value: dict[str, Json], where: Where, depth: int) -> StructType | UnknownType:
    fields = _member(value, "fields", list, where)
    if any(isinstance(field, dict) and not field.keys() <= _FIELD_KEYS for field in fields):
        return UnknownType(dumps(value))
    return StructType(
        tuple([_read_field(field, (where, f"fields[{index}]"), depth + 1) for index, field in enumerate(fields)])
    )


def _read_field(value: Json, where: Where, depth: int) -> StructField:
    """`nullable` and `metadata` may be missing, as in what old Sparks wrote."""
    if not isinstance(value, dict):
        raise _error(where, f"a field is an object, not {name_of(value)}")
    if unknown := value.keys() - _FIELD_KEYS:
        raise _error(where, f"a field has no {', '.join(map(repr, sorted(unknown)))}")
    name = _member(value, "name", str, where)
    type_ = _read(_present(value, "type", where), (where, "type"), depth)
    nullable = _member(value, "nullable", bool, where) if "nullable" in value else True
    metadata = _member(value, "metadata", dict, where) if value.get("metadata") is not None else {}
    collated = with_collations(type_, name, metadata[COLLATIONS]) if COLLATIONS in metadata else None
    if collated is None:
        return StructField(name, type_, nullable, dumps(metadata))
    rest = {key: entry for key, entry in metadata.items() if key != COLLATIONS}
    return StructField(name, collated, nullable, dumps(rest))


def _present(value: dict[str, Json], key: str, where: Where) -> Json:
    if key not in value:
        raise _error(where, f"{key!r} is missing")
    return value[key]


def _member(value: dict[str, Json], key: str, kind: type[T], where: Where) -> T:
    item = _present(value, key, where)
    if not isinstance(item, kind):
        raise _error(where, f"{key!r} must be {_NOUNS[kind]}, not {name_of(item)}")
    return item


def _error(where: Where, what: str) -> TypeTextError:
    steps: list[str] = []
    while where is not None:
        where, step = where
        steps.append(step)
    path = ".".join(reversed(steps)) or "the top"
    return TypeTextError(f"at {excerpt(path, len(path), 200)}: {what}")
