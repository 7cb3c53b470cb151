"""The one class that takes secrets out, before an event exists."""

from __future__ import annotations

import operator
import re
import warnings
from collections.abc import Mapping
from datetime import datetime
from enum import Enum
from typing import Any, Final, TypeVar
from uuid import UUID

from pydantic import BaseModel

from headwater.errors import ConfigurationError
from headwater.events.base import StringMap
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
from headwater.events.redaction._walk import AnyModel, Ways, walk_model

AnyValue = TypeVar("AnyValue")

_SPARK_DEFAULT: Final = "(?i)secret|password|token|access[.]?key"
_PLAIN: Final = re.compile(r"[\w./#-]{0,15}\Z", re.ASCII)
_OPTION_NAME: Final = re.compile(r"[^\s=:'\"`<>@/?&;,|(){}\[\]%\\]{1,256}\Z")
_LONGEST_NAME: Final = 256
_NESTED_SET: Final = re.compile(r"(?:[^\\\[]|\\.|\[\^?\]?(?:[^\\\]\[]|\\.)*\])*\[\^?\]?(?:[^\\\]\[]|\\.)*\[", re.DOTALL)
_LEAVES: Final = frozenset([type(None), bool, int, float, bytes, datetime, UUID])
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
        self._clean: set[str] = set()  # short texts without a secret: most texts come again and again
        self._clean_identities: set[str] = set()
        self._ways = Ways(self.redact, self.redact_identity, self._key, self.value)

    def text(self, text: str) -> str:
        """The free text without what may be secret."""
        if text in self._clean:
            return text
        if self._custom is None and _PLAIN.match(text) and not names_secret(text):
            return _remember(self._clean, text)
        redacted = without_secrets(text, self._custom)
        return redacted if redacted != text else _remember(self._clean, text)

    def identity(self, text: str) -> str:
        """A name, a path or an id without its credentials: passwords in URLs, and tokens known by their shape.

        Nothing else goes, whatever words are in it, so that two names stay two.
        """
        if text in self._clean_identities:
            return text
        redacted = text if _PLAIN.match(text) else without_credentials(text)
        return redacted if redacted != text else _remember(self._clean_identities, text)

    def value(self, key: str, value: str) -> str:
        """The value of an option, if its name is a harmless one or the value is plain; else the mark."""
        if not self._matches(key) and self._is_shown(key, value):
            return value
        return hidden_value(key, value, self._hash_key)

    def is_secret(self, key: str) -> bool:
        """Whether the value of an option of this name is a secret."""
        if self._matches(key):
            return True
        return names_secret(key) and not is_harmless(key, self._keep)

    def mapping(self, mapping: Mapping[str, str]) -> dict[str, str]:
        """Options with their secrets replaced."""
        return {self._key(key): self.value(key, value) for key, value in mapping.items()}

    def model(self, model: AnyModel) -> AnyModel:
        """The same model with its texts and maps redacted; the very same object when there was nothing to redact."""
        return walk_model(model, self._ways)

    def redact(self, value: Any) -> Any:
        """Any value made of texts, maps, sequences and models; other things pass as they are."""
        if type(value) in _LEAVES or isinstance(value, Enum):
            return value
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, BaseModel):
            return self.model(value)
        if isinstance(value, Mapping):
            return _same_or_new(value, {self._key(key): self._entry(key, each) for key, each in value.items()})
        if isinstance(value, (list, tuple, frozenset, set)):
            return self._items(value)
        return value

    def redact_identity(self, value: Any) -> Any:
        """The value of a field marked as an identity: a text, or texts in tuples and maps."""
        if type(value) in _LEAVES or isinstance(value, Enum):
            return value
        if isinstance(value, str):
            return self.identity(value)
        if isinstance(value, Mapping):
            inner = self.redact_identity
            return _same_or_new(value, {inner(key): inner(each) for key, each in value.items()})
        if isinstance(value, tuple):
            redacted = tuple([self.redact_identity(item) for item in value])
            return value if all(map(operator.is_, redacted, value)) else redacted
        return value

    def forget(self) -> None:
        """Drop what is remembered of clean texts; nothing else changes."""
        self._clean.clear()
        self._clean_identities.clear()

    def _is_shown(self, key: str, value: str) -> bool:
        if is_harmless(key, self._keep):
            return self.identity(value) == value and not is_assignment_of_secret(value)
        return not names_secret(key) and is_plain(value)

    def _key(self, key: Any) -> Any:
        """What looks like an option's name is one, whatever words are in it."""
        if not isinstance(key, str):
            return self.redact(key)
        return self.identity(key) if _OPTION_NAME.match(key) else self.text(key)

    def _entry(self, key: object, value: Any) -> Any:
        if not isinstance(key, str):
            return self.redact(value)
        if isinstance(value, str):
            return self.value(key, value)
        return hide_all(value) if self.is_secret(key) else self.redact(value)

    def _items(self, items: Any) -> Any:
        redacted = [self.redact(item) for item in items]
        if all(map(operator.is_, redacted, items)):
            return items
        return type(items)(*redacted) if hasattr(items, "_fields") else type(items)(redacted)

    def _matches(self, key: str) -> bool:
        return self._pattern is not None and self._pattern.search(key[-_LONGEST_NAME:]) is not None


def _same_or_new(mapping: Mapping[Any, Any], redacted: dict[Any, Any]) -> Any:
    if redacted == dict(mapping):
        return mapping
    return StringMap(redacted) if isinstance(mapping, StringMap) else redacted


def _remember(clean: set[str], text: str) -> str:
    """Only texts in which nothing was found are kept: a cache must not become the place where secrets live on."""
    if len(text) <= _SHORT:
        if len(clean) >= _REMEMBERED:
            clean.clear()
        clean.add(text)
    return text


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


def hide_all(value: Any) -> Any:
    """A structure under a secret's name: all its texts and numbers are the secret."""
    if isinstance(value, Mapping):
        return {key: hide_all(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return type(value)(hide_all(item) for item in value)
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
