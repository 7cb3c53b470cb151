"""Taking the literals out of the texts of plans, statements and errors in an event: they are data, not lineage."""

from __future__ import annotations

from functools import cache
from typing import Any, TypeVar

from headwater.events.avro.types import AvroArray, AvroRecord, AvroType, AvroUnion, TaggedUnion, fields_of
from headwater.events.base import Model
from headwater.events.marks import ErrorText, SqlText, marked
from headwater.events.redaction import mask_literals, mask_message

M = TypeVar("M", bound=Model)


def without_literals(model: M) -> M:
    """The same with `?` for each literal in texts of plans, and for each value in what an error says; the very same
    object when there was none."""
    texts, errors, nested = marked(type(model), SqlText), marked(type(model), ErrorText), _nested(type(model))
    content = model.__dict__
    update: dict[str, Any] = {}
    for name in texts:
        if content[name] is not None and (masked := mask_literals(content[name])) != content[name]:
            update[name] = masked
    for name, error in errors.items():
        if content[name] and (masked := mask_message(content[name], kind=content[error.kind])) != content[name]:
            update[name] = masked
    for name in nested:
        if content[name] and (masked := _mask_within(content[name])) is not content[name]:
            update[name] = masked
    return model.model_copy(update=update) if update else model


def _mask_within(value: Any) -> Any:
    if not isinstance(value, tuple):
        return without_literals(value)
    masked = tuple(without_literals(item) for item in value)
    return value if all(new is old for new, old in zip(masked, value, strict=True)) else masked


@cache
def _nested(model: type[Model]) -> frozenset[str]:
    """The fields of a model whose own models have such texts."""
    return frozenset(
        name for name, shape in fields_of(model).items() if any(_has_texts(inner) for inner in _models(shape))
    )


@cache
def _has_texts(model: type[Model]) -> bool:
    return bool(marked(model, SqlText) or marked(model, ErrorText) or _nested(model))


def _models(shape: AvroType) -> tuple[type[Model], ...]:
    if isinstance(shape, AvroRecord):
        return (shape.model,)
    if isinstance(shape, TaggedUnion):
        return shape.members
    if isinstance(shape, AvroArray):
        return _models(shape.items)
    return tuple(m for option in shape.options for m in _models(option)) if isinstance(shape, AvroUnion) else ()
