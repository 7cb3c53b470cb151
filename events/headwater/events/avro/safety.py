"""Schemas come over the bus too, and a schema can make few bytes mean very much: such a one is refused.

The law: reading bytes by an accepted schema makes at most `MAX_STATIC` values and `MAX_VALUES_PER_BYTE` for each byte,
at most `MAX_DEPTH` deep. So nothing nests without end; what takes no bytes (null, records of nothing else) stands in no
array and doesn't multiply by references to references; and the items of an array are worth their bytes, together with
the fields that resolution fills in beside what was written.

What is accepted is also rewritten: only what was looked at here is left, every name in full. An attribute that a
library takes for an order (a decimal of a million digits, its own mark on schemas that need no check) never reaches it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from headwater.events.avro.errors import DecodeError, Problem

MAX_DEPTH: Final = 32
MAX_STATIC: Final = 1_024
"""Values that a type may have without an item in its arrays and maps. The largest event of ours has 89."""
MAX_VALUES_PER_BYTE: Final = 4
_A_RECORD: Final = 3
"""What a record costs beside its fields, in values."""
_WIDTHS: Final = {
    "null": 0,
    "boolean": 1,
    "int": 1,
    "long": 1,
    "float": 4,
    "double": 8,
    "bytes": 1,
    "string": 1,
}
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_MAX_NAME: Final = 255
"""Of a full name: a few letters that refer to it become that many."""
_MAX_FIXED: Final = 2**31


class _Type(NamedTuple):
    """What is left of a type, and what its fewest bytes can mean. An array or a map counts as an empty one here."""

    clean: Any
    values: int
    """How many, at most."""
    excess: int
    """By how many these are more than its bytes allow, at most. Below 0 the bytes allow more."""
    height: int


def bounded(schema: Any, own: Mapping[str, frozenset[str]]) -> dict[str, Any]:
    """What a reader needs of a record's schema; a DecodeError if bytes of it could mean unboundedly more than they are.

    `own` are the records it will be resolved to, with the names of their fields.
    """
    if not isinstance(schema, dict) or schema.get("type") != "record":
        raise _bad("a record is expected")
    clean: dict[str, Any] = _Walk(own).type(schema, "", 1).clean
    return clean


def fields_by_record(schema: Any) -> dict[str, frozenset[str]]:
    """The names of the fields of each record that a schema of ours declares."""
    if isinstance(schema, list):
        return {name: fields for part in schema for name, fields in fields_by_record(part).items()}
    if not isinstance(schema, dict):
        return {}
    fields = schema.get("fields", ())
    inner = [field["type"] for field in fields] + [schema[key] for key in ("items", "values") if key in schema]
    found = fields_by_record(inner)
    return {**found, schema["name"]: frozenset(field["name"] for field in fields)} if fields else found


class _Walk:
    """Looks at every type once; what refers to it by name takes what was found."""

    def __init__(self, own: Mapping[str, frozenset[str]]) -> None:
        self._own = own
        self._named: dict[str, _Type | None] = {}

    def type(self, schema: Any, namespace: str, depth: int) -> _Type:
        if depth > MAX_DEPTH:
            raise _too_deep()
        if isinstance(schema, str):
            return self._by_name(schema, namespace, depth)
        if isinstance(schema, list):
            return self._union(schema, namespace, depth)
        if not isinstance(schema, dict):
            raise _bad(f"{type(schema).__name__} where a type is expected")
        return self._complex(schema, namespace, depth)

    def _by_name(self, name: str, namespace: str, depth: int) -> _Type:
        if name in _WIDTHS:
            return _leaf(name, _WIDTHS[name])
        full = name if "." in name else f"{namespace}.{name}"
        found = self._named.get(full)
        if found is None:
            raise _bad(f"the type {name} is unknown here, or recursive")
        if depth + found.height > MAX_DEPTH:
            raise _too_deep()
        return found._replace(clean=full)

    def _union(self, branches: list[Any], namespace: str, depth: int) -> _Type:
        found = [self.type(branch, namespace, depth + 1) for branch in branches]
        if not found:
            raise _bad("a union of nothing")
        excess = max(branch.excess for branch in found) - MAX_VALUES_PER_BYTE  # the byte that says which branch
        return _Type([f.clean for f in found], max(f.values for f in found), excess, _height(found))

    def _complex(self, schema: dict[str, Any], namespace: str, depth: int) -> _Type:
        kind = schema.get("type")
        if kind in ("record", "enum", "fixed"):
            return self._declared(schema, kind, namespace, depth)
        if kind == "array":
            return self._items(kind, "items", schema.get("items"), namespace, depth)
        if kind == "map":
            return self._items(kind, "values", schema.get("values"), namespace, depth)
        if kind == "long" and schema.get("logicalType") == "timestamp-micros":
            return _leaf({"type": "long", "logicalType": "timestamp-micros"}, 1)
        return self.type(kind, namespace, depth + 1)

    def _items(self, kind: str, key: str, schema: Any, namespace: str, depth: int) -> _Type:
        item = self.type(schema, namespace, depth + 1)
        name = _leaf("string", 1).excess if kind == "map" else 0
        if item.excess + name > 0:
            raise _bad(f"a {kind} of items that mean more than their bytes")
        return _leaf({"type": kind, key: item.clean}, 1)._replace(height=item.height + 1)

    def _declared(self, schema: dict[str, Any], kind: str, namespace: str, depth: int) -> _Type:
        full = _full_name(schema, namespace)
        if full in self._named:
            raise _bad(f"the type {full} is declared twice")
        self._named[full] = None  # met again before it is complete, it is recursive
        if kind == "record":
            found = self._record(schema, full, depth)
        else:
            found = _enum(schema, full) if kind == "enum" else _fixed(schema, full)
        self._named[full] = found
        return found

    def _record(self, schema: dict[str, Any], full: str, depth: int) -> _Type:
        namespace, _, name = full.rpartition(".")
        fields = _fields(schema)
        found = [self.type(field.get("type"), namespace, depth + 1) for field in fields]
        names = [field["name"] for field in fields]
        base = _A_RECORD + len(self._own.get(name, frozenset()).difference(names))
        values = base + sum(f.values for f in found)
        if values > MAX_STATIC:
            raise _bad(f"{full} has {values} values in itself, where {MAX_STATIC} are allowed")
        clean = [
            {"name": field["name"], "type": f.clean, **({"default": field["default"]} if "default" in field else {})}
            for field, f in zip(fields, found, strict=True)
        ]
        excess = base + sum(f.excess for f in found)
        return _Type({"type": "record", "name": full, "fields": clean}, values, excess, _height(found))


def _fields(schema: dict[str, Any]) -> list[dict[str, Any]]:
    fields = schema.get("fields")
    if not isinstance(fields, list) or not all(isinstance(field, dict) for field in fields):
        raise _bad("a record's fields are a list of objects")
    _distinct_names(field.get("name") for field in fields)
    return fields


def _enum(schema: dict[str, Any], full: str) -> _Type:
    symbols = schema.get("symbols")
    if not isinstance(symbols, list):
        raise _bad("an enum's symbols are a list of names")
    names = _distinct_names(symbols)
    default = {"default": schema["default"]} if schema.get("default") in names else {}
    return _leaf({"type": "enum", "name": full, "symbols": names, **default}, 1)


def _fixed(schema: dict[str, Any], full: str) -> _Type:
    size = schema.get("size")
    if type(size) is not int or not 0 <= size < _MAX_FIXED:  # True is an int too
        raise _bad(f"the size of {full} is no number of bytes")
    return _leaf({"type": "fixed", "name": full, "size": size}, size)


def _full_name(schema: dict[str, Any], namespace: str) -> str:
    name, space = schema.get("name"), schema.get("namespace", namespace)
    if not isinstance(name, str) or not isinstance(space, str):
        raise _bad("names and namespaces are texts")
    full = name if "." in name else f"{space}.{name}"
    if len(full) > _MAX_NAME or not all(_NAME.fullmatch(word) for word in full.split(".")):
        raise _bad(f"{full!r} is no name in a namespace, of at most {_MAX_NAME} letters")
    return full


def _distinct_names(names: Iterable[Any]) -> list[str]:
    found: dict[str, None] = {}
    for name in names:
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise _bad(f"{name!r} is no name")
        if name in found:
            raise _bad(f"{name} stands twice")
        found[name] = None
    return list(found)


def _leaf(clean: Any, width: int) -> _Type:
    return _Type(clean, 1, 1 - MAX_VALUES_PER_BYTE * width, 1)


def _height(parts: list[_Type]) -> int:
    return 1 + max((part.height for part in parts), default=0)


def _too_deep() -> DecodeError:
    return _bad(f"types nested more than {MAX_DEPTH} deep")


def _bad(message: str) -> DecodeError:
    return DecodeError(Problem.BAD_SCHEMA, message)
