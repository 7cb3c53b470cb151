"""How texts of all kinds bind a value to a name, and so where the value of a secret's name begins."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from headwater.events.redaction._keys import names_secret
from headwater.events.redaction._spans import REDACTED, Span
from headwater.events.redaction._values import value_at

_QUOTES = frozenset("\"'`")
# A comment of SQL. Its length is bounded, so that time is.
_COMMENT = r"(?:/\*(?:(?!\*/)[\s\S]){0,200}\*/|--[^\n]{0,200}\n)"
_QUOTED_NEXT = r"""(?=[bBrRnNeE]?\\*["'])"""

# password=x  "password": "x"  password -> x  conf["password"] = "x"  password#12 = x  password%3Dx
_SIGN = re.compile(
    rf"""(?:\#\d+L?)?[\\"'`\]]{{0,12}}(?:\s{{0,64}}{_COMMENT}){{0,4}}\s{{0,64}}?
    (?P<sign>[!<>]=|=>|->|:=|={{1,3}}|:(?!//)|%3[dD]|<>)(?:\s{{0,64}}{_COMMENT}){{0,4}}[ \t]*(?:\s*(?=[\\"'`{{\[]))?""",
    re.VERBOSE,
)
_COLUMN = re.compile(r"[A-Za-z_][\w.]*#\d+L?(?!\w)")
# SET password=my pass word;
_REST_OF_STATEMENT = re.compile(r"[^;\n]*[^;\s]")
# Authorization: Bearer x, or: Digest username="x", response="y"
_HEADERS = re.compile(r"(?i)authorization\Z|cookie\Z")
_CREDENTIALS = re.compile(
    r"""(?:(?:(?i:bearer|basic|negotiate|token|ntlm|apikey)\s+)?(?:\*{9}\(redacted\)|[^\s"',;}\])])+|[^\n"']*[^\n"'\s])"""
)
_PARAMETERS = re.compile(r"""(?:[\w-]+[ \t]+)?(?:[\w.-]+=(?:\\*"[^"]*"|[^\s,;"']+)(?:[,;][ \t]*)?)+""")
# <password>x</password>  <name>password</name><value>x</value>
_TAG_ENDS = re.compile(r"(?:\s[^<>]*)?>\s*(?=[^\s<])")
_HADOOP_VALUE = re.compile(r"\s*</name>(?:\s|\\[nrt])*<value>\s*")
# password 'x'  password for joe = ...  password('x')
_SPACE = re.compile(
    rf"""["'`]{{0,2}}(?=[\s/-])(?:\s{{0,64}}{_COMMENT}){{0,4}}\s*(?:(?i:for|is|was|of|by|as)\s+)?""" + _QUOTED_NEXT
)
_CALL = re.compile(r"\s?\(\s*" + _QUOTED_NEXT)
# --password x
_ARGUMENT = re.compile(r"\s+(?:\\\n\s*)?(?=[^\s-])")
# '--password', 'x' in a list of arguments
_NEXT_ITEM = re.compile(r"""(?P<quote>\\*["']),\s*(?=(?P=quote))""")
# An entry of two fields: name="password" value="x", in JSON too.
_VALUE_NEXT = re.compile(
    r"""(?:\\*["'])?(?:[ \t]*[,;\n]\s*|[ \t]+)(?P<quote>\\*["'])?(?i:value)(?(quote)(?P=quote))"""
    r"\s{0,64}(?::|=>?|->)\s{0,64}"
)
_NAMES_ENTRY = re.compile(
    r"""(?i)(?<![a-z])(?:name|key|option|property)\\*["']?\s{0,64}(?::|=>?|->)\s{0,64}\\*["']?\Z"""
)
# |password|x|
_CELL = re.compile(r"\s*\|\s*(?=[^\s|])")
_CELL_BEFORE = re.compile(r"\|[ ]{0,255}\Z")
_MAX_PADDING: Final = 256
# a pair in brackets, as of a Scala tuple or a Python one
_PAIR = re.compile(r",(?P<value>[^\s,()\"']+)\)")
_QUOTED_PAIR = re.compile(r"""(?P<quote>\\*["']),\s?(?=(?P=quote))""")
# spark.my.password    x
_REST_OF_LINE = re.compile(r"[ \t]+(?=\S+[ \t]*(?:\n|\Z))")
# with password x1y2z3w4: a word of letters and digits is hardly prose
_SPOKEN = re.compile(r"\s+(?:is\s+|was\s+|of\s+)?(?=\S*\d)(?=\S*[A-Za-z])(?=\S{8})")


class Named(NamedTuple):
    """A name in a text that may be a secret's. `is_sure`: its owner said so, so that prose isn't thought of."""

    text: str
    name: str
    start: int
    end: int
    is_sure: bool

    @property
    def before(self) -> str:
        """The character before the name; empty at the text's start."""
        return self.text[self.start - 1 : self.start]


def value_bound_to(named: Named) -> Span | None:
    """The value that the text gives to the name, if it gives one."""
    sign = _SIGN.match(named.text, named.end)
    return _after_sign(named, sign) if sign else _without_sign(named)


def _after_sign(named: Named, found: re.Match[str]) -> Span | None:
    text, sign, at = named.text, found["sign"], found.end()
    if (sign == ":" and _is_prose_or_user(named)) or (text.startswith("#", named.end) and _COLUMN.match(text, at)):
        return None
    is_quoted = text.startswith(('"', "'", "\\", "{", "["), at)
    if _HEADERS.search(named.name) and not is_quoted:
        return _header_value(text, at)
    if sign == "=" and not is_quoted and text[max(0, named.start - 4) : named.start].upper() == "SET ":
        whole = _REST_OF_STATEMENT.match(text, at)
        return Span(at, whole.end()) if whole else None
    in_map = sign == "->" or named.before == "{" or text.endswith(", ", 0, named.start)
    return value_at(text, at, in_map=in_map)


def _is_prose_or_user(named: Named) -> bool:
    """`method signature: f(x)` is prose, and the whole user-info of `https://token:x@host` goes elsewhere."""
    if named.text.endswith("://", 0, named.start):
        return True
    return not (named.is_sure or named.before in _QUOTES or names_secret(named.name, loosely_bound=True))


def _header_value(text: str, at: int) -> Span:
    if text.startswith(REDACTED, at):
        return value_at(text, at)
    value = _PARAMETERS.match(text, at) or _CREDENTIALS.match(text, at)
    return Span(at, value.end() if value else at)


def _without_sign(named: Named) -> Span | None:
    tagged = _find_tagged(named)
    if tagged:
        return tagged
    entry = _VALUE_NEXT.match(named.text, named.end)
    if entry and _NAMES_ENTRY.search(named.text, max(0, named.start - _MAX_PADDING), named.start):
        return value_at(named.text, entry.end())
    if named.name.startswith("-"):
        argument = _ARGUMENT.match(named.text, named.end) or _NEXT_ITEM.match(named.text, named.end)
        return value_at(named.text, argument.end()) if argument else None
    spaced = _SPACE.match(named.text, named.end) or _CALL.match(named.text, named.end)
    if spaced:
        return value_at(named.text, spaced.end())
    return _find_paired(named) or _last_or_spoken(named)


def _find_tagged(named: Named) -> Span | None:
    """Between the tags of an XML text, or the bars of a table."""
    text, before = named.text, named.before
    for is_such, begins, ends in (
        (before == ">", _HADOOP_VALUE, "</value>"),
        (before == "<" or (before == ":" and "<" in text[max(0, named.start - 32) : named.start]), _TAG_ENDS, "<"),
        (_is_cell(named), _CELL, "|"),
    ):
        found = begins.match(text, named.end) if is_such else None
        if found:
            end = text.find(ends, found.end())
            return Span(found.end(), end if end >= 0 else len(text))
    return None


def _is_cell(named: Named) -> bool:
    """Whether a cell of a table begins before the name, which Spark's `show` pads with spaces."""
    if named.before not in {"|", " "}:
        return False
    return _CELL_BEFORE.search(named.text, max(0, named.start - _MAX_PADDING), named.start) is not None


def _find_paired(named: Named) -> Span | None:
    pair = _PAIR.match(named.text, named.end) if named.before == "(" else None
    if pair:
        return Span(*pair.span("value"))
    quoted = _QUOTED_PAIR.match(named.text, named.end)
    if not quoted or not named.text.endswith("(" + quoted["quote"], 0, named.start):
        return None
    value = value_at(named.text, quoted.end())
    return value if named.text.startswith(quoted["quote"] + ")", value.end) else None


def _last_or_spoken(named: Named) -> Span | None:
    is_option = "." in named.name and named.before in {"", "\n"}
    binding = (_REST_OF_LINE.match(named.text, named.end) if is_option else None) or _SPOKEN.match(
        named.text, named.end
    )
    return value_at(named.text, binding.end()) if binding else None
