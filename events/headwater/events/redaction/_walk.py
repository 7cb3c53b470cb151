"""The way through a tree of frozen models."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, Final, TypeVar

from pydantic import BaseModel

from headwater.events.marks import Identity, marked

AnyModel = TypeVar("AnyModel", bound=BaseModel)

_NAMES: Final = ("key", "name", "property", "option")
_VALUES: Final = frozenset(["value", "old_value", "new_value", "previous_value", "old", "new"])


def walk_model(
    model: AnyModel,
    redact: Callable[[Any], Any],
    redact_identity: Callable[[Any], Any],
    redact_entry: Callable[[str, str], str],
) -> AnyModel:
    """A copy with its fields redacted, not validated anew; the same object when no field changed.

    A field marked as an identity goes to `redact_identity`. A model that is itself an entry (`SetProperty(key=…,
    value=…)`) is judged like an entry of a map.
    """
    names, identities, key_field = _fields(type(model))
    key = getattr(model, key_field) if key_field else None
    changed: dict[str, Any] = {}
    for name in names:
        before = getattr(model, name)
        if isinstance(key, str) and name in _VALUES and isinstance(before, str):
            after: Any = redact_entry(key, before)
        else:
            after = redact_identity(before) if name in identities else redact(before)
        if after is not before:
            changed[name] = after
    return model.model_copy(update=changed) if changed else model


@cache
def _fields(kind: type[BaseModel]) -> tuple[tuple[str, ...], frozenset[str], str | None]:
    """The fields of a kind of model, which are identities, and which is the key if such a model is an entry."""
    names = tuple(kind.model_fields)
    key = next((name for name in _NAMES if name in names), None) if _VALUES.intersection(names) else None
    return names, frozenset(marked(kind, Identity)), key
