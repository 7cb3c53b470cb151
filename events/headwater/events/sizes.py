"""How many bytes a value takes on the wire, at most; and texts for people made shorter where that is too many."""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection
from datetime import datetime
from enum import Enum
from typing import Any, Final
from uuid import UUID

from headwater.events.avro.types import fields_with
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
_FRAME: Final = 10
"""Before an event."""


def estimated_size(value: Any) -> int:
    """Never less than the bytes that the codec writes for it, and seldom much more."""
    kind = type(value)
    measure = _MEASURES.get(kind)
    if measure is None:
        measure = _MEASURES[kind] = _measure_of(kind)
    return measure(value)


def is_larger(event: Event, limit: int) -> bool:
    """Whether the estimated size is above the limit: of a large event only as much is measured as shows that."""
    found = _FRAME
    for value in event.__dict__.values():
        for item in value if type(value) is tuple else (value,):
            found += estimated_size(item)
            if found > limit:
                return True
    return estimated_size(event) > limit


def _measure_of(kind: type) -> Callable[[Any], int]:
    if issubclass(kind, str) and not issubclass(kind, Enum):
        return _of_text
    if issubclass(kind, bool | Enum):
        return _of_word
    if issubclass(kind, int):
        return _of_number
    if issubclass(kind, bytes):
        return _of_bytes
    if issubclass(kind, Model):
        return _of_change if "change" in kind.model_fields else _of_event if issubclass(kind, Event) else _of_model
    return _of_map if issubclass(kind, FrozenMap) else _of_elements


def _of_text(text: str) -> int:
    size = len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
    return _TAG + _varint(size) + size


def _of_word(_: Any) -> int:
    return _TAG + 1


def _of_number(number: int) -> int:
    return _TAG + _varint(number)


def _of_bytes(value: bytes) -> int:
    return _TAG + _varint(len(value)) + len(value)


def _of_model(model: Model) -> int:
    return _TAG + sum(map(estimated_size, model.__dict__.values()))


def _of_change(model: Model) -> int:
    return _FLAT + _of_model(model)


def _of_event(event: Event) -> int:
    return _FRAME + _of_model(event)


def _of_map(items: FrozenMap[Any]) -> int:
    return _TAG + _BLOCK + sum(estimated_size(key) + estimated_size(item) for key, item in items.items())


def _of_elements(elements: Collection[Any]) -> int:
    return _TAG + _BLOCK + sum(map(estimated_size, elements)) if elements else _TAG + 1


def _varint(value: int) -> int:
    return 1 + value.bit_length() // 7  # a bit for the sign


_MEASURES: Final[dict[type, Callable[[Any], int]]] = {
    type(None): lambda _: 1,
    datetime: lambda _: _TAG + 9,
    UUID: lambda _: _TAG + 16,
}
"""By the type of a value, as it was met: an event has a hundred thousand values, of a dozen types."""


def truncated(model: Any, characters: int = TEXT_CHARACTERS) -> Any:
    """The same with free texts no longer than that; what was cut off is counted."""
    kind: type[Model] = type(model)
    content = model.__dict__
    update: dict[str, Any] = {}
    for name in marked(kind, Truncatable):
        if content[name] is not None and len(content[name]) > characters:
            update[name] = _cut(content[name], characters)
    for name in fields_with(kind, _has_free_texts):
        if content[name] and (cut := _truncated_within(content[name], characters)) is not content[name]:
            update[name] = cut
    return model.model_copy(update=update) if update else model


def _truncated_within(value: Any, characters: int) -> Any:
    if not isinstance(value, tuple):
        return truncated(value, characters)
    cut = tuple([truncated(item, characters) for item in value])
    return value if all(map(operator.is_, cut, value)) else cut


def _has_free_texts(model: type[Model]) -> bool:
    return bool(marked(model, Truncatable))


def _cut(text: str, characters: int) -> str:
    return f"{text[:characters]}… [{len(text) - characters} more characters]"
