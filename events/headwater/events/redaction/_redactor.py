"""The one function that takes secrets out, before an event exists."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from enum import Enum
from typing import Any, Final, TypeVar
from uuid import UUID

from pydantic import BaseModel

from headwater.events.base import Texts
from headwater.events.redaction._assignments import secrets_named_in
from headwater.events.redaction._java_regex import SPARK_DEFAULT, compile_java
from headwater.events.redaction._keys import MAX_NAME, is_secret_option
from headwater.events.redaction._marker import REDACTED
from headwater.events.redaction._shapes import secrets_by_shape
from headwater.events.redaction._spans import Span, without
from headwater.events.redaction._urls import user_infos
from headwater.events.redaction._walk import walk_model

AnyValue = TypeVar("AnyValue")
AnyModel = TypeVar("AnyModel", bound=BaseModel)

_PLAIN = re.compile(r"[\w./#-]{0,15}\Z")
_SUSPECT = re.compile(  # grouped by first letters: three times as fast as a flat list, and every text passes here
    r"@|p(?:ass|wd?|sk|ypi-)|s(?:ecret|i[gd]|as|hared|ession|k[-_]|g\.)|token|c(?:red|o(?:okie|nn|de)|url)|j(?:aas|wt)"
    r"|a(?:uth|es_|kia|sia|bia|cca|iza)|b(?:earer|asic|egin)|i(?:nfo|dentified)|h(?:ook|mac|ash|v[sbr]\.|f_)|key|otp|ya29"
    r"|1//0|g(?:ocspx|h[pousr]_|ithub_pat|l[a-z]+-)|x(?:ox|app)|d(?:api|kea|ose|igest)|eyj|rk_|n(?:pm_|egotiate|tlm)"
)
_SWITCHES: Final = frozenset(["", "true", "false"])
_LEAVES: Final = frozenset([type(None), bool, int, float, bytes, datetime, UUID])
_SHORT: Final = 256
_REMEMBERED: Final = 4096
_PASSES: Final = 8


class Redactor:
    """Takes secrets out of texts, options and whole events; what isn't secret stays as it is.

    `pattern` is the application's `spark.redaction.regex` in Java's words. It is asked for the names of options, also
    of those inside texts; headwater's own rules hold beside it. (Spark asks it for values too, and hides a whole value
    for one word in it; here values are searched for the secrets themselves, so that `primary-key = token_id` stays.)
    """

    def __init__(self, pattern: str | None = None) -> None:
        is_own = pattern is None or pattern == SPARK_DEFAULT  # our own rules hold all of Spark's default
        self._pattern = None if is_own else compile_java(pattern or "")
        self._custom: Callable[[str], bool] | None = None if is_own else self._matches
        self._clean: set[str] = set()  # short texts without a secret: most texts come again and again

    def text(self, text: str) -> str:
        """The text with every secret in it replaced by the mark."""
        if text in self._clean:
            return text
        if not self._is_suspect(text):
            return self._remember(text)
        redacted = text
        for _ in range(_PASSES):
            before, redacted = redacted, without(redacted, self._secrets(redacted))
            if redacted == before:
                break
        return redacted if redacted != text else self._remember(text)

    def value(self, key: str, value: str) -> str:
        """The value of an option: the mark when the key says that it is a secret, else the text without its secrets."""
        if value in _SWITCHES or not self.is_secret(key):
            return self.text(value)
        return REDACTED

    def is_secret(self, key: str) -> bool:
        """Whether the value of an option of this name is a secret."""
        return is_secret_option(key) or (self._custom is not None and self._custom(key))

    def mapping(self, mapping: Mapping[str, str]) -> dict[str, str]:
        """Options with their secrets replaced; a key is searched like any text."""
        return {self.text(key): self.value(key, value) for key, value in mapping.items()}

    def model(self, model: AnyModel) -> AnyModel:
        """The same model with its texts and maps redacted; the very same object when there was nothing to redact."""
        return walk_model(model, self.redact, self.value)

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

    def forget(self) -> None:
        """Drop what is remembered of clean texts; nothing else changes."""
        self._clean.clear()

    def _map(self, mapping: Mapping[Any, Any]) -> Any:
        redacted = {self.redact(key): self._entry(key, value) for key, value in mapping.items()}
        if redacted == dict(mapping):
            return mapping
        return Texts(redacted) if isinstance(mapping, Texts) else redacted

    def _entry(self, key: object, value: Any) -> Any:
        if not isinstance(key, str):
            return self.redact(value)
        if isinstance(value, str):
            return self.value(key, value)
        return hide_all(value) if self.is_secret(key) else self.redact(value)

    def _items(self, items: Any) -> Any:
        redacted = [self.redact(item) for item in items]
        if all(new is old for new, old in zip(redacted, items, strict=True)):
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

    def _matches(self, key: str) -> bool:
        return self._pattern is not None and self._pattern.search(key[-MAX_NAME:]) is not None

    def _remember(self, text: str) -> str:
        """Only texts in which nothing was found are kept: a cache must not become the place where secrets live on."""
        if len(text) <= _SHORT:
            if len(self._clean) >= _REMEMBERED:
                self._clean.clear()
            self._clean.add(text)
        return text


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
