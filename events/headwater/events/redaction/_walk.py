"""The way through a tree of frozen models."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar

from pydantic import BaseModel

AnyModel = TypeVar("AnyModel", bound=BaseModel)

_NAMES: Final = ("key", "name", "property", "option")
_VALUES: Final = frozenset(["value", "old_value", "new_value", "previous_value", "old", "new"])


def walk_model(model: AnyModel, redact: Callable[[Any], Any], redact_entry: Callable[[str, str], str]) -> AnyModel:
    """A copy with its fields redacted, not validated anew; the same object when no field changed.

    A model that is itself an entry (`SetProperty(key=…, value=…)`) is judged like an entry of a map.
    """
    key = _key_of(model)
    changed: dict[str, Any] = {}
    for name in type(model).model_fields:
        before = getattr(model, name)
        is_entry = key is not None and name in _VALUES and isinstance(before, str)
        after = redact_entry(key or "", before) if is_entry else redact(before)
        if after is not before and after != before:
            changed[name] = after
    return model.model_copy(update=changed) if changed else model


def _key_of(model: BaseModel) -> str | None:
    fields = type(model).model_fields
    if not any(name in _VALUES for name in fields):
        return None
    key = next((getattr(model, name) for name in _NAMES if name in fields), None)
    return key if isinstance(key, str) else None
