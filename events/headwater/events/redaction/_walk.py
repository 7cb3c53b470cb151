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
    fields, key_field = _fields(type(model))
    content = model.__dict__
    key = content[key_field] if key_field else None
    changed: dict[str, Any] = {}
    for name, is_identity, is_value in fields:
        before = content[name]
        if before is None:
            continue
        if is_value and isinstance(key, str) and isinstance(before, str):
            after: Any = redact_entry(key, before)
        else:
            after = redact_identity(before) if is_identity else redact(before)
        if after is not before:
            changed[name] = after
    return model.model_copy(update=changed) if changed else model


@cache
def _fields(kind: type[BaseModel]) -> tuple[tuple[tuple[str, bool, bool], ...], str | None]:
    """The fields of a kind of model, whether each is an identity or an entry's value; which is the key if such a model
    is an entry."""
    identities = marked(kind, Identity)
    fields = tuple((name, name in identities, name in _VALUES) for name in kind.model_fields)
    key = next((name for name in _NAMES if name in kind.model_fields), None)
    return fields, key if _VALUES.intersection(kind.model_fields) else None
