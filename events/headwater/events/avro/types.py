"""Maps the fields of the event models to Avro types: schemas and converters are derived from this."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, Final, Literal, TypeAlias, Union, get_args, get_origin
from uuid import UUID

from annotated_types import Le, MaxLen
from pydantic.fields import FieldInfo

from headwater.events.base import CountMap, Model, StringMap
from headwater.events.column_lineage import ColumnLineage
from headwater.events.envelope import Event
from headwater.events.scalars import EventEnum, Format


@dataclass(frozen=True)
class AvroScalar:
    """A value that fastavro takes and gives as it is."""

    avro: str


@dataclass(frozen=True)
class AvroFixed:
    size: int


@dataclass(frozen=True)
class AvroUuid:
    pass


@dataclass(frozen=True)
class AvroTimestamp:
    pass


@dataclass(frozen=True)
class AvroEnum:
    type: type[EventEnum]


@dataclass(frozen=True)
class AvroRecord:
    model: type[Model]


@dataclass(frozen=True)
class TaggedUnion:
    """A union of models in one record: the discriminator tells which, and what another one has is null."""

    name: str
    discriminator: str
    members: tuple[type[Model], ...]


@dataclass(frozen=True)
class AvroArray:
    items: AvroType


@dataclass(frozen=True)
class AvroEdges:
    """Many ColumnLineage, written as one ColumnEdges."""


@dataclass(frozen=True)
class AvroMap:
    values: AvroType


@dataclass(frozen=True)
class AvroUnion:
    """One of several, and null too if `nullable`."""

    options: tuple[AvroType, ...]
    nullable: bool


_Leaf: TypeAlias = AvroScalar | AvroFixed | AvroUuid | AvroTimestamp | AvroEnum | AvroRecord | TaggedUnion
AvroType: TypeAlias = "_Leaf | AvroArray | AvroEdges | AvroMap | AvroUnion"

FORMAT: Final = AvroEnum(Format)
_PLAIN: Final[dict[Any, AvroType]] = {
    str: AvroScalar("string"),
    bool: AvroScalar("boolean"),
    float: AvroScalar("double"),
    UUID: AvroUuid(),
    datetime: AvroTimestamp(),
}
_MAPS: Final[dict[Any, AvroType]] = {StringMap: AvroMap(AvroScalar("string")), CountMap: AvroMap(AvroScalar("long"))}


@cache
def fields_of(model: type[Model]) -> dict[str, AvroType]:
    """The shape of each field that goes over the wire, in order. `kind` is the name of the record itself.

    Beside a format stands its name where the enum doesn't list it: readers that know no such field get OTHER.
    """
    fields = model.model_fields
    found = {
        name: avro_type_of(field) for name, field in fields.items() if name != "kind" or not issubclass(model, Event)
    }
    return found | {name_field_of(name): nullable(_PLAIN[str]) for name, shape in found.items() if shape == FORMAT}


def name_field_of(field: str) -> str:
    """The Avro field with the name of a format that the enum doesn't list; the model has no such field."""
    return f"{field}_name"


@cache
def fields_with(model: type[Model], has: Callable[[type[Model]], bool]) -> tuple[str, ...]:
    """The fields of a model that hold models which have something, or hold such models in turn."""
    return tuple(
        name
        for name, shape in fields_of(model).items()
        if any(has(inner) or fields_with(inner, has) for inner in _models_in(shape))
    )


def _models_in(shape: AvroType) -> tuple[type[Model], ...]:
    if isinstance(shape, AvroRecord):
        return (shape.model,)
    if isinstance(shape, TaggedUnion):
        return shape.members
    if isinstance(shape, AvroEdges):
        return (ColumnLineage,)
    if isinstance(shape, AvroArray):
        return _models_in(shape.items)
    return tuple(m for option in shape.options for m in _models_in(option)) if isinstance(shape, AvroUnion) else ()


@cache
def union_fields_of(flat: TaggedUnion) -> dict[str, AvroType]:
    """The fields of all members in one record: the discriminator, then the others, nullable."""
    fields: dict[str, AvroType] = {flat.discriminator: AvroScalar("string")}
    for member in flat.members:
        for name, shape in fields_of(member).items():
            if name == flat.discriminator:
                continue
            field = nullable(shape)
            if fields.setdefault(name, field) != field:
                raise TypeError(f"{flat.name}: {member.__name__}.{name} isn't what it is in another member")
    return fields


def nullable(shape: AvroType) -> AvroUnion:
    """The same, or null."""
    return (
        AvroUnion(shape.options, nullable=True) if isinstance(shape, AvroUnion) else AvroUnion((shape,), nullable=True)
    )


def avro_type_of(field: FieldInfo) -> AvroType:
    """The shape of a field of a model."""
    return _avro_type(field.annotation, tuple(field.metadata), field.discriminator)


def _avro_type(annotation: Any, metadata: tuple[Any, ...], discriminator: Any = None) -> AvroType:
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        field = FieldInfo.from_annotation(annotation)
        return _avro_type(field.annotation, tuple(field.metadata) + metadata, field.discriminator)
    if origin in (Union, UnionType):
        return _union(arguments, str(discriminator) if discriminator else None)
    if origin is tuple:
        return AvroEdges() if arguments[0] is ColumnLineage else AvroArray(_avro_type(arguments[0], ()))
    if origin is Literal:
        return AvroScalar("int" if isinstance(arguments[0], int) else "string")
    return _named_type(annotation, metadata)


def _named_type(annotation: Any, metadata: tuple[Any, ...]) -> AvroType:
    if annotation is int:
        return AvroScalar("int" if any(isinstance(m, Le) and m.le == 2**31 - 1 for m in metadata) else "long")
    if annotation is bytes:
        return AvroFixed(next(m.max_length for m in metadata if isinstance(m, MaxLen)))
    if annotation in _PLAIN:
        return _PLAIN[annotation]
    if annotation in _MAPS:
        return _MAPS[annotation]
    if isinstance(annotation, type) and issubclass(annotation, EventEnum):
        return AvroEnum(annotation)
    if isinstance(annotation, type) and issubclass(annotation, Model):
        return AvroRecord(annotation)
    raise TypeError(f"{annotation!r} has no Avro form: see headwater.events.avro.types")


def _union(arguments: tuple[Any, ...], discriminator: str | None) -> AvroType:
    options = tuple(a for a in arguments if a is not NoneType)
    if discriminator is not None:
        return TaggedUnion("TableChange", discriminator, options)
    shapes = [_avro_type(option, ()) for option in options]
    flat = tuple(s for shape in shapes for s in (shape.options if isinstance(shape, AvroUnion) else (shape,)))
    return AvroUnion(flat, nullable=NoneType in arguments)
