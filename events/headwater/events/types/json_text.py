"""JSON that loses nothing: numbers stay as they were written, no key may stand twice, depth and size are bounded.

The limits hold for every text of a type; what is wrong with a text is an error that says where.
"""

from __future__ import annotations

import json
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import accumulate
from json.encoder import encode_basestring
from typing import Final, TypeAlias, Union

from headwater.errors import TerminalError

MAX_NESTING: Final = 100
"""How many arrays, maps and structs may stand in each other. Spark's own parser gives out somewhere above this."""
MAX_TEXT: Final = 4 * 1024 * 1024
"""How many characters the text of a type or schema may have: some ten thousand columns."""
MAX_JSON_NESTING: Final = 3 * MAX_NESTING + 100
"""A struct takes three levels of JSON; the rest is room for metadata."""


class TypeTextError(TerminalError):
    """A text isn't the type or schema it should be; the message says what is wrong and where."""


@contextmanager
def bounded_stack() -> Generator[None, None, None]:
    """Types nest only so deep, but a caller may have used up most of the stack."""
    try:
        yield
    except RecursionError:
        raise TypeTextError("nested too deeply for the stack that is left here") from None


def excerpt(text: str, around: int = 0, width: int = 60) -> str:
    """The neighbourhood of a place in a text, short enough for a message."""
    start = max(0, around - width // 2)
    piece = text[start : start + width]
    return f"{'…' if start else ''}{piece}{'…' if start + width < len(text) else ''}"


def check_size(text: str) -> None:
    if len(text) > MAX_TEXT:
        raise TypeTextError(f"the text has {len(text)} characters; at most {MAX_TEXT} are read")


def check_unicode(text: str) -> None:
    """Half a surrogate pair has no UTF-8, so that nothing that holds one could be reported to anybody."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise TypeTextError(f"half a surrogate pair at character {error.start}: no such text can be stored") from None


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
