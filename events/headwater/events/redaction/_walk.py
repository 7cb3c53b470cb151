"""The way through a tree of frozen models, and through the JSON of Spark's types in them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import cache
from typing import Any, Final, NamedTuple, TypeVar

from pydantic import BaseModel

from headwater.events.marks import Identity, OptionName, TypeText, marked
from headwater.events.redaction._names import word_set

AnyModel = TypeVar("AnyModel", bound=BaseModel)

_OPTIONS: Final = ("key", "name", "property", "option")
_VALUES: Final = frozenset(["value", "old_value", "new_value", "previous_value", "old", "new"])
_SIMPLE_TYPE: Final = re.compile(r'"?[a-z_]+(?:\(\d+(?:,\s?-?\d+)?\))?"?')
_KEYS_OF_TYPES: Final = word_set("""
    type fields name nullable metadata elementType containsNull keyType valueType valueContainsNull class
    pyClass sqlType serializedClass
""")


class Ways(NamedTuple):
    """What is done with a field, by what it is."""

    text: Callable[[Any], Any]
    identity: Callable[[Any], Any]
    name: Callable[[str], str]
    """The name of an option."""
    value: Callable[[str, str], str]
    """The value of an option, with its name."""


def walk_model(model: AnyModel, ways: Ways) -> AnyModel:
    """A copy with its fields redacted, not validated anew; the same object when no field changed.

    A model that is itself an entry (`SetProperty(key=…, value=…)`) is judged like an entry of a map.
    """
    fields, name_field = _fields(type(model))
    content = model.__dict__
    option = content[name_field] if name_field else None
    changed: dict[str, Any] = {}
    for field, kind in fields:
        before = content[field]
        if before is None:
            continue
        if kind is Identity:
            after = ways.identity(before)
        elif kind is OptionName:
            after = ways.name(before)
        elif kind is TypeText:
            after = _redact_type(before, ways)
        elif isinstance(option, str) and field in _VALUES and isinstance(before, str):
            after = ways.value(option, before)
        else:
            after = ways.text(before)
        if after is not before:
            changed[field] = after
    return model.model_copy(update=changed) if changed else model


@cache
def _fields(model: type[BaseModel]) -> tuple[tuple[tuple[str, type | None], ...], str | None]:
    """The fields of a kind of model with what they are marked as, and the field that has an option's name."""
    marks = {name: mark for mark in (Identity, OptionName, TypeText) for name in marked(model, mark)}
    option = next((name for name in _OPTIONS if name in model.model_fields), None)
    if option is not None and _VALUES.intersection(model.model_fields):
        marks.setdefault(option, OptionName)
    return tuple((name, marks.get(name)) for name in model.model_fields), option


def _redact_type(text: str, ways: Ways) -> str:
    """A type keeps the names in it, which are columns; comments and properties of nested fields are in its metadata."""
    if _SIMPLE_TYPE.fullmatch(text):
        return text
    try:
        content = json.loads(text)
        redacted = _type_without_secrets(content, ways)
    except (ValueError, RecursionError):  # no type
        return str(ways.text(text))
    return text if redacted == content else json.dumps(redacted, separators=(",", ":"), ensure_ascii=False)


def _type_without_secrets(content: Any, ways: Ways) -> Any:
    if isinstance(content, list):
        return [_type_without_secrets(each, ways) for each in content]
    if not isinstance(content, dict):
        return ways.identity(content)
    if not _KEYS_OF_TYPES.issuperset(content):
        raise ValueError("no type of Spark's has such keys")
    return {
        key: _metadata_without_secrets(each, ways) if key == "metadata" else _type_without_secrets(each, ways)
        for key, each in content.items()
    }


def _metadata_without_secrets(content: Any, ways: Ways) -> Any:
    """A comment is a free text, all else options."""
    if not isinstance(content, dict):
        return ways.text(content)
    return {
        key: ways.text(each) if key == "comment" or not isinstance(each, str) else ways.value(key, each)
        for key, each in content.items()
    }
