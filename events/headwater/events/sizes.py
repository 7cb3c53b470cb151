"""How many bytes a value takes on the wire, at most; and texts for people made shorter where that is too many."""

from __future__ import annotations

from datetime import datetime
from enum import Enum
from functools import cache
from typing import Annotated, Any, Final, get_args, get_origin
from uuid import UUID

from headwater.events.base import FrozenMap, Model, Texts
from headwater.events.envelope import Event
from headwater.events.marks import Shorten

TEXT_CHARACTERS: Final = 4_096
_LENGTH: Final = 6
_FLAT: Final = 48
"""A member of a flat union takes a byte for each field that it doesn't have, and its own name."""
_FRAME: Final = 16


def weight(value: Any) -> int:
    """Never less than the bytes that the codec writes for it, and seldom much more."""
    if value is None or isinstance(value, bool | Enum):
        return 2
    if isinstance(value, str):
        return len(value.encode("utf-8", "surrogatepass")) + _LENGTH
    if isinstance(value, int | datetime):
        return 11
    if isinstance(value, UUID):
        return 17
    if isinstance(value, bytes):
        return len(value) + _LENGTH
    return _LENGTH + _inside(value)


def _inside(value: Any) -> int:
    if isinstance(value, Model):
        extra = _FLAT if "change" in value.__dict__ else _FRAME if isinstance(value, Event) else 0
        return extra + sum(map(weight, value.__dict__.values()))
    if isinstance(value, FrozenMap):
        return sum(weight(key) + weight(item) for key, item in value.items())
    return sum(map(weight, value))


def shortened(model: Any, characters: int = TEXT_CHARACTERS) -> Any:
    """The same with free texts and the values of maps no longer than that; what was cut off is counted."""
    update = {name: new for name, old in model.__dict__.items() if (new := _short(model, name, old, characters)) != old}
    return model.model_copy(update=update) if update else model


def _short(model: Model, name: str, value: Any, characters: int) -> Any:
    if isinstance(value, str):
        return _cut(value, characters) if name in _free_texts(type(model)) else value
    if isinstance(value, Texts):
        return Texts({key: _cut(text, characters) for key, text in value.items()})
    if isinstance(value, Model):
        return shortened(value, characters)
    if isinstance(value, tuple):
        return tuple(shortened(item, characters) if isinstance(item, Model) else item for item in value)
    return value


@cache
def _free_texts(model: type[Model]) -> frozenset[str]:
    """Fields of the type FreeText, optional or not."""
    return frozenset(
        name
        for name, field in model.model_fields.items()
        if Shorten() in field.metadata or any(_is_free(argument) for argument in get_args(field.annotation))
    )


def _is_free(annotation: Any) -> bool:
    return get_origin(annotation) is Annotated and Shorten() in get_args(annotation)


def _cut(text: str, characters: int) -> str:
    if len(text) <= characters:
        return text
    return f"{text[:characters]}… [{len(text) - characters} more characters]"
