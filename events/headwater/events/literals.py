"""Taking the literals out of the texts of plans and statements in an event: they are data, not lineage."""

from __future__ import annotations

from functools import cache
from typing import Any, TypeVar

from headwater.events.avro.shapes import Array, Choice, Flat, Record, Shape, fields_of
from headwater.events.base import Model
from headwater.events.marks import PlanText, marked
from headwater.events.redaction import mask_literals

M = TypeVar("M", bound=Model)


def without_literals(model: M) -> M:
    """The same with each literal in texts of plans replaced by `?`; the very same object when there was none."""
    texts, nested = marked(type(model), PlanText), _nested(type(model))
    content = model.__dict__
    update: dict[str, Any] = {}
    for name in texts:
        if content[name] is not None and (masked := mask_literals(content[name])) != content[name]:
            update[name] = masked
    for name in nested:
        if content[name] and (masked := _within(content[name])) is not content[name]:
            update[name] = masked
    return model.model_copy(update=update) if update else model


def _within(value: Any) -> Any:
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
    return bool(marked(model, PlanText) or _nested(model))


def _models(shape: Shape) -> tuple[type[Model], ...]:
    if isinstance(shape, Record):
        return (shape.model,)
    if isinstance(shape, Flat):
        return shape.members
    if isinstance(shape, Array):
        return _models(shape.items)
    return tuple(m for option in shape.options for m in _models(option)) if isinstance(shape, Choice) else ()
