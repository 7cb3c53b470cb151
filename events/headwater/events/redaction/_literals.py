"""Data values are taken out of SQL: what a statement does stays readable, which customer it did it to doesn't.

One pattern finds what is a literal, or tells whether one begins, and passes over all else. Comments are gone by then.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cache
from typing import Final

from headwater.events.redaction._folding import MARK, without_repetition
from headwater.events.redaction._names import word_set

_SINGLE: Final = r"'[^'\\]*(?:(?:\\.|'')[^'\\]*)*(?:'|\\?\Z)"
_DOUBLE: Final = _SINGLE.replace("'", '"')
_RAW: Final = r"[rRxX](?<!\w.)(?:'[^']*(?:'|\Z)|\"[^\"]*(?:\"|\Z))"  # raw texts and binaries know no escapes
_BACKTICKED: Final = r"`[^`]*(?:``[^`]*)*`"
QUOTED: Final = f"{_SINGLE}|{_DOUBLE}|{_RAW}|{_BACKTICKED}"
"""Texts and names in all of Spark's quotes; a text that isn't closed goes to the end."""
_SUFFIX: Final = r"(?:[eE][+-]?\d+)?(?:[bB][dD]|[lLsSyYdDfF])?(?!\w)"
_FURTHER: Final = rf"(?:\.\d+{_SUFFIX})*"  # 1.2.3 and the like are one value
_DIGITS: Final = rf"(?:(?<=0)[xX][0-9a-fA-F]+(?!\w)|\d*(?:\.\d*)?{_SUFFIX}){_FURTHER}"
NUMBER: Final = rf"\d{_DIGITS}"
_FRACTION: Final = rf"\d+{_SUFFIX}{_FURTHER}"
_UNIT: Final = r"(?i:YEAR|QUARTER|MONTH|WEEK|DAY|HOUR|MINUTE|SECOND|MILLISECOND|MICROSECOND|NANOSECOND)[sS]?(?!\w)"
_SIZED: Final = (
    "(?i:BINARY|CHAR|CHARACTER|DEC|DECIMAL|FLOAT|NUMERIC|STRING|TIME|TIMESTAMP|VARCHAR)"
    r"(?=\s*(?P<size>\(\s*\d+\s*(?:,\s*(?:-\s*)?\d+\s*)?\)))"
)
_BEFORE_EXPRESSION: Final = word_set("""
    ALL AND ANY ARRAY AS BETWEEN BY CASE DEFAULT DISTINCT DIV ELSE ESCAPE FOR FROM HAVING ILIKE IN INSET
    INTERVAL IS LIKE LIMIT NOT OF OFFSET ON OR QUALIFY RANGE REGEXP RETURN RLIKE ROWS SELECT SET SOME THEN TO
    USING VALUES WHEN WHERE WITH
""")
_COMMENT: Final = re.compile(rf"(?:{QUOTED})|(?P<comment>--|/\*)", re.DOTALL)
_LINE_COMMENT: Final = re.compile(r"--(?:\\\n|[^\n])*")
_COMMENT_EDGE: Final = re.compile(r"/\*|\*/")
_SPACE: Final = re.compile(r"\s*")
_LAST_WORD: Final = re.compile(r"\w+\Z")
_LONGEST_WORD: Final = 12
_SIGNS: Final = frozenset("+-")
_SIGNS_AND_SPACE: Final = "+-" + "".join(filter(str.isspace, map(chr, range(0x3001))))


def mask_literals(text: str, *, double_quoted_names: bool = False) -> str:
    """The statement or expression with `?` for every literal, and without comments, which may hold any.

    Texts in all of Spark's quotes, numbers with their sign, dates, timestamps, intervals and binaries go; `TRUE`,
    `FALSE` and `NULL` tell nothing of the data and stay, as do the sizes of types (`decimal(10,2)`). `IN (1, 2, 3)`
    becomes `IN (?)`. Double quotes hold a text, as in Spark, unless `double_quoted_names`. Any text is taken; of one
    that isn't SQL rather too much is masked.
    """
    return without_repetition(masked(without_comments(text), double_quoted_names=double_quoted_names))


def masked(text: str, *, double_quoted_names: bool = False) -> str:
    """The text, which has no comments, with a mark in the place of each literal."""
    return _Masker(text, double_quoted_names).masked()


def without_comments(text: str) -> str:
    """The text with a space in the place of comments and the white space around them."""
    pieces: list[str] = []
    done = at = 0
    while found := _COMMENT.search(text, at):
        at = found.end()
        if found["comment"]:
            at = _skip_gap(text, found.start())
            pieces += (text[done : found.start()].rstrip(), " ")
            done = at
    return "".join([*pieces, text[done:]])


def _skip_gap(text: str, at: int) -> int:
    while True:
        comment = _LINE_COMMENT.match(text, at)
        if comment:
            at = comment.end()
        elif text.startswith("/*", at):
            at = _end_of_comment(text, at)
        else:
            return at
        space = _SPACE.match(text, at)
        at = space.end() if space else at


def _end_of_comment(text: str, at: int) -> int:
    depth = 0
    for edge in _COMMENT_EDGE.finditer(text, at):
        depth += 1 if edge.group() == "/*" else -1
        if depth == 0:
            return edge.end()
    return len(text)


@cache
def _pattern(*, double_quoted_names: bool) -> re.Pattern[str]:
    text, names, ends_name = f"{_SINGLE}|{_RAW}|{_DOUBLE}", _BACKTICKED, r"\w)\]`"
    if double_quoted_names:
        text, names, ends_name = f"{_SINGLE}|{_RAW}", f"{_BACKTICKED}|{_DOUBLE}", r"\w)\]`\""
    texts = rf"(?:{text})(?:\s*(?:{text}))*"  # neighbours are one text in Spark
    value = rf"\s*(?:[+-]\s*)?(?:{text}|{NUMBER}|\.{_FRACTION})\s*{_UNIT}"
    number = rf"\d(?<![\w.].){_DIGITS}|\.(?<![{ends_name}].){_FRACTION}"
    date = r"(?i:DATE|TIME|TIMESTAMP|TIMESTAMP_LTZ|TIMESTAMP_NTZ)(?!\w)"
    interval = rf"(?i:INTERVAL)(?!\w)(?:(?:{value})+|\s*(?:[+-]\s*)?(?:{text}))(?:\s*(?i:TO)(?!\w)\s*{_UNIT})?"
    return re.compile(
        rf"(?P<name>{names}|#\d+L?(?!\w|\.\d))"
        rf"|(?P<literal>{texts}|\?|{number}|(?<!\w)(?:{date}\s*{texts}|{interval}))"
        r"|(?P<close>>)"
        rf"|(?<!\w)(?:(?P<open>(?i:ARRAY|MAP|STRUCT)\s*<)|(?P<type>{_SIZED}))",
        re.DOTALL,
    )


@dataclass
class _Masker:
    text: str
    double_quoted_names: bool
    pieces: list[str] = field(default_factory=list[str])
    done: int = 0
    """Until where the text is in the pieces."""
    last: tuple[int, str] = (0, "")
    """Where what the pattern found before ended, and what it was."""
    angles: int = 0
    shown_until: int = 0

    def masked(self) -> str:
        for found in _pattern(double_quoted_names=self.double_quoted_names).finditer(self.text):
            kind = found.lastgroup or ""
            if kind == "literal":
                self._mask(*found.span())
            elif kind == "open":
                self.angles += 1
            elif kind == "close":
                self.angles = max(0, self.angles - 1)
            elif found["type"] and self._is_type(found.start()):
                self.shown_until = found.end("size")
            self.last = found.end(), kind
        return "".join([*self.pieces, self.text[self.done :]])

    def _mask(self, start: int, end: int) -> None:
        """Put a mark in the place of a literal and its signs, behind the white space before these."""
        if start < self.shown_until:
            return
        begin, kind = self.last
        if begin < start or kind != "literal":  # else a piece of the same value
            between = self.text[begin:start]
            hidden = self._signs(between, kind) if between.rstrip()[-1:] in _SIGNS else ""
            gap = hidden[: len(hidden) - len(hidden.lstrip())]
            self.pieces += (self.text[self.done : start - len(hidden)], gap, MARK)
        self.done = end

    def _signs(self, between: str, kind: str) -> str:
        """The signs at the end of the text that are the number's own, with the white space around them."""
        kept = between.rstrip(_SIGNS_AND_SPACE)
        signs = between[len(kept) :]
        return signs.lstrip()[1:] if self._is_operand(kept, kind) else signs

    def _is_operand(self, text: str, kind: str) -> bool:
        """Whether a sign behind this text is an operator and not a number's own."""
        if not text:
            return kind in {"literal", "name"}
        word = _last_word(text)
        return word not in _BEFORE_EXPRESSION if word else text[-1] in ")]"

    def _is_type(self, start: int) -> bool:
        """`char(65)` behind AS, `::`, a column's name or in `<…>` is a type; elsewhere it is a call."""
        begin, kind = self.last
        text = self.text[begin:start].rstrip()
        if not text:
            return kind in {"", "open"} or self.text[begin - 1] in '`"'
        word = _last_word(text)
        if word:
            return word == "AS" or word not in _BEFORE_EXPRESSION
        return text[-1] in ":<" or (self.angles > 0 and text[-1] == ",")


def _last_word(text: str) -> str:
    """The word that the text ends with, in upper case; of a long one its end."""
    found = _LAST_WORD.search(text[-_LONGEST_WORD:])
    return found.group().upper() if found else ""
