"""Between models and the plain dicts that fastavro writes and reads, compiled once per type.

fastavro does most of the work natively; what is left to convert is little: UUIDs, words, tuples, the flat unions, and a
name beside each value of a union, which spares fastavro trying every branch.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, Final, TypeAlias
from uuid import UUID

from headwater.events.avro.schema import NAMESPACE
from headwater.events.avro.types import (
    FORMAT,
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
    name_field_of,
    union_fields_of,
)
from headwater.events.base import Model
from headwater.events.changes import OtherChange
from headwater.events.column_lineage import pack_edges, unpack_edges
from headwater.events.scalars import Format

Convert: TypeAlias = Callable[[Any], Any]
"""None in its place means: nothing to convert."""


@cache
def writer_of(model: type[Model]) -> Convert:
    """From a model to the dict that fastavro writes."""
    return _fields_writer(fields_of(model))


@cache
def reader_of(model: type[Model]) -> Convert | None:
    """From the dict that fastavro read to one that the model validates; the dict is changed in place."""
    return _fields_reader(fields_of(model))


def _fields_writer(fields: dict[str, AvroType]) -> Convert:
    convert = [(name, c) for name, shape in fields.items() if (c := _writer(shape)) is not None]
    formats = tuple(name for name, shape in fields.items() if shape == FORMAT)
    names = tuple(name for name in fields if name not in map(name_field_of, formats))

    def write(value: Any) -> dict[str, Any]:
        content = value.__dict__
        record = {name: content[name] for name in names}
        for name, converted in convert:
            record[name] = converted(record[name])
        for name in formats:
            listed = content[name].is_listed
            record[name_field_of(name)] = None if listed else record[name]
            record[name] = record[name] if listed else Format.OTHER.value
        return record

    return write


def _writer(shape: AvroType) -> Convert | None:
    if isinstance(shape, AvroRecord):
        return writer_of(shape.model)
    if isinstance(shape, AvroArray):
        return _array_writer(shape)
    if isinstance(shape, AvroEdges):
        return pack_edges
    if isinstance(shape, TaggedUnion):
        return _flat_writer(shape)
    return _choice_writer(shape) if isinstance(shape, AvroUnion) else _LEAVES[type(shape)]


def _uuid_bytes(value: UUID) -> bytes:
    return value.bytes


def _word_value(value: Any) -> str:
    word: str = value._value_  # `value` is a property that costs ten times as much
    return word


_LEAVES: Final[dict[type, Convert | None]] = {
    AvroScalar: None,
    AvroFixed: None,
    AvroTimestamp: None,
    AvroUuid: _uuid_bytes,
    AvroEnum: _word_value,
    AvroMap: dict,
}


def _array_writer(shape: AvroArray) -> Convert:
    convert = _writer(shape.items)
    return list if convert is None else lambda values: [convert(value) for value in values]


def _flat_writer(shape: TaggedUnion) -> Convert:
    names = tuple(union_fields_of(shape))
    convert = {name: c for name, field in union_fields_of(shape).items() if (c := _writer(field)) is not None}

    def write(value: Any) -> dict[str, Any]:
        content = value.__dict__
        return {
            name: convert[name](content[name]) if name in convert and name in content else content.get(name)
            for name in names
        }

    return write


def _choice_writer(shape: AvroUnion) -> Convert | None:
    option, *others = shape.options
    if others:
        return _generation_writer(shape)
    convert, name = _writer(option), _branch_name(option)
    if name is not None:
        inner = convert if convert is not None else _unchanged_value
        return lambda value: None if value is None else (name, inner(value))
    return None if convert is None else lambda value: None if value is None else convert(value)


def _generation_writer(shape: AvroUnion) -> Convert:
    if shape.options != (AvroUuid(), AvroScalar("string")):
        raise TypeError(f"{shape} is a choice that can't be distinguished on the wire")
    branch = f"{NAMESPACE}.Uuid"
    return lambda value: (branch, value.bytes) if isinstance(value, UUID) else value


def _branch_name(shape: AvroType) -> str | None:
    """fastavro gets the branch only where trying them costs something."""
    if isinstance(shape, AvroRecord):
        return f"{NAMESPACE}.{shape.model.__name__}"
    return f"{NAMESPACE}.Uuid" if isinstance(shape, AvroUuid) else None


def _unchanged_value(value: Any) -> Any:
    return value


def _fields_reader(fields: dict[str, AvroType]) -> Convert | None:
    convert = [(name, c) for name, shape in fields.items() if (c := _reader(shape)) is not None]

    formats = tuple(name for name, shape in fields.items() if shape == FORMAT)

    def read(record: dict[str, Any]) -> dict[str, Any]:
        for name, converted in convert:
            value = record[name]
            if value is not None:
                record[name] = converted(value)
        for name in formats:
            word = record.pop(name_field_of(name))
            if word is not None:
                record[name] = word
        return record

    return read if convert or formats else None


def _reader(shape: AvroType) -> Convert | None:
    """pydantic takes the 16 bytes of a UUID as they are, and lists for tuples: flat unions and edges are left."""
    if isinstance(shape, AvroRecord):
        return reader_of(shape.model)
    if isinstance(shape, AvroArray):
        return _array_reader(shape)
    if isinstance(shape, AvroEdges):
        return unpack_edges
    if isinstance(shape, TaggedUnion):
        return _flat_reader(shape)
    return _reader(shape.options[0]) if isinstance(shape, AvroUnion) else None


def _array_reader(shape: AvroArray) -> Convert | None:
    convert = _reader(shape.items)
    return None if convert is None else lambda values: [convert(value) for value in values]


def _flat_reader(shape: TaggedUnion) -> Convert:
    """A member that only a newer version knows becomes the one that stands for all others."""
    read = _fields_reader(union_fields_of(shape)) or _unchanged_value
    discriminator, known = shape.discriminator, {_word(member, shape.discriminator) for member in shape.members}

    def convert(record: dict[str, Any]) -> dict[str, Any]:
        word = record[discriminator]
        if word not in known:
            return {discriminator: _word(OtherChange, discriminator), "what": word}
        return {name: value for name, value in read(record).items() if value is not None}

    return convert


def _word(member: type[Model], discriminator: str) -> str:
    return str(member.model_fields[discriminator].default)
