"""The one class that takes secrets out, before an event exists."""

from __future__ import annotations

import json
import operator
import re
import warnings
from collections.abc import Callable, Mapping
from datetime import datetime
from enum import Enum
from functools import cache
from typing import Any, Final, TypeVar
from uuid import UUID

from pydantic import BaseModel

from headwater.errors import ConfigurationError
from headwater.events.base import StringMap
from headwater.events.marks import Identity, OptionName, TypeText, marked
from headwater.events.redaction._folding import lazy, word_set
from headwater.events.redaction._identities import without_credentials
from headwater.events.redaction._names import names_secret
from headwater.events.redaction._options import (
    hidden_value,
    is_assignment_of_secret,
    is_harmless,
    is_plain,
    squash_names,
)
from headwater.events.redaction._texts import READ, REDACTED, without_secrets

AnyModel = TypeVar("AnyModel", bound=BaseModel)
AnyValue = TypeVar("AnyValue")

_SPARK_DEFAULT: Final = "(?i)secret|password|token|access[.]?key"
_SHORT_NAME: Final = lazy(r"(?a)[\w./#-]{0,15}\Z")
_OPTION_NAME: Final = lazy(r"[^\s=:'\"`<>@/?&;,|(){}\[\]%\\]{1,256}\Z")
_LONGEST_NAME: Final = 256
_NESTED_SET: Final = lazy(r"(?s)(?:[^\\\[]|\\.|\[\^?\]?(?:[^\\\]\[]|\\.)*\])*\[\^?\]?(?:[^\\\]\[]|\\.)*\[")
_LEAVES: Final = frozenset([type(None), bool, int, float, bytes, datetime, UUID])
_NAMES_OF_OPTIONS: Final = ("key", "name", "property", "option")
_VALUES_OF_OPTIONS: Final = frozenset(["value", "old_value", "new_value", "previous_value", "old", "new"])
_SIMPLE_TYPE: Final = lazy(r'"?[a-z_]+(?:\(\d+(?:,\s?-?\d+)?\))?"?')
_KEYS_OF_TYPES: Final = word_set("""
    type fields name nullable elementType containsNull keyType valueType valueContainsNull class
    pyClass sqlType serializedClass
""")
_COMMENT: Final = "comment"
"""This option is a free text."""
_SHORT: Final = 256
_REMEMBERED: Final = 4096


class Redactor:
    """Takes secrets out of texts, options and whole events; in doubt it hides.

    `pattern` is the application's `spark.redaction.regex`. It is matched with the names of options, also of those
    inside texts; headwater's own rules hold beside it. Spark's default, where the application sets it, is matched with
    the names of options only. A pattern that only Java understands raises ConfigurationError. `keep` has names of
    options that are no secret, separated by commas. With a `hash_key` the mark of an option's value has a hash, by
    which another value is seen to be another one.
    """

    def __init__(self, pattern: str | None = None, *, keep: str = "", hash_key: bytes | None = None) -> None:
        self._pattern = None if pattern is None else _compile_pattern(pattern)
        self._custom = None if pattern in {None, _SPARK_DEFAULT} else self._pattern
        self._keep = squash_names(keep)
        self._hash_key = hash_key
        self._clean: set[str] = set()  # never one with a secret: a cache must not be the place where secrets live on

    def text(self, text: str) -> str:
        """The free text without what may be secret. Short texts without one are remembered, as most come again."""
        if text in self._clean or (self._custom is None and _SHORT_NAME.match(text) and not names_secret(text)):
            return text
        redacted = without_secrets(text, self._custom)
        if redacted != text:
            return redacted
        if len(text) <= _SHORT:
            if len(self._clean) >= _REMEMBERED:
                self._clean.clear()
            self._clean.add(text)
        return text

    def identity(self, text: str) -> str:
        """A name, a path or an id without its credentials: passwords in URLs, and tokens known by their shape.

        Nothing else goes, whatever words are in it, so that two names stay two.
        """
        return without_credentials(text)

    def value(self, key: str, value: str) -> str:
        """The value of an option, if its name is a harmless one or the value is plain; else the mark."""
        if not self._matches(key):
            if key == _COMMENT:
                return self.text(value)
            if is_harmless(key, self._keep):
                is_shown = self.identity(value) == value and not is_assignment_of_secret(value)
            else:
                is_shown = not names_secret(key) and is_plain(value)
            if is_shown:
                return value
        return hidden_value(key, value, self._hash_key)

    def is_secret(self, key: str) -> bool:
        """Whether the value of an option of this name is a secret."""
        return self._matches(key) or (names_secret(key) and not is_harmless(key, self._keep))

    def mapping(self, mapping: Mapping[str, str]) -> dict[str, str]:
        """Options with their secrets replaced."""
        return {self.key(key): self.value(key, value) for key, value in mapping.items()}

    def model(self, model: AnyModel) -> AnyModel:
        """The same model with its texts and maps redacted; the very same object when there was nothing to redact.

        Nothing is validated anew. A model that is itself an entry (`SetProperty(key=…, value=…)`) is judged like an
        entry of a map.
        """
        fields, name_field = _fields(type(model))
        option = getattr(model, name_field) if name_field else None
        changed: dict[str, Any] = {}
        for field, redacted in fields:
            before: Any = getattr(model, field)
            if isinstance(option, str) and field in _VALUES_OF_OPTIONS and isinstance(before, str):
                after: Any = self.value(option, before)
            else:
                after = before if type(before) in _LEAVES else redacted(self, before)
            if after is not before:
                changed[field] = after
        return model.model_copy(update=changed) if changed else model

    def redact(self, value: Any) -> Any:
        """Any value made of texts, maps, sequences and models; other things pass as they are."""
        return self._walk(value, self.text, self._entry)

    def redact_identity(self, value: Any) -> Any:
        """The value of a field marked as an identity: a text, or texts in tuples and maps."""
        return self._walk(value, self.identity, lambda key, each: (self.identity(key), self.identity(each)))

    def redact_type(self, text: str) -> str:
        """A type keeps the names in it, which are columns; metadata of nested fields has comments and options."""
        if _SIMPLE_TYPE.fullmatch(text):
            return text
        try:
            content = json.loads(text)
            redacted = self._walk(content, self.identity, self._entry_of_type)
        except (ValueError, RecursionError):  # no type
            return self.text(text)
        return text if redacted is content else json.dumps(redacted, separators=(",", ":"), ensure_ascii=False)

    def forget(self) -> None:
        """Drop what is remembered of clean texts; nothing else changes."""
        self._clean.clear()

    def key(self, key: str) -> str:
        """The name of an option. What looks like one is one, whatever words are in it."""
        return self.identity(key) if _OPTION_NAME.match(key) else self.text(key)

    def _walk(self, value: Any, text: Callable[[str], str], entry: Callable[[Any, Any], tuple[Any, Any]]) -> Any:
        if type(value) in _LEAVES or isinstance(value, Enum):
            return value
        if isinstance(value, str):
            return text(value)
        redacted: Any = value
        if isinstance(value, BaseModel):
            redacted = self.model(value)
        elif isinstance(value, Mapping):
            redacted = dict(entry(key, each) for key, each in value.items())
            if redacted == dict(value):
                return value
            return StringMap(redacted) if isinstance(value, StringMap) else redacted
        elif isinstance(value, (list, tuple, frozenset, set)):
            items = [self._walk(item, text, entry) for item in value]
            if not all(map(operator.is_, items, value)):
                redacted = type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
        return redacted

    def _entry(self, key: Any, value: Any) -> tuple[Any, Any]:
        if not isinstance(key, str):
            return self.redact(key), self.redact(value)
        if isinstance(value, str):
            return self.key(key), self.value(key, value)
        return self.key(key), _hide_all(value) if self.is_secret(key) else self.redact(value)

    def _entry_of_type(self, key: Any, value: Any) -> tuple[Any, Any]:
        if key not in _KEYS_OF_TYPES:  # metadata has options and comments
            return self._entry(key, value)
        return key, self._walk(value, self.identity, self._entry_of_type)

    def _matches(self, key: str) -> bool:
        return self._pattern is not None and self._pattern.search(key[-_LONGEST_NAME:]) is not None


@cache
def _fields(model: type[BaseModel]) -> tuple[list[tuple[str, Callable[[Redactor, Any], Any]]], str | None]:
    """The fields of a kind of model with how each is redacted, and the field that has an option's name."""
    ways: dict[str, Callable[[Redactor, Any], Any]] = dict.fromkeys(model.model_fields, Redactor.redact)
    option = next((name for name in _NAMES_OF_OPTIONS if name in ways), None)
    if option is not None and _VALUES_OF_OPTIONS & ways.keys():
        ways[option] = Redactor.key
    for mark, way in (
        (Identity, Redactor.redact_identity),
        (TypeText, Redactor.redact_type),
        (OptionName, Redactor.key),
    ):
        ways |= dict.fromkeys(marked(model, mark), way)
    return list(ways.items()), option


def _compile_pattern(pattern: str) -> re.Pattern[str]:
    """Compile a pattern that was written for Java, as far as both languages mean the same by it."""
    try:
        if _NESTED_SET.match(pattern):
            raise re.error("a set within a set")  # noqa: TRY301 - Python takes the inner bracket for a character
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # Python only warns of [a&&b], which it doesn't take for an intersection
            return re.compile(pattern)
    except (re.error, OverflowError, RecursionError, Warning) as error:
        raise ConfigurationError(
            f"spark.redaction.regex: {pattern!r} can't be used as a regular expression in Python ({error}); "
            f"write it without Java's own extensions, for example {_SPARK_DEFAULT!r}"
        ) from error


def _hide_all(value: Any) -> Any:
    """A structure under a secret's name: all its texts and numbers are the secret."""
    if isinstance(value, Mapping):
        return {key: _hide_all(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return type(value)(_hide_all(item) for item in value)
    return value if value is None or isinstance(value, bool) or value == "" else REDACTED


def redacted_excerpt(text: str, longest: int) -> str:
    """The text on one line without its secrets, and then cut: half a password doesn't look like one."""
    words = " ".join(_default.text(text[:READ]).split())
    return words if len(words) <= longest else f"{words[: longest - 1]}…"


_default: Final = Redactor()


def redact(value: AnyValue) -> AnyValue:
    """The value without its secrets, by the rules that hold without a configuration.

    Takes texts, maps, sequences and models, nested as they may be, and gives back the same type: the very same object
    when there was nothing to take out.
    """
    redacted: AnyValue = _default.redact(value)
    return redacted
