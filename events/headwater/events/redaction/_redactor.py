"""The one function that takes secrets out, before an event exists."""

from __future__ import annotations

import operator
import re
import warnings
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from enum import Enum
from typing import Any, Final, TypeVar
from uuid import UUID

from pydantic import BaseModel

from headwater.errors import ConfigurationError
from headwater.events.base import StringMap
from headwater.events.redaction._assignments import secrets_named_behind, secrets_named_in
from headwater.events.redaction._credentials import credentials_in_identity
from headwater.events.redaction._keys import MAX_NAME, is_secret_option
from headwater.events.redaction._shapes import secrets_by_shape
from headwater.events.redaction._spans import REDACTED, Span, without
from headwater.events.redaction._tables import secrets_in_tables
from headwater.events.redaction._urls import user_infos
from headwater.events.redaction._walk import AnyModel, walk_model

AnyValue = TypeVar("AnyValue")

_SPARK_DEFAULT: Final = "(?i)secret|password|token|access[.]?key"
_PLAIN = re.compile(r"[\w./#-]{0,15}\Z")
_NESTED_SET = re.compile(r"(?:[^\\\[]|\\.|\[\^?\]?(?:[^\\\]\[]|\\.)*\])*\[\^?\]?(?:[^\\\]\[]|\\.)*\[", re.DOTALL)
_SUSPECT = re.compile(  # grouped by first letters: three times as fast as a flat list, and every text passes here
    r"@|p(?:ass|wd?|sk|ypi-|in(?![a-z]))|s(?:ecret|i[gd]|as|hared|ession|k[-_]|g\.)|token|c(?:red|o(?:okie|nn|de)|url)|j(?:aas|wt)"
    r"|a(?:uth|es_|ssertion|kia|sia|bia|cca|iza)|b(?:earer|asic|egin)|i(?:nfo|dentified)|h(?:ook|mac|ash|v[sbr]\.|f_)|key|otp|ya29"
    r"|1//0|g(?:ocspx|h[pousr]_|ithub_pat|l[a-z]+-)|x(?:ox|app)|d(?:api|kea|ose|igest)|eyj|rk_|n(?:pm_|egotiate|tlm)"
)
_SWITCHES: Final = frozenset(["", "true", "false"])
_LEAVES: Final = frozenset([type(None), bool, int, float, bytes, datetime, UUID])
_SHORT: Final = 256
_REMEMBERED: Final = 4096
_PASSES: Final = 8


class Redactor:
    """Takes secrets out of texts, options and whole events; what isn't secret stays as it is.

    `pattern` is the application's `spark.redaction.regex`. It is matched with the names of options, also of those
    inside texts; headwater's own rules hold beside it. (Spark matches it with values too, and hides a whole value
    for one word in it; here values are searched for the secrets themselves, so that `primary-key = token_id` stays.)
    Spark's default, where the application sets it, is matched with the names of options only: in texts our own rules
    hold all of it that is a secret. A pattern that only Java understands raises ConfigurationError.
    """

    def __init__(self, pattern: str | None = None) -> None:
        self._pattern = None if pattern is None else _compile_pattern(pattern)
        is_own = pattern is None or pattern == _SPARK_DEFAULT
        self._custom: Callable[[str], bool] | None = None if is_own else self._matches
        self._clean: set[str] = set()  # short texts without a secret: most texts come again and again
        self._clean_identities: set[str] = set()

    def text(self, text: str) -> str:
        """The text with every secret in it replaced by the mark."""
        if text in self._clean:
            return text
        if not self._is_suspect(text):
            return _remember(self._clean, text)
        redacted = _without_all(text, self._secrets)
        return redacted if redacted != text else _remember(self._clean, text)

    def identity(self, text: str) -> str:
        """A name, a path or an id without its credentials: passwords in URLs, and tokens known by their shape.

        Nothing else goes, whatever words are in it, so that two names stay two.
        """
        if text in self._clean_identities:
            return text
        redacted = text if _PLAIN.match(text) else _without_all(text, credentials_in_identity)
        return redacted if redacted != text else _remember(self._clean_identities, text)

    def value(self, key: str, value: str) -> str:
        """The value of an option: the mark when the key says that it is a secret, else the text without its secrets."""
        if value in _SWITCHES or not self.is_secret(key):
            return self.text(value)
        return REDACTED

    def is_secret(self, key: str) -> bool:
        """Whether the value of an option of this name is a secret."""
        return is_secret_option(key) or self._matches(key)

    def mapping(self, mapping: Mapping[str, str]) -> dict[str, str]:
        """Options with their secrets replaced; a key is searched like any text."""
        return {self.text(key): self.value(key, value) for key, value in mapping.items()}

    def model(self, model: AnyModel) -> AnyModel:
        """The same model with its texts and maps redacted; the very same object when there was nothing to redact."""
        return walk_model(model, self.redact, self.redact_identity, self.value)

    def redact(self, value: Any) -> Any:
        """Any value made of texts, maps, sequences and models; other things pass as they are."""
        if type(value) in _LEAVES or isinstance(value, Enum):
            return value
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, BaseModel):
            return self.model(value)
        if isinstance(value, Mapping):
            return self._map(value)
        if isinstance(value, (list, tuple, frozenset, set)):
            return self._items(value)
        return value

    def redact_identity(self, value: Any) -> Any:
        """The value of a field marked as an identity: a text, or texts in tuples and maps."""
        if type(value) is str:
            return self.identity(value)
        if type(value) in _LEAVES:
            return value
        if isinstance(value, Mapping):
            return self._identity_map(value)
        if isinstance(value, tuple):
            redacted = tuple([self.redact_identity(item) for item in value])
            return value if all(map(operator.is_, redacted, value)) else redacted
        return self.identity(value) if isinstance(value, str) and not isinstance(value, Enum) else value

    def forget(self) -> None:
        """Drop what is remembered of clean texts; nothing else changes."""
        self._clean.clear()
        self._clean_identities.clear()

    def _map(self, mapping: Mapping[Any, Any]) -> Any:
        redacted = {self.redact(key): self._entry(key, value) for key, value in mapping.items()}
        if redacted == dict(mapping):
            return mapping
        return StringMap(redacted) if isinstance(mapping, StringMap) else redacted

    def _identity_map(self, mapping: Mapping[Any, Any]) -> Any:
        redacted = {self.redact_identity(key): self.redact_identity(value) for key, value in mapping.items()}
        if redacted == dict(mapping):
            return mapping
        return StringMap(redacted) if isinstance(mapping, StringMap) else redacted

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

    def _is_suspect(self, text: str) -> bool:
        if _PLAIN.match(text):
            return False
        return self._custom is not None or _SUSPECT.search(text.lower()) is not None

    def _secrets(self, text: str) -> Iterator[Span]:
        yield from user_infos(text)
        yield from secrets_by_shape(text)
        yield from secrets_named_in(text, self._custom)
        yield from secrets_named_behind(text, self._custom)
        yield from secrets_in_tables(text, self._custom)

    def _matches(self, key: str) -> bool:
        return self._pattern is not None and self._pattern.search(key[-MAX_NAME:]) is not None


def _remember(clean: set[str], text: str) -> str:
    """Only texts in which nothing was found are kept: a cache must not become the place where secrets live on."""
    if len(text) <= _SHORT:
        if len(clean) >= _REMEMBERED:
            clean.clear()
        clean.add(text)
    return text


def _without_all(text: str, find: Callable[[str], Iterator[Span]]) -> str:
    """The text without what is found in it, and without what is found in the rest."""
    redacted = text
    for _ in range(_PASSES):
        before, redacted = redacted, without(redacted, find(redacted))
        if redacted == before:
            break
    return redacted


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


_default = Redactor()


def redact(value: AnyValue) -> AnyValue:
    """The value without its secrets, by the rules that hold without a `spark.redaction.regex` of one's own.

    Takes texts, maps, sequences and models, nested as they may be, and gives back the same type: the very same object
    when there was nothing to take out.
    """
    redacted: AnyValue = _default.redact(value)
    return redacted
