"""The JSON form of an event, as docs/event-json.md promises it: one object in one line of ASCII.

How a value looks follows from the type of its field, never from the value: a field of 64 bits is a text of digits even
where it holds 7, because JavaScript, and much that reads JSON as it does, would round a snapshot's id without a word.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import datetime
from enum import Enum
from functools import cache
from typing import Any, Final, get_args
from uuid import UUID

from annotated_types import Le
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from headwater.events.base import CountMap

_EXACT: Final = 2**53
"""The integers below it are exact as a double."""


def json_line(content: Mapping[str, Any]) -> str:
    """The object as one line without its end. Control characters and all that isn't ASCII are escaped, so it is one
    line whatever a reader takes for the end of one, and harmless on a terminal."""
    return json.dumps(content, ensure_ascii=True, separators=(",", ":"), allow_nan=False)


def event_object(model: BaseModel) -> dict[str, Any]:
    """All fields of an event, or of a model in it, null ones too, in the order of its model."""
    longs = _longs(type(model))
    return {name: _value(getattr(model, name), is_long=name in longs) for name in type(model).model_fields}


def time_text(moment: datetime) -> str:
    """Always in UTC and always with six digits behind the point, so that times sort as texts."""
    return f"{moment.replace(tzinfo=None).isoformat(timespec='microseconds')}Z"


def _value(value: Any, *, is_long: bool) -> Any:
    if isinstance(value, BaseModel):
        return event_object(value)
    if isinstance(value, Mapping):
        return {key: _value(each, is_long=isinstance(value, CountMap)) for key, each in value.items()}
    if isinstance(value, tuple):
        return [_value(each, is_long=is_long) for each in value]
    return _leaf(value, is_long=is_long)


def _leaf(value: Any, *, is_long: bool) -> Any:
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, datetime):
        return time_text(value)
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, UUID) or (is_long and value is not None):
        return str(value)
    return value


@cache
def _longs(model: type[BaseModel]) -> frozenset[str]:
    """The fields that hold integers beyond what a double holds."""
    model.model_rebuild()
    return frozenset(name for name, field in model.model_fields.items() if any(_wide_integers(field)))


def _wide_integers(field: FieldInfo) -> Iterator[bool]:
    if field.annotation is int:
        yield all(isinstance(mark.le, int) and mark.le >= _EXACT for mark in field.metadata if isinstance(mark, Le))
    for argument in get_args(field.annotation):
        if argument is not ... and not isinstance(argument, int | str):
            yield from _wide_integers(FieldInfo.from_annotation(argument))
