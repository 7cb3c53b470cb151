"""Data values are taken out of what Catalyst prints: `(name#1 = bob smith)` is `(name#1 = ?)`.

Catalyst prints texts, dates and intervals without quotes, so nothing but its form tells a name from a value. What is
surely no value stays (`name#12`, `upper(`, `AND`, a type behind `as`), all else is a value. A value that looks like one
of these can't be told from it: `bob#12`, `bob(`, AND inside of a text. Where the plan's JSON is at hand it is the
better source; this is for the texts that have no other.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from headwater.events.redaction._folding import folded
from headwater.events.redaction._keys import word_set
from headwater.events.redaction._scanner import MARK, Kind, Token, joined

_GAP = re.compile(r"\s*")
_CHUNK = re.compile(r"[^\s(),\[\]]+")
_QUOTED_VALUE = re.compile(
    r"""(?:'(?:[^'\\]|\\.|''){0,999}'|"(?:[^"\\]|\\.|""){0,999}")
    (?=[\s(),\[\]]|\Z)""",
    re.VERBOSE | re.DOTALL,
)
_ATTRIBUTE = re.compile(  # a column may be named by a number: `SELECT -5` makes the column -5#36
    r"(?:[-~!']{0,8}(?![\d.]+(?:[eE]-?\d+)?#)[\w$.@][\w$.@-]*)?#\d+L?(?:\.[\w$]+)*:?"
)
_BACKTICKED = re.compile(r"`[^`]*`(?:\.(?:`[^`]*`|\w+)){0,64}(?:#\d+L?)?(?=[\s(),\[\]]|\Z)")
_FUNCTION = re.compile(r"[-~!]{0,8}[A-Za-z_$][\w$.]*")
_FIELD = re.compile(r"(?:\.[A-Za-z_$][\w$]*)+")
_NAME = re.compile(r"[A-Za-z_$][\w$.]*(?:#\d+L?)?")
_TYPE = re.compile(
    r"(?:(?:decimal|dec|numeric|char|varchar|timestamp|time)\(\d+(?:,\s?-?\d+)?\)"
    r"|interval [a-z]+(?: to [a-z]+)?|timestamp_[a-z]{3}|(?:big|small|tiny)?int|integer|long|short|byte|double|float"
    r"|real|boolean|string(?: collate \w+)?|binary|date|timestamp|time|void|variant|decimal|(?:array|map|struct)(?=<))",
    re.IGNORECASE,
)
_NESTED_TYPE = re.compile(r"[\w\s:,<>().`#$-]*")
_ANGLE = re.compile(r"[<>]")
_OPERATORS = word_set("""
    = == <=> != <> < <= > >= + - * / % & && | || ^ ~ ! -> => : :: << >> >>>
""")
_KEYWORDS = word_set("""
    AND OR NOT IN INSET LIKE ILIKE RLIKE BETWEEN IS NULL CASE WHEN THEN ELSE END ASC DESC NULLS FIRST LAST FILTER WHERE
    DISTINCT ESCAPE EXISTS OVER PARTITION ORDER BY DIV div FROM true false null if else distinct lambda RowFrame
    RangeFrame
""")
_BEFORE_OPERAND = frozenset(["LIKE", "ILIKE", "RLIKE", "THEN", "ELSE"])
_AFTER_OPERAND = frozenset(["WHEN", "ELSE", "END"])
_AT_END = Token(Kind.SIGN, "")
_BEFORE_NAME = frozenset(["as", "AS"])


def mask_catalyst(text: str) -> str:
    """The printed Catalyst expression with `?` for every word that isn't surely a name, function, operator or type.

    Masks too much rather than too little: a wrong name is worse than a missing one. `IN (a, b)` becomes `IN (?)`.
    """
    scanner = _CatalystScanner(text)
    tokens = folded(_merged(scanner.tokens()))
    return joined(tokens, scanner.trailing_gap)


def _merged(tokens: Iterator[Token]) -> Iterator[Token]:
    """Neighbouring values are the words of one text; where an operand is missing, the text was empty."""
    before = Token(Kind.SIGN, "")
    for token in tokens:
        if before.kind is token.kind is Kind.MARK:
            continue
        if _lacks_operand(before, token):
            yield Token(Kind.MARK, MARK, token.gap or _gap_after(before))
            token = token._replace(gap=" " if token.kind is Kind.WORD else "")  # noqa: PLW2901 - its gap went to the mark
        yield token
        before = token
    if _lacks_operand(before, _AT_END):
        yield Token(Kind.MARK, MARK, _gap_after(before))


def _lacks_operand(before: Token, token: Token) -> bool:
    if token.text in _AFTER_OPERAND:
        return before.text in _BEFORE_OPERAND
    if token.text not in {",", ")", "]", ""} or not before.text:
        return False
    if before.text in {"(", "["}:
        return token.text == ","
    return before.text in _BEFORE_OPERAND or (before.kind is Kind.SIGN and before.text not in {")", "]"})


def _gap_after(before: Token) -> str:
    return "" if before.text in {"(", "["} else " "


@dataclass
class _CatalystScanner:
    text: str
    trailing_gap: str = ""

    def tokens(self) -> Iterator[Token]:
        at, before = 0, ""
        while True:
            gap = _GAP.match(self.text, at)
            start = gap.end() if gap else at
            if start >= len(self.text):
                self.trailing_gap = self.text[at:start]
                return
            kind, end = self._at(start, before, is_adjacent=start == at)
            shown = MARK if kind is Kind.MARK else self.text[start:end]
            yield Token(kind, shown, self.text[at:start])
            at, before = end, self.text[start:end]

    def _at(self, start: int, before: str, *, is_adjacent: bool) -> tuple[Kind, int]:
        if self.text[start] in "(),[]":
            return Kind.SIGN, start + 1
        value = _QUOTED_VALUE.match(self.text, start)
        if value:
            return Kind.MARK, value.end()
        quoted = _BACKTICKED.match(self.text, start)
        if quoted:
            return Kind.QUOTED, quoted.end()
        if before in _BEFORE_NAME:
            end = self._end_of_type(start) or _end(_NAME, self.text, start)
            if end and self.text[end : end + 1] in {"", " ", ",", ")", "]"}:
                return Kind.WORD, end
        return self._chunk(start, before, is_adjacent=is_adjacent)

    def _chunk(self, start: int, before: str, *, is_adjacent: bool) -> tuple[Kind, int]:
        end = _end(_CHUNK, self.text, start)
        chunk = self.text[start:end]
        if chunk in _OPERATORS:
            return Kind.SIGN, end
        if chunk in _KEYWORDS or chunk in _BEFORE_NAME or self._is_name(chunk, end):
            return Kind.WORD, end
        if is_adjacent and before in {")", "]"} and _FIELD.fullmatch(chunk):
            return Kind.WORD, end
        return Kind.MARK, end

    def _is_name(self, chunk: str, end: int) -> bool:
        if _ATTRIBUTE.fullmatch(chunk):
            return True
        return self.text[end : end + 1] == "(" and _FUNCTION.fullmatch(chunk) is not None

    def _end_of_type(self, start: int) -> int:
        found = _TYPE.match(self.text, start)
        if not found or self.text[found.end() : found.end() + 1] != "<":
            return found.end() if found else 0
        nested = _end(_NESTED_TYPE, self.text, found.end())
        depth = 0
        for angle in _ANGLE.finditer(self.text, found.end(), nested):
            depth += 1 if angle.group() == "<" else -1
            if depth == 0:
                return angle.end()
        return 0


def _end(pattern: re.Pattern[str], text: str, start: int) -> int:
    found = pattern.match(text, start)
    return found.end() if found else 0
