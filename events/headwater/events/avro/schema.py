"""Avro schemas out of the models: one record per kind, the envelope first, named as the kind is."""

from __future__ import annotations

from typing import Any, Final

from pydantic_core import PydanticUndefined

from headwater.events.avro.types import (
    AvroArray,
    AvroEdges,
    AvroEnum,
    AvroFixed,
    AvroMap,
    AvroRecord,
    AvroScalar,
    AvroTimestamp,
    AvroType,
    AvroUnion,
    AvroUuid,
    TaggedUnion,
    fields_of,
    union_fields_of,
)
from headwater.events.base import FrozenMap, Model
from headwater.events.column_lineage import ColumnEdges
from headwater.events.envelope import Event
from headwater.events.scalars import EventEnum

NAMESPACE: Final = "headwater.events"
_NO_EDGES: Final[dict[str, Any]] = {name: [] for name in ColumnEdges.model_fields}


def schema_of(kind: type[Event]) -> dict[str, Any]:
    """The schema of a kind, as it is written to the `.avsc` file of its version."""
    fields = _Deriver().record(kind)["fields"]
    return {
        "type": "record",
        "name": kind.__name__,
        "namespace": NAMESPACE,
        "version": version_of(kind),
        "fields": fields,
    }


def version_of(kind: type[Event]) -> int:
    """The version of its schema that a kind is written with."""
    return int(kind.model_fields["schema_version"].default)


class _Deriver:
    """Derives one schema: a named type stands in full where it is met first, and by its name after that."""

    def __init__(self) -> None:
        self._named: set[str] = set()

    def record(self, model: type[Model]) -> dict[str, Any]:
        return self._once(model.__name__) or {
            "type": "record",
            "name": model.__name__,
            "fields": [self._field(name, shape, model) for name, shape in fields_of(model).items()],
        }

    def _field(self, name: str, shape: AvroType, model: type[Model]) -> dict[str, Any]:
        field: dict[str, Any] = {"name": name, "type": self._type(shape)}
        default = model.model_fields[name].default if name in model.model_fields else None
        if default is not PydanticUndefined and not _filled_by_stamp(model, name):
            field["default"] = _NO_EDGES if isinstance(shape, AvroEdges) else _json_default(default)
        return field

    def _once(self, name: str) -> Any:
        """The name alone, if the type stands in full before."""
        if name in self._named:
            return name
        self._named.add(name)
        return None

    def _type(self, shape: AvroType) -> Any:
        if isinstance(shape, AvroScalar):
            return shape.avro
        if isinstance(shape, AvroRecord | AvroEdges):
            return self.record(shape.model if isinstance(shape, AvroRecord) else ColumnEdges)
        if isinstance(shape, AvroArray):
            return {"type": "array", "items": self._type(shape.items)}
        if isinstance(shape, AvroMap):
            return {"type": "map", "values": self._type(shape.values)}
        if isinstance(shape, AvroUnion):
            return [*(["null"] if shape.nullable else []), *map(self._type, shape.options)]
        return self._leaf(shape)

    def _leaf(self, shape: AvroFixed | AvroUuid | AvroTimestamp | AvroEnum | TaggedUnion) -> Any:
        if isinstance(shape, AvroTimestamp):
            return {"type": "long", "logicalType": "timestamp-micros"}
        if isinstance(shape, TaggedUnion):
            return self._flat(shape)
        if isinstance(shape, AvroEnum):
            return self._once(shape.type.__name__) or _enum(shape.type)
        name, size = ("Uuid", 16) if isinstance(shape, AvroUuid) else (f"Bytes{shape.size}", shape.size)
        return self._once(name) or {"type": "fixed", "name": name, "size": size}

    def _flat(self, shape: TaggedUnion) -> Any:
        fields: list[Any] = []
        for name, field in union_fields_of(shape).items():
            default = {} if name == shape.discriminator else {"default": None}
            fields.append({"name": name, "type": self._type(field), **default})
        return self._once(shape.name) or {"type": "record", "name": shape.name, "fields": fields}


def _enum(words: type[EventEnum]) -> Any:
    symbols = [word.value for word in words]
    return {"type": "enum", "name": words.__name__, "symbols": symbols, "default": words.fallback()}


def _filled_by_stamp(model: type[Model], name: str) -> bool:
    """These have defaults for drafts only: on the wire they are always there."""
    return issubclass(model, Event) and name in {"schema_version", "producer", "sequence", "family_sequence", "time"}


def _json_default(default: Any) -> Any:
    if isinstance(default, EventEnum):
        return default.value
    if isinstance(default, FrozenMap):
        return dict(default)
    return list(default) if isinstance(default, tuple) else default
