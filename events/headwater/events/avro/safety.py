"""Schemas come over the bus too, and a schema can make few bytes mean very much: such a one is refused.

An array of items that take no bytes (null, or records of nothing else) could claim 2^60 of them; a recursive type could
nest without end. With neither, what reading allocates is bounded by the bytes that are there.
"""

from __future__ import annotations

from typing import Any, Final

from headwater.events.avro.errors import DecodeError, Problem

_MAX_DEPTH: Final = 32
_EMPTY: Final = frozenset({"null"})
_PRIMITIVE: Final = frozenset({"null", "boolean", "int", "long", "float", "double", "bytes", "string"})


def refuse_unbounded(schema: Any) -> None:
    """Raises a DecodeError if this isn't a record, or bytes of it could mean unboundedly more than they are."""
    if not isinstance(schema, dict) or schema.get("type") != "record":
        raise DecodeError(Problem.BAD_SCHEMA, "a record is expected")
    _Walk().width(schema, "", 0)


class _Walk:
    """Computes whether a type takes at least one byte, looking at every type on the way."""

    def __init__(self) -> None:
        self._named: dict[str, bool | None] = {}

    def width(self, schema: Any, namespace: str, depth: int) -> bool:
        if depth > _MAX_DEPTH:
            raise DecodeError(Problem.BAD_SCHEMA, f"types nested more than {_MAX_DEPTH} deep")
        if isinstance(schema, str):
            return self._by_name(schema, namespace)
        if isinstance(schema, list):
            for branch in schema:
                self.width(branch, namespace, depth + 1)
            return True  # the index of the branch
        if not isinstance(schema, dict):
            raise DecodeError(Problem.BAD_SCHEMA, f"{type(schema).__name__} where a type is expected")
        return self._complex(schema, namespace, depth)

    def _by_name(self, name: str, namespace: str) -> bool:
        if name in _PRIMITIVE:
            return name not in _EMPTY
        full = name if "." in name or not namespace else f"{namespace}.{name}"
        known = self._named.get(full, False) if full in self._named else None
        if known is None:
            raise DecodeError(Problem.BAD_SCHEMA, f"the type {name} is unknown here, or recursive")
        return known

    def _complex(self, schema: dict[str, Any], namespace: str, depth: int) -> bool:
        kind = schema.get("type")
        if kind in {"record", "enum", "fixed", "error"}:
            return self._declared(schema, namespace, depth)
        if kind in {"array", "map"}:
            item = self.width(schema.get("items" if kind == "array" else "values"), namespace, depth + 1)
            if not item and kind == "array":
                raise DecodeError(Problem.BAD_SCHEMA, "an array of items that take no bytes")
            return True
        return self.width(kind, namespace, depth + 1)

    def _declared(self, schema: dict[str, Any], namespace: str, depth: int) -> bool:
        name = str(schema.get("name", ""))
        space = name.rpartition(".")[0] or str(schema.get("namespace", namespace))
        full = name if "." in name or not space else f"{space}.{name}"
        self._named[full] = None  # met again before it is complete, it is recursive
        if schema["type"] in {"record", "error"}:
            fields = schema.get("fields", [])
            width = [self.width(field.get("type"), space, depth + 1) for field in fields].count(True) > 0
        else:
            width = schema["type"] == "enum" or int(schema.get("size", 0)) > 0
        self._named[full] = width
        return width
