"""What the fields of the models are, in the few terms that Avro has: schema, codec and parts are derived from it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, Final, Literal, TypeAlias, Union, get_args, get_origin
from uuid import UUID

from annotated_types import Le, MaxLen
from pydantic.fields import FieldInfo

from headwater.events.base import Counts, Model, Texts
from headwater.events.envelope import Event
from headwater.events.scalars import Word


@dataclass(frozen=True)
class Scalar:
    """A value that fastavro takes and gives as it is."""

    avro: str


@dataclass(frozen=True)
class Fixed:
    size: int


@dataclass(frozen=True)
class Uuid:
    pass


@dataclass(frozen=True)
class Moment:
    pass


@dataclass(frozen=True)
class Words:
    type: type[Word]


@dataclass(frozen=True)
class Record:
    model: type[Model]


@dataclass(frozen=True)
class Flat:
    """A union of models in one record: the discriminator tells which, and what another one has is null."""

    name: str
    discriminator: str
    members: tuple[type[Model], ...]


@dataclass(frozen=True)
class Array:
    items: Shape


@dataclass(frozen=True)
class Map:
    values: Shape


@dataclass(frozen=True)
class Choice:
    """One of several, and null too if `nullable`."""

    options: tuple[Shape, ...]
    nullable: bool


Shape: TypeAlias = "Scalar | Fixed | Uuid | Moment | Words | Record | Flat | Array | Map | Choice"

_PLAIN: Final[dict[Any, Shape]] = {
    str: Scalar("string"),
    bool: Scalar("boolean"),
    float: Scalar("double"),
    UUID: Uuid(),
    datetime: Moment(),
}
_MAPS: Final[dict[Any, Shape]] = {Texts: Map(Scalar("string")), Counts: Map(Scalar("long"))}


@cache
def fields_of(model: type[Model]) -> dict[str, Shape]:
    """The shape of each field that goes over the wire, in order. `kind` is the name of the record itself."""
    fields = model.model_fields
    return {name: shape_of(field) for name, field in fields.items() if name != "kind" or not issubclass(model, Event)}


@cache
def flat_fields_of(flat: Flat) -> dict[str, Shape]:
    """The fields of all members in one record: the discriminator, then the others, nullable."""
    fields: dict[str, Shape] = {flat.discriminator: Scalar("string")}
    for member in flat.members:
        for name, shape in fields_of(member).items():
            if name == flat.discriminator:
                continue
            field = nullable(shape)
            if fields.setdefault(name, field) != field:
                raise TypeError(f"{flat.name}: {member.__name__}.{name} isn't what it is in another member")
    return fields


def nullable(shape: Shape) -> Choice:
    """The same, or null."""
    return Choice(shape.options, nullable=True) if isinstance(shape, Choice) else Choice((shape,), nullable=True)


def shape_of(field: FieldInfo) -> Shape:
    """The shape of a field of a model."""
    return _shape(field.annotation, tuple(field.metadata), field.discriminator)


def _shape(annotation: Any, metadata: tuple[Any, ...], discriminator: Any = None) -> Shape:
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        field = FieldInfo.from_annotation(annotation)
        return _shape(field.annotation, tuple(field.metadata) + metadata, field.discriminator)
    if origin in (Union, UnionType):
        return _union(arguments, str(discriminator) if discriminator else None)
    if origin is tuple:
        return Array(_shape(arguments[0], ()))
    if origin is Literal:
        return Scalar("int" if isinstance(arguments[0], int) else "string")
    return _named(annotation, metadata)


def _named(annotation: Any, metadata: tuple[Any, ...]) -> Shape:
    if annotation is int:
        return Scalar("int" if any(isinstance(m, Le) and m.le == 2**31 - 1 for m in metadata) else "long")
    if annotation is bytes:
        return Fixed(next(m.max_length for m in metadata if isinstance(m, MaxLen)))
    if annotation in _PLAIN:
        return _PLAIN[annotation]
    if annotation in _MAPS:
        return _MAPS[annotation]
    if isinstance(annotation, type) and issubclass(annotation, Word):
        return Words(annotation)
    if isinstance(annotation, type) and issubclass(annotation, Model):
        return Record(annotation)
    raise TypeError(f"{annotation!r} has no Avro form: see headwater.events.avro.shapes")


def _union(arguments: tuple[Any, ...], discriminator: str | None) -> Shape:
    options = tuple(a for a in arguments if a is not NoneType)
    if discriminator is not None:
        return Flat("TableChange", discriminator, options)
    shapes = [_shape(option, ()) for option in options]
    flat = tuple(s for shape in shapes for s in (shape.options if isinstance(shape, Choice) else (shape,)))
    return Choice(flat, nullable=NoneType in arguments)
