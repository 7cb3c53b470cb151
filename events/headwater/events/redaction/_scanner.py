"""A scanner for the texts of Spark SQL: every text gives tokens, and their texts joined give the text again.

Comments and white space are no tokens of their own but the gap before a token, so that who looks at a token's
neighbours sees what Spark's parser sees.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Final, NamedTuple


class TokenKind(Enum):
    WORD = auto()
    QUOTED = auto()  # `a name`
    STRING = auto()
    NUMBER = auto()
    EXPR_ID = auto()  # the #12 of name#12
    MARK = auto()  # ?, where a literal stood or a parameter stands
    SIGN = auto()  # any other single character


class SqlToken(NamedTuple):
    kind: TokenKind
    text: str
    gap: str = ""

    @property
    def word(self) -> str:
        """The word in upper case; empty for what isn't a word."""
        return self.text.upper() if self.kind is TokenKind.WORD else ""

    def masked(self) -> SqlToken:
        return self._replace(kind=TokenKind.MARK, text=MARK)


MARK: Final = "?"
LITERALS: Final = frozenset([TokenKind.STRING, TokenKind.NUMBER, TokenKind.MARK])
NAMES: Final = frozenset([TokenKind.WORD, TokenKind.QUOTED])
END: Final = SqlToken(TokenKind.SIGN, "")

_SPACE = re.compile(r"\s+")
_LINE_COMMENT = re.compile(r"--(?:\\\n|[^\n])*")
_COMMENT_EDGE = re.compile(r"/\*|\*/")
_STRING = {
    quote: re.compile(rf"{quote}(?:[^{quote}\\]+|\\.|{quote}{quote})*(?:{quote}|\\?\Z)", re.DOTALL) for quote in "'\""
}
_PREFIXED_STRING = re.compile(r"[rRxX](?:'[^']*(?:'|\Z)|\"[^\"]*(?:\"|\Z))")  # raw texts and binaries know no escapes
_BACKTICKED = re.compile(r"`(?:[^`]|``)*`")
_WORD = re.compile(r"\w+")
_NUMBER = re.compile(r"(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?(?:[bB][dD]|[lLsSyYdDfF])?(?!\w)")
_HEX_NUMBER = re.compile(r"0[xX][0-9a-fA-F]+(?!\w)")
_EXPR_ID = re.compile(r"#\d+L?(?!\w)")


@dataclass
class SqlScanner:
    """`double_quoted_names`: as under spark.sql.ansi.doubleQuotedIdentifiers, where "x" is a name and not a text."""

    text: str
    double_quoted_names: bool = False
    trailing_gap: str = field(default="", init=False)

    def tokens(self) -> Iterator[SqlToken]:
        at, before = 0, END
        while True:
            start = _skip_gap(self.text, at)
            gap = _visible_gap(self.text, at, start)
            if start == len(self.text):
                self.trailing_gap = gap
                return
            kind, end = self._at(start, before, is_adjacent=start == at)
            before = SqlToken(kind, self.text[start:end], gap)
            at = end
            yield before

    def _at(self, start: int, before: SqlToken, *, is_adjacent: bool) -> tuple[TokenKind, int]:
        char = self.text[start]
        follows_dot = is_adjacent and before.text == "."
        if char.isalnum() or char == "_":
            return self._word_or_number(start, is_field=follows_dot)
        if char == "." and not (is_adjacent and (before.kind in NAMES or before.text in {")", "]"})):
            number = _NUMBER.match(self.text, start)
            return (TokenKind.NUMBER, number.end()) if number else (TokenKind.SIGN, start + 1)
        if char in _STRING:
            is_name = char == '"' and self.double_quoted_names
            return TokenKind.QUOTED if is_name else TokenKind.STRING, _end(_STRING[char], self.text, start)
        return self._sign(char, start)

    def _sign(self, char: str, start: int) -> tuple[TokenKind, int]:
        if char == "?":
            return TokenKind.MARK, start + 1
        if char == "`":
            end = _end(_BACKTICKED, self.text, start)
            return (TokenKind.QUOTED, end) if end > start + 1 else (TokenKind.SIGN, start + 1)
        if char == "#":
            end = _end(_EXPR_ID, self.text, start)
            return (TokenKind.EXPR_ID, end) if end > start + 1 else (TokenKind.SIGN, start + 1)
        return TokenKind.SIGN, start + 1

    def _word_or_number(self, start: int, *, is_field: bool) -> tuple[TokenKind, int]:
        if self.text[start] in "rRxX":
            found = _PREFIXED_STRING.match(self.text, start)
            if found:
                return TokenKind.STRING, found.end()
        end = _end(_WORD, self.text, start)
        if is_field or not self.text[start].isdigit():
            return TokenKind.WORD, end
        number = _HEX_NUMBER.match(self.text, start) or _NUMBER.match(self.text, start)
        return (TokenKind.NUMBER, number.end()) if number else (TokenKind.WORD, end)


def joined(tokens: list[SqlToken], trailing_gap: str = "") -> str:
    """The text of these tokens."""
    return "".join([part for token in tokens for part in (token.gap, token.text)] + [trailing_gap])


def _end(pattern: re.Pattern[str], text: str, start: int) -> int:
    found = pattern.match(text, start)
    return found.end() if found else start + 1


def _skip_gap(text: str, at: int) -> int:
    while True:
        space = _SPACE.match(text, at)
        if space:
            at = space.end()
        if text.startswith("--", at):
            at = _end(_LINE_COMMENT, text, at)
        elif text.startswith("/*", at):
            at = _end_of_comment(text, at)
        elif not space:
            return at


def _end_of_comment(text: str, at: int) -> int:
    depth = 0
    for edge in _COMMENT_EDGE.finditer(text, at):
        depth += 1 if edge.group() == "/*" else -1
        if depth == 0:
            return edge.end()
    return len(text)


def _visible_gap(text: str, start: int, end: int) -> str:
    """White space as it is; comments may hold anything and leave a single space."""
    gap = text[start:end]
    return gap if not gap.strip() else " "
