"""Taking the literals out of the texts of plans, statements and errors in an event: they are data, not lineage."""

from __future__ import annotations

from typing import Any, TypeVar

from headwater.events.avro.types import fields_with
from headwater.events.base import Model, StringMap
from headwater.events.marks import ErrorText, SqlText, marked
from headwater.events.redaction import mask_literals, mask_message, mask_parameter

M = TypeVar("M", bound=Model)


def without_literals(model: M) -> M:
    """The same with `?` for each literal in texts of plans, and for each value in what an error says; the very same
    object when there was none."""
    kind = type(model)
    texts, errors, nested = marked(kind, SqlText), marked(kind, ErrorText), fields_with(kind, _has_texts)
    content = model.__dict__
    update: dict[str, Any] = {}
    for name in texts:
        if content[name] is not None and (masked := mask_literals(content[name])) != content[name]:
            update[name] = masked
    for name, error in errors.items():
        said = content[name]
        if said and (hidden := _mask_error(said, content[error.kind])) != said:
            update[name] = hidden
    for name in nested:
        if content[name] and (masked := _mask_within(content[name])) is not content[name]:
            update[name] = masked
    return model.model_copy(update=update) if update else model


def _mask_error(said: str | StringMap, kind: str) -> str | StringMap:
    if isinstance(said, str):
        return mask_message(said, kind)
    return StringMap({key: mask_parameter(key, value) for key, value in said.items()})


def _mask_within(value: Any) -> Any:
    if not isinstance(value, tuple):
        return without_literals(value)
    masked = tuple(without_literals(item) for item in value)
    return value if all(new is old for new, old in zip(masked, value, strict=True)) else masked


def _has_texts(model: type[Model]) -> bool:
    return bool(marked(model, SqlText) or marked(model, ErrorText))
