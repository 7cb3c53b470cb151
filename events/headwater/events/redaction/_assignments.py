"""Secrets that a text names: `password=x`, `"token": "x"`, `OPTIONS (password 'x')`, `--secret x`, `<password>x<…`.

The text is read once from left to right. Every name in it is judged by its words; when it names a secret and something
that binds a value to it follows, the value goes, to its true end.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from headwater.events.redaction._bindings import Named, value_bound_to
from headwater.events.redaction._keys import is_secret_option, may_name_secret, names_secret
from headwater.events.redaction._spans import Span
from headwater.events.redaction._values import value_at

IsSecret = Callable[[str], bool]

_NAME = re.compile(r"-{0,2}[\w.]+(?:-{1,3}[\w.]+)*")
_WORD_BEFORE = re.compile(r"[A-Za-z]+\Z")
_SECOND_WORDS = frozenset(["key", "str", "wor", "phr"])  # how key, string, word and phrase begin
_IDENTIFIED = re.compile(r"(?i)\bidentified\s+(?:with\s+\S+\s+)?(?:by|as)\s+(?:password\s+)?")
_TAKES_KEY = ("aes_encrypt", "aes_decrypt")  # the key is an argument among others
_IN_QUERY = frozenset(["key", "code", "sign", "sid", "session", "sessionid", "hmac", "hash"])
_NO_SECRET = frozenset(["", "true", "false", "null", "none", "undefined", "?"])
# The value of an entry may stand before its name.
_VALUE_FIRST = re.compile(r"""\\*["'](?i:value)\\*["']\s{0,64}:\s{0,64}(?=\\*["'])""")
_NAME_NEXT = re.compile(
    r"""\\*["']\s{0,64},\s{0,64}\\*["'](?i:name|key|option|property)\\*["']\s{0,64}:\s{0,64}\\*["'](?P<name>[\w.-]{1,256})"""
)
_BARE_IDENTIFIED = re.compile(r"(?i)\b(?:user|role|to)\s+(?!(?:is|are|was|were|be|been)\s)[^\s;]{1,128}\s+\Z")
_ONLY_NUMBERS_IN_BRACKETS = re.compile(r"""[\[{][\d\s,:"{}\[\]-]*[\]}]""")


def secrets_named_in(text: str, is_custom: IsSecret | None) -> Iterator[Span]:
    """The values in this text whose names say that they are secrets, from left to right, never overlapping."""
    done = 0
    found = _NAME.search(text)
    while found:
        span = _secret_of(text, found, done, is_custom)
        if span and span.end > span.start and not _is_no_secret(text[span.start : span.end], found.group()):
            yield span
            done = span.end
            found = _NAME.search(text, done)
        else:
            found = _NAME.search(text, found.end())


def _secret_of(text: str, found: re.Match[str], done: int, is_custom: IsSecret | None) -> Span | None:
    name, start, end = found.group(), found.start(), found.end()
    lowered = name[:16].lower()
    if lowered.startswith("identified"):
        return _identified(text, start)
    if lowered.endswith(_TAKES_KEY) and text.startswith("(", end):
        return value_at(text, end)
    name = _without_dashes(name, is_inside=start > 0 and (text[start - 1].isalnum() or start < done))
    is_sure = is_custom is not None and is_custom(name)
    if not is_sure and not may_name_secret(name):
        return None
    name = _with_word_before(text, start, name)
    if is_sure or names_secret(name) or (_is_quoted_option(text, start, name) and is_secret_option(name)):
        return value_bound_to(Named(text, name, start, end, is_sure=is_sure))
    return _query_parameter(text, name, start, end)


def _identified(text: str, start: int) -> Span | None:
    """`IDENTIFIED BY 'x'`, and without quotes where it is a user: `two names identified by location` is prose."""
    phrase = _IDENTIFIED.match(text, start)
    if not phrase:
        return None
    is_quoted = text.startswith(("'", '"', "\\", "`"), phrase.end())
    if not is_quoted and not _BARE_IDENTIFIED.search(text, max(0, start - 256), start):
        return None
    return value_at(text, phrase.end())


def secrets_named_behind(text: str, is_custom: IsSecret | None) -> Iterator[Span]:
    """The values of entries that tell their name after them: `{"value": "x", "name": "password"}`."""
    found = _VALUE_FIRST.search(text)
    while found:
        value = value_at(text, found.end())
        named = _NAME_NEXT.match(text, value.end)
        if named and (names_secret(named["name"]) or (is_custom is not None and is_custom(named["name"]))):
            yield value
        found = _VALUE_FIRST.search(text, max(value.end, found.end()))


def _without_dashes(name: str, *, is_inside: bool) -> str:
    """`--token` stays what it is, an argument; `-Dtoken` is a property; `a)-token` and `a--token` are neither."""
    if name.startswith("-D"):
        return name[2:]
    return name.lstrip("-") if is_inside else name


def _with_word_before(text: str, start: int, name: str) -> str:
    """`access key: x`, `Connection String=x`: the words of one name stand apart."""
    if name[:3].lower() not in _SECOND_WORDS or text[start - 1 : start] != " ":
        return name
    before = _WORD_BEFORE.search(text, max(0, start - 16), start - 1)
    return f"{before.group()}_{name}" if before else name


def _is_quoted_option(text: str, start: int, name: str) -> bool:
    """`'my.app.key' = …` is an option; `a.app_key = …` is a column."""
    return text[start - 1 : start] in {"'", '"'} and ("." in name or "-" in name)


def _query_parameter(text: str, name: str, start: int, end: int) -> Span | None:
    """`?key=…` names a secret, in an address alone."""
    if text[start - 1 : start] in {"?", "&"} and name.lower() in _IN_QUERY and text.startswith("=", end):
        return value_at(text, end + 1)
    return None


def _is_no_secret(value: str, name: str) -> bool:
    """Nothing at all, switches, offsets of topics, and the same column of another table."""
    if value.lower() in _NO_SECRET or _ONLY_NUMBERS_IN_BRACKETS.fullmatch(value):
        return True
    table, dot, column = value.rpartition(".")
    return bool(dot) and column == name.rpartition(".")[2] and table.replace(".", "").isidentifier()
