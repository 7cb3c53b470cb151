"""Data values are taken out of SQL: what a statement does stays readable, which customer it did it to doesn't."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from headwater.events.redaction._folding import folded
from headwater.events.redaction._names import word_set
from headwater.events.redaction._scanner import END, LITERALS, NAMES, SqlScanner, SqlToken, TokenKind, joined

_TYPED_LITERALS = frozenset(["DATE", "TIME", "TIMESTAMP", "TIMESTAMP_LTZ", "TIMESTAMP_NTZ"])
_SIZED_TYPES = word_set("""
    BINARY CHAR CHARACTER DEC DECIMAL FLOAT NUMERIC STRING TIME TIMESTAMP VARCHAR
""")
_UNITS = word_set("""
    YEAR YEARS QUARTER QUARTERS MONTH MONTHS WEEK WEEKS DAY DAYS HOUR HOURS MINUTE MINUTES SECOND SECONDS
    MILLISECOND MILLISECONDS MICROSECOND MICROSECONDS NANOSECOND NANOSECONDS
""")
_BEFORE_EXPRESSION = word_set("""
    ALL AND ANY ARRAY AS BETWEEN BY CASE DEFAULT DISTINCT DIV ELSE ESCAPE FOR FROM HAVING ILIKE IN INSET
    INTERVAL IS LIKE LIMIT NOT OF OFFSET ON OR QUALIFY RANGE REGEXP RETURN RLIKE ROWS SELECT SET SOME THEN TO
    USING VALUES WHEN WHERE WITH
""")
_SIGNS = frozenset("+-")


def mask_literals(text: str, *, double_quoted_names: bool = False) -> str:
    """The statement or expression with `?` for every literal, and without comments, which may hold any.

    Texts in all of Spark's quotes, numbers with their sign, dates, timestamps, intervals and binaries go; `TRUE`,
    `FALSE` and `NULL` tell nothing of the data and stay, as do the sizes of types (`decimal(10,2)`). `IN (1, 2, 3)`
    becomes `IN (?)`. Double quotes hold a text, as in Spark, unless `double_quoted_names`. Any text is taken; of one
    that isn't SQL rather too much is masked.
    """
    scanner = SqlScanner(text, double_quoted_names)
    tokens = masked_tokens(list(scanner.tokens()))
    return joined(tokens, scanner.trailing_gap)


def masked_tokens(tokens: list[SqlToken]) -> list[SqlToken]:
    """The tokens with a mark for each literal."""
    masker = _Masker(tokens)
    masker.run()
    return folded(masker.out)


@dataclass
class _Masker:
    tokens: list[SqlToken]
    out: list[SqlToken] = field(default_factory=list[SqlToken])
    angles: int = 0

    def run(self) -> None:
        at = 0
        while at < len(self.tokens):
            length = self._literal_length(at)
            if length:
                self._emit_mark(self.tokens[at].masked())
                at += length
                continue
            sized = self._size_length(at)
            self._follow_angles(at)
            self.out += self.tokens[at : at + 1 + sized]
            at += 1 + sized

    def _at(self, at: int) -> SqlToken:
        return self.tokens[at] if 0 <= at < len(self.tokens) else END

    def _literal_length(self, at: int) -> int:
        """How many tokens the literal has that begins here; 0 if none does."""
        token = self._at(at)
        if token.kind is TokenKind.STRING:
            return self._strings_length(at)
        if token.kind in LITERALS:
            return 1
        if token.word in _TYPED_LITERALS and self._at(at + 1).kind is TokenKind.STRING:
            return 1 + self._strings_length(at + 1)
        return self._interval_length(at) if token.word == "INTERVAL" else 0

    def _strings_length(self, at: int) -> int:
        """Neighbouring texts are one text in Spark."""
        end = at
        while self._at(end).kind is TokenKind.STRING:
            end += 1
        return end - at

    def _interval_length(self, at: int) -> int:
        end = at + 1
        while True:
            value = end + (self._at(end).text in _SIGNS)
            if self._at(value).kind not in {TokenKind.STRING, TokenKind.NUMBER}:
                break
            unit = value + 1
            if self._at(unit).word not in _UNITS:
                end = unit if end == at + 1 and self._at(value).kind is TokenKind.STRING else end
                break
            end = unit + 1
        if end == at + 1:
            return 0
        return end - at + (2 if self._at(end).word == "TO" and self._at(end + 1).word in _UNITS else 0)

    def _emit_mark(self, mark: SqlToken) -> None:
        while self._ends_in_sign():
            mark = mark._replace(gap=self.out.pop().gap)
        if self.out and self.out[-1].kind is TokenKind.MARK and not mark.gap:
            return  # 1.2.3 and the like: pieces of one value
        self.out.append(mark)

    def _ends_in_sign(self) -> bool:
        """Whether a sign stands last that belongs to the number behind it, and not between two operands."""
        if not self.out or self.out[-1].text not in _SIGNS:
            return False
        before = self.out[-2] if len(self.out) > 1 else END
        if before.kind is TokenKind.SIGN:
            return before.text not in {")", "]"}
        return before.word in _BEFORE_EXPRESSION

    def _size_length(self, at: int) -> int:
        """How many tokens the size behind a type's name has: the `(10, 2)` of `decimal(10, 2)`."""
        if self._at(at).word not in _SIZED_TYPES or self._at(at + 1).text != "(" or not self._is_type(at):
            return 0
        numbers = list(self._sizes(at + 2))
        end = at + 2 + len(numbers)
        return end - at if numbers and numbers[-1].kind is TokenKind.NUMBER and self._at(end).text == ")" else 0

    def _sizes(self, at: int) -> Iterator[SqlToken]:
        for offset in range(4):
            token = self._at(at + offset)
            if not (token.kind is TokenKind.NUMBER and token.text.isdigit()) and token.text not in {",", "-"}:
                return
            yield token

    def _is_type(self, at: int) -> bool:
        """`char(65)` behind AS, `::`, a column's name or in `<…>` is a type; elsewhere it is a call."""
        before = self._at(at - 1)
        if before.kind in NAMES:
            return before.word == "AS" or before.word not in _BEFORE_EXPRESSION
        return before.text in {"", ":", "<"} or (self.angles > 0 and before.text == ",")

    def _follow_angles(self, at: int) -> None:
        text = self._at(at).text
        if text == "<" and self._at(at - 1).word in {"ARRAY", "MAP", "STRUCT"}:
            self.angles += 1
        elif text == ">" and self.angles:
            self.angles -= 1
