"""Secrets that a text names: `password=x`, `"token": "x"`, `OPTIONS (password 'x')`, `--secret x`, `<password>x<…`.

The text is read once from left to right. Every name in it is judged by its words; when it names a secret and something
that binds a value to it follows, the value goes, to its true end.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Final

from headwater.events.redaction._keys import may_name_secret, names_secret
from headwater.events.redaction._marker import REDACTED
from headwater.events.redaction._spans import Span
from headwater.events.redaction._values import value_at

IsSecret = Callable[[str], bool]

_NAME = re.compile(r"-{0,2}[\w.]+(?:-{1,3}[\w.]+)*")
_QUOTES: Final = "\"'`"

_BOUND = re.compile(
    r"""(?:\#\d+L?)?[\\"'`\]]{0,12}[ \t]*
    (?P<sign>[!<>]=|=>|->|:=|={1,3}|:(?!//)|%3[dD]|<>)[ \t]*(?:\s*(?=[\\"'`{\[]))?""",
    re.VERBOSE,
)
_SPACED = re.compile(r"""["'`]{0,2}\s+(?:(?i:for|is|was|of|by|as)\s+)?(?=[bBrRnNeE]?\\*["'])""")
_CALLED = re.compile(r"""\s?\(\s*(?=[bBrRnNeE]?\\*["'])""")
_TAGGED = re.compile(r"(?:\s[^<>]*)?>\s*(?=[^\s<])")
_HADOOP_VALUE = re.compile(r"\s*</name>(?:\s|\\[nrt])*<value>\s*")
_PAIRED = re.compile(r",(?P<value>[^\s,()\"']+)\)")
_QUOTED_PAIR = re.compile(r"""(?P<quote>\\*["']),\s?(?P=quote)""")
_CELL = re.compile(r"\s*\|\s*(?=[^\s|])")
_ON_A_LINE = re.compile(r"[ \t]+(?=\S+[ \t]*(?:\n|\Z))")
_ARGUMENT = re.compile(r"\s+(?=[^\s-])")
_TOLD = re.compile(r"\s+(?:is\s+|was\s+|of\s+)?(?=\S*\d)(?=\S*[A-Za-z])(?=\S{8})")
_SET_VALUE = re.compile(r"[^;\n]*[^;\s]")
_HEADER_VALUE = re.compile(
    r"""(?:(?:(?i:bearer|basic|negotiate|token|ntlm|apikey)\s+)?(?:\*{9}\(redacted\)|[^\s"',;}\])])+|[^\n"']*[^\n"'\s])"""
)
_ATTRIBUTE = re.compile(r"[A-Za-z_][\w.]*#\d+L?(?!\w)")
_WORD_BEFORE = re.compile(r"[A-Za-z]+\Z")
_HEADERS = re.compile(r"(?i)authorization\Z|cookie\Z")
_PARAMETERS = re.compile(r"""(?:[\w-]+[ \t]+)?(?:[\w.-]+=(?:\\*"[^"]*"|[^\s,;"']+)(?:[,;][ \t]*)?)+""")
_IDENTIFIED = re.compile(r"(?i)\bidentified\s+(?:with\s+\S+\s+)?(?:by|as)\s+(?:password\s+)?")
_KEPT = frozenset(["", "true", "false", "null", "none", "undefined", "?"])
_ONLY_NUMBERS_IN_BRACKETS = re.compile(r"""[\[{][\d\s,:"{}\[\]-]*[\]}]""")
_TAKES_KEY = ("aes_encrypt", "aes_decrypt")  # the key is an argument among others
_IN_QUERY = frozenset(["key", "code", "sign", "sid", "session", "sessionid", "hmac", "hash"])


def secrets_named_in(text: str, is_custom: IsSecret | None) -> Iterator[Span]:
    """The values in this text whose names say that they are secrets, from left to right, never overlapping."""
    done = 0
    found = _NAME.search(text)
    while found:
        span = _secret_of(text, found, done, is_custom)
        if span and span.end > span.start and not _is_kept(text, found.group(), span):
            yield span
            done = span.end
            found = _NAME.search(text, done)
        else:
            found = _NAME.search(text, found.end())


def _secret_of(text: str, found: re.Match[str], done: int, is_custom: IsSecret | None) -> Span | None:
    name, start, end = found.group(), found.start(), found.end()
    if name[0] in "iI" and name[:10].lower() == "identified":
        phrase = _IDENTIFIED.match(text, start)
        return value_at(text, phrase.end()) if phrase else None
    if name.lower().endswith(_TAKES_KEY) and text.startswith("(", end):
        return value_at(text, end)
    if name.startswith("-") and start and (text[start - 1].isalnum() or start < done):
        name = name.lstrip("-")
    elif name.startswith("-D"):
        name = name[2:]
    custom = is_custom is not None and is_custom(name)
    if not custom and not may_name_secret(name):
        return None
    name = _with_word_before(text, start, name)
    if custom or names_secret(name):
        return _value_of(text, name, start, end, sure=custom)
    return _query_parameter(text, name, start, end)


def _query_parameter(text: str, name: str, start: int, end: int) -> Span | None:
    """`?key=…` names a secret, in an address alone."""
    if text[start - 1 : start] in {"?", "&"} and name.lower() in _IN_QUERY and text[end : end + 1] == "=":
        return value_at(text, end + 1)
    return None


def _with_word_before(text: str, start: int, name: str) -> str:
    """`access key: x`, `Connection String=x`: the words of one name stand apart."""
    if name[:3].lower() not in {"key", "str", "wor", "phr"} or text[start - 1 : start] != " ":
        return name
    before = _WORD_BEFORE.search(text, max(0, start - 16), start - 1)
    return f"{before.group()}_{name}" if before else name


def _value_of(text: str, name: str, start: int, end: int, *, sure: bool) -> Span | None:
    before = text[start - 1 : start]
    bound = _BOUND.match(text, end)
    if bound:
        return _bound_value(text, name, bound, before, start, sure=sure)
    if before == "<" or (before == ":" and text.rfind("<", max(0, start - 32), start) >= 0):
        tagged = _TAGGED.match(text, end)
        if tagged:
            return Span(tagged.end(), _until(text, tagged.end(), "<"))
    return _loosely_bound_value(text, name, start, end, before)


def _bound_value(text: str, name: str, bound: re.Match[str], before: str, start: int, *, sure: bool) -> Span | None:
    sign, at = bound["sign"], bound.end()
    if sign == ":" and text[max(0, start - 3) : start] == "://":
        return None  # the user of an address, of which the whole goes elsewhere
    if text[bound.start()] == "#" and _ATTRIBUTE.match(text, at):
        return None  # two columns are compared
    is_quoted = before != "" and before in _QUOTES
    if sign == ":" and not is_quoted and not sure and not names_secret(name, loosely_bound=True):
        return None
    if _HEADERS.search(name) and text[at : at + 1] not in {'"', "'", "\\", "{", "["}:
        return _header_value(text, at)
    if sign == "=" and text[max(0, start - 4) : start].upper() == "SET " and text[at : at + 1] not in {"'", '"'}:
        whole = _SET_VALUE.match(text, at)
        return Span(at, whole.end()) if whole else None
    in_map = sign == "->" or before == "{" or text[max(0, start - 2) : start] == ", "
    return value_at(text, at, in_map=in_map)


def _header_value(text: str, at: int) -> Span:
    if text.startswith(REDACTED, at):
        return value_at(text, at)
    value = _PARAMETERS.match(text, at) or _HEADER_VALUE.match(text, at)
    return Span(at, value.end() if value else at)


def _loosely_bound_value(text: str, name: str, start: int, end: int, before: str) -> Span | None:
    hadoop = _HADOOP_VALUE.match(text, end)
    if hadoop:
        return Span(hadoop.end(), _until(text, hadoop.end(), "</value>"))
    if name.startswith("-"):
        argument = _ARGUMENT.match(text, end)
        return value_at(text, argument.end()) if argument else None
    for binding in (_SPACED, _CALLED):
        spaced = binding.match(text, end)
        if spaced:
            return value_at(text, spaced.end())
    if before == "|":
        cell = _CELL.match(text, end)
        return Span(cell.end(), _until(text, cell.end(), "|")) if cell else None
    return _pair_or_line(text, name, start, end)


def _pair_or_line(text: str, name: str, start: int, end: int) -> Span | None:
    paired = _PAIRED.match(text, end) if text[start - 1 : start] == "(" else None
    if paired:
        return Span(*paired.span("value"))
    quoted = _QUOTED_PAIR.match(text, end)
    if quoted and text.endswith("(" + quoted["quote"], 0, start):
        value = value_at(text, quoted.end() - len(quoted["quote"]))
        return value if text.startswith(quoted["quote"] + ")", value.end) else None
    alone = _ON_A_LINE.match(text, end) if "." in name and text[start - 1 : start] in {"", "\n"} else None
    told = alone or _TOLD.match(text, end)
    return value_at(text, told.end()) if told else None


def _until(text: str, start: int, mark: str) -> int:
    found = text.find(mark, start)
    return found if found >= 0 else len(text)


def _is_kept(text: str, name: str, span: Span) -> bool:
    """Values that can't be secrets: none at all, switches, offsets, and the same column of another table."""
    value = text[span.start : span.end]
    if value.lower() in _KEPT or _ONLY_NUMBERS_IN_BRACKETS.fullmatch(value):
        return True
    last = name.rpartition(".")[2]
    return "." in value and value.rpartition(".")[2] == last and value.replace(".", "").isidentifier()
