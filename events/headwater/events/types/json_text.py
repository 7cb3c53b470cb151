"""JSON that loses nothing: numbers stay as they were written, no key may stand twice, depth and size are bounded."""

from __future__ import annotations

import json
from dataclasses import dataclass
from itertools import accumulate
from json.encoder import encode_basestring
from typing import Final, TypeAlias, Union

from headwater.events.types.errors import (
    MAX_JSON_NESTING,
    TypeTextError,
    bounded_stack,
    check_size,
    check_unicode,
    excerpt,
)


@dataclass(frozen=True, slots=True)
class Number:
    """A number as it was written: 1.50 isn't 1.5, and no digits are lost."""

    text: str


Json: TypeAlias = Union["dict[str, Json]", "list[Json]", str, Number, bool, None]

_STEP: Final = {"[": 1, "{": 1, "]": -1, "}": -1}


def loads(text: str) -> Json:
    check_size(text)
    check_unicode(text)
    _check_nesting(text)
    try:
        with bounded_stack():
            value: Json = _DECODER.decode(text)
    except json.JSONDecodeError as error:
        raise TypeTextError(f"not JSON: {error.msg} at character {error.pos}: {excerpt(text, error.pos)!r}") from None
    if "\\u" in text:
        check_unicode(dumps(value))
    return value


def dumps(value: Json) -> str:
    """The compact form, with the keys in their order."""
    if isinstance(value, str):
        return encode_basestring(value)
    if isinstance(value, Number):
        return value.text
    if isinstance(value, dict):
        return "{" + ",".join([f"{encode_basestring(key)}:{dumps(item)}" for key, item in value.items()]) + "}"
    if isinstance(value, list):
        return "[" + ",".join([dumps(item) for item in value]) + "]"
    return "null" if value is None else "true" if value else "false"


def name_of(value: Json) -> str:
    """What a value is, for messages."""
    if isinstance(value, bool):
        return "a boolean"
    names: dict[type, str] = {dict: "an object", list: "a list", str: "a string", Number: "a number"}
    return names.get(type(value), "null")


def _check_nesting(text: str) -> None:
    """Before anything recursive sees the text. Every other piece between unescaped quotes is outside of strings."""
    if text.count("[") + text.count("{") <= MAX_JSON_NESTING:
        return
    outside = "".join(text.replace("\\\\", "").replace('\\"', "").split('"')[::2])
    depth = max(accumulate(_STEP.get(character, 0) for character in outside), default=0)
    if depth > MAX_JSON_NESTING:
        raise TypeTextError(f"JSON nested {depth} levels deep; at most {MAX_JSON_NESTING} are read")


def _unique(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    value = dict(pairs)
    if len(value) != len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise TypeTextError(f"the key {excerpt(twice)!r} stands twice in one object")
    return value


_DECODER: Final = json.JSONDecoder(
    parse_int=Number, parse_float=Number, parse_constant=Number, object_pairs_hook=_unique
)
