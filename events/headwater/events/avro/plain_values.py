"""What compiled readers call: they make models without checking them again, and read numbers of several bytes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from pydantic_core import PydanticUndefined

from headwater.events.avro.types import TaggedUnion, fields_of
from headwater.events.base import Model
from headwater.events.column_lineage import ColumnEdges, ColumnLineage, unpack_edges

_put: Final = object.__setattr__
_LONGEST: Final = 63
"""Bits before the last byte of a varint of 64 bits."""


class NotPlainError(ValueError):
    """These bytes are for the codec."""


def maker_of(model: type[Model]) -> Callable[[dict[str, Any]], Any]:
    """Return a function that makes a model of all its fields, which are right already."""
    written = set(fields_of(model)) & set(model.model_fields)
    return lambda content: _make(model, content, written)


def _make(model: type[Model], content: dict[str, Any], written: set[str]) -> Any:
    made = model.__new__(model)
    _put(made, "__dict__", content)
    _put(made, "__pydantic_fields_set__", written)
    _put(made, "__pydantic_extra__", None)
    _put(made, "__pydantic_private__", None)
    return made


def tagged_maker(union: TaggedUnion) -> Callable[[str, dict[str, Any]], Any]:
    """Return a function that makes the model that a word stands for, of the fields that aren't null."""
    tag = union.discriminator
    models = {model.model_fields[tag].default: model for model in union.members}
    defaults = {
        word: {name: field.get_default(call_default_factory=True) for name, field in model.model_fields.items()}
        for word, model in models.items()
    }

    def make(word: str, fields: dict[str, Any]) -> Any:
        content, given = defaults[word], {name: value for name, value in fields.items() if value is not None}
        if not given.keys() <= content.keys():
            raise NotPlainError
        whole = {**content, **given}
        if PydanticUndefined in whole.values():
            raise NotPlainError
        return _make(models[word], whole, {tag, *given})

    return make


def edges_of(packed: ColumnEdges) -> tuple[ColumnLineage, ...]:
    content = {**packed.__dict__, "groups": [group.__dict__ for group in packed.groups]}
    return tuple(map(maker_of(ColumnLineage), unpack_edges(content)))


def read_long(data: bytes, at: int, number: int, shift: int = 14) -> tuple[int, int]:
    """Return the bits of a number, and where the next value begins. `number` is what the bytes before said."""
    while True:
        byte = data[at]
        at += 1
        number |= (byte & 0x7F) << shift
        if byte <= 0x7F:
            break
        shift += 7
    if shift >= _LONGEST and (shift > _LONGEST or byte > 1):
        raise NotPlainError
    return number, at


def read_size(data: bytes, at: int, byte: int) -> tuple[int, int]:
    number, at = read_long(data, at, byte & 0x7F, 7) if byte > 0x7F else (byte, at)
    if number & 1:
        raise NotPlainError
    return number >> 1, at


def refuse() -> None:
    raise NotPlainError
