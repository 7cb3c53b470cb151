"""How many bytes a value takes on the wire, at most; and texts for people made shorter where that is too many."""

from __future__ import annotations

from datetime import datetime
from enum import Enum
from typing import Any, Final
from uuid import UUID

from headwater.events.base import FrozenMap, Model
from headwater.events.envelope import Event
from headwater.events.marks import Truncatable, marked

TEXT_CHARACTERS: Final = 4_096
_TAG: Final = 1
"""Which branch of a union it is, for most fields may be null."""
_BLOCK: Final = 7
"""The count before the elements of an array or map, and the zero behind them."""
_FLAT: Final = 48
"""A member of a flat union takes a byte for each field that it doesn't have, and its own name."""

_FIXED: Final = {datetime: 9, UUID: 16}


def estimated_size(value: Any) -> int:
    """Never less than the bytes that the codec writes for it, and seldom much more."""
    if value is None:
        return 1
    if isinstance(value, str):
        size = len(value.encode("utf-8", "surrogatepass"))
        return _TAG + _varint(size) + size
    if isinstance(value, bool | Enum):
        return _TAG + 1
    if isinstance(value, int):
        return _TAG + _varint(value)
    return _TAG + (_FIXED.get(type(value)) or _inside(value))


def _varint(value: int) -> int:
    return 1 + value.bit_length() // 7  # a bit for the sign


def _inside(value: Any) -> int:
    if isinstance(value, bytes):
        return _varint(len(value)) + len(value)
    if isinstance(value, Model):
        extra = _FLAT if "change" in value.__dict__ else 10 if isinstance(value, Event) else 0  # the frame
        return extra + sum(map(estimated_size, value.__dict__.values()))
    if isinstance(value, FrozenMap):
        return _BLOCK + sum(estimated_size(key) + estimated_size(item) for key, item in value.items())
    return _BLOCK + sum(map(estimated_size, value)) if value else 1


def truncated(model: Any, characters: int = TEXT_CHARACTERS) -> Any:
    """The same with free texts no longer than that; what was cut off is counted."""
    update = {
        name: new
        for name, old in model.__dict__.items()
        if (new := _shorten_value(model, name, old, characters)) != old
    }
    return model.model_copy(update=update) if update else model


def _shorten_value(model: Model, name: str, value: Any, characters: int) -> Any:
    if isinstance(value, str):
        return _cut(value, characters) if name in marked(type(model), Truncatable) else value
    if isinstance(value, Model):
        return truncated(value, characters)
    if isinstance(value, tuple):
        return tuple(truncated(item, characters) if isinstance(item, Model) else item for item in value)
    return value


def _cut(text: str, characters: int) -> str:
    if len(text) <= characters:
        return text
    return f"{text[:characters]}… [{len(text) - characters} more characters]"
