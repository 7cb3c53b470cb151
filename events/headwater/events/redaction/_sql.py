"""Data values are taken out of SQL: what a statement does stays readable, which customer it did it to doesn't."""

from __future__ import annotations

import re
from typing import Final

from headwater.events.redaction._folding import lazy, word_set

MARK: Final = "?"
_SINGLE: Final = r"'[^'\\]*(?:(?:\\.|'')[^'\\]*)*(?:'|\\?\Z)"
_DOUBLE: Final = _SINGLE.replace("'", '"')
_RAW: Final = r"[rRxX](?<!\w.)(?:'[^']*(?:'|\Z)|\"[^\"]*(?:\"|\Z))"  # raw texts and binaries know no escapes
_BACKTICKED: Final = r"`[^`]*(?:``[^`]*)*`"
_QUOTED: Final = f"{_SINGLE}|{_DOUBLE}|{_RAW}|{_BACKTICKED}"
"""Texts and names in all of Spark's quotes; a text that isn't closed goes to the end."""
_COMMENT: Final = lazy(rf"(?s)(?:{_QUOTED})|(?P<line>--(?:\\\n|[^\n])*)|(?P<block>/\*)")
_COMMENT_EDGE: Final = lazy(r"/\*|\*/")

_SUFFIX: Final = r"(?:[eE][+-]?\d+)?(?:[bB][dD]|[lLsSyYdDfF])?(?!\w)"
_FURTHER: Final = rf"(?:\.\d+{_SUFFIX})*"  # 1.2.3 and the like are one value
_DIGITS: Final = rf"(?:(?<=0)[xX][0-9a-fA-F]+(?!\w)|\d*(?:\.\d*)?{_SUFFIX}){_FURTHER}"
_FRACTION: Final = rf"\d+{_SUFFIX}{_FURTHER}"
_UNIT: Final = r"(?i:YEAR|QUARTER|MONTH|WEEK|DAY|HOUR|MINUTE|SECOND|MILLISECOND|MICROSECOND|NANOSECOND)[sS]?(?!\w)"
_SIZED: Final = (
    "(?i:BINARY|CHAR|CHARACTER|DEC|DECIMAL|FLOAT|NUMERIC|STRING|TIME|TIMESTAMP|VARCHAR)"
    r"\s*\(\s*\d+\s*(?:,\s*(?:-\s*)?\d+\s*)?\)"
)
_SIZE: Final = lazy(r"(?:-\s*)?\d+")
_BEFORE: Final = lazy(r"(\w+|\S)\s*\Z")
_FAR: Final = 40
_ENDS_OPERAND: Final = frozenset(")]'\"`?.")
_BEFORE_EXPRESSION: Final = word_set("""
    ALL AND ANY ARRAY AS BETWEEN BY CASE DEFAULT DISTINCT DIV ELSE ESCAPE FOR FROM HAVING ILIKE IN INSET
    INTERVAL IS LIKE LIMIT NOT OF OFFSET ON OR QUALIFY RANGE REGEXP RETURN RLIKE ROWS SELECT SET SOME THEN TO
    USING VALUES WHEN WHERE WITH
""")
_LIST: Final = lazy(rf"(?P<name>{_BACKTICKED})|(?:\[|\b(?i:IN\s*\(|VALUES\b|INSET\b))[^()\[\]`]*")
_ITEMS: Final = lazy(r"((?:[,(\[]|\b(?i:VALUES|INSET)\b)\s*\?)(?:\s*,\s*\?)+(?!\s*[^\s\w,)\]])")
_ROWS: Final = lazy(rf"{_BACKTICKED}|(?P<row>[(\[](?:[?,\s]|(?i:NULL|TRUE|FALSE)\b)*[)\]])(?:\s*,\s*(?P=row))+")

_GAPS: Final = lazy(rf"(?s)({_QUOTED})|[^\S ]\s*| \s+")
_COUNTED: Final = lazy(
    rf"(?s)(?P<kept>{_QUOTED})"
    rf"|(?: ?(?:#\d+L?(?!\w)|(?:, ?)?\[ ?(?i:PLAN_ID|ID) ?= ?(?:\?|#\d+L?(?!\w)|\d{_DIGITS}) ?\]))+"
    r"(?P<gap>(?=[-/*\w'\"`?]|\.\d))?"
    r"|(?P<lambda>(?<!\w)lambda \w+?)_\d+(?!\w)|(?P<at>@)(?:v\d+|[0-9a-f]{4,16})(?!\w)"
    r"|(?P<name>_gen_alias_|_common_expr_|_groupingexpression_|_joinkey_|_w|_we|_extract_|pythonUDF|snapshot_id_"
    r"|at_timestamp_)\d+(?!\w)"
)


def mask_literals(text: str, *, double_quoted_names: bool = False) -> str:
    """The statement or expression with `?` for every literal, and without comments, which may hold any.

    Texts in all of Spark's quotes, numbers with their sign, dates, timestamps, intervals and binaries go; `TRUE`,
    `FALSE` and `NULL` tell nothing of the data and stay, as do the sizes of types (`decimal(10,2)`). `IN (1, 2, 3)`
    becomes `IN (?)`. Double quotes hold a text, as in Spark, unless `double_quoted_names`. Any text is taken; of one
    that isn't SQL rather too much is masked.
    """
    return _without_repetition(_DATA[double_quoted_names].sub(_without_data, _without_comments(text)))


def canonical_text(text: str) -> str:
    """The statement or expression as a fingerprint may see it: equal for equal shapes.

    Beyond `mask_literals`: expression ids (`name#12L`), plan ids (`[plan_id=12]`, `[id=#12]`), the counters in names
    that Spark makes up (`lambda x_1#3`, `_gen_alias_7`), versions in a table's name (`t@v12`, `t.snapshot_id_12`) and
    the addresses of objects (`Foo@1a2b3c4d`) go, and any white space is one space.
    """
    spaced = _GAPS.sub(lambda found: found[1] or " ", _without_comments(text))
    masked = _DATA[False].sub(_without_data, _COUNTED.sub(_without_count, spaced))
    return _without_repetition(masked).strip()


def _without_comments(text: str) -> str:
    """The text with a space in the place of comments and the white space around them."""
    if "--" not in text and "/*" not in text:
        return text
    parts: list[str] = []
    done = at = 0
    while found := _COMMENT.search(text, at):
        at = found.end()
        if found.lastgroup:
            parts.append(text[done : found.start()])
            done = at = _end_of_comment(text, found.start()) if found["block"] else at
    if not parts:
        return text
    parts.append(text[done:].lstrip())
    return " ".join(filter(None, [parts[0].rstrip(), *map(str.strip, parts[1:-1]), parts[-1]]))


def _end_of_comment(text: str, at: int) -> int:
    depth = 0
    for edge in _COMMENT_EDGE.finditer(text, at):
        depth += 1 if edge.group() == "/*" else -1
        if depth == 0:
            return edge.end()
    return len(text)


def _data(*, double_quoted_names: bool) -> re.Pattern[str]:
    text, names, ends_name = f"{_SINGLE}|{_RAW}|{_DOUBLE}", _BACKTICKED, r"\w)\]`"
    if double_quoted_names:
        text, names, ends_name = f"{_SINGLE}|{_RAW}", f"{_BACKTICKED}|{_DOUBLE}", r"\w)\]`\""
    texts = rf"(?:{text})(?:\s*(?:{text}))*"  # neighbours are one text in Spark
    value = rf"\s*(?:[+-]\s*)?(?:{text}|\d{_DIGITS}|\.{_FRACTION})\s*{_UNIT}"
    number = rf"\d(?<![\w.].){_DIGITS}|\.(?<![{ends_name}].){_FRACTION}"
    date = r"(?i:DATE|TIME|TIMESTAMP|TIMESTAMP_LTZ|TIMESTAMP_NTZ)(?!\w)"
    interval = rf"(?i:INTERVAL)(?!\w)(?:(?:{value})+|\s*(?:[+-]\s*)?(?:{text}))(?:\s*(?i:TO)(?!\w)\s*{_UNIT})?"
    return lazy(
        rf"(?s)(?P<name>{names}|#\d+L?(?!\w|\.\d))|(?<!\w)(?P<type>{_SIZED})"
        rf"|(?P<signs>(?:[+-]\s{{0,8}}){{0,16}})(?P<literal>{texts}|\?|{number}|(?<!\w)(?:{date}\s*{texts}|{interval}))"
    )


_DATA: Final = {switch: _data(double_quoted_names=switch) for switch in (False, True)}


def _without_data(found: re.Match[str]) -> str:
    kind = found.lastgroup
    if kind == "name":
        return found.group()
    if kind == "type":
        return found.group() if _is_type(found) else _SIZE.sub(MARK, found.group())
    signs = found["signs"]
    if not signs or not _is_operand(_before(found)):
        return MARK
    further = signs[1:]
    return f"{signs[0]}{further[: len(further) - len(further.lstrip())]}{MARK}"


def _before(found: re.Match[str]) -> str:
    """The word or sign before it, in upper case; nothing at the beginning of the text."""
    start = found.start()
    last = _BEFORE.search(found.string[max(0, start - _FAR) : start])
    return last[1].upper() if last else ""


def _is_operand(before: str) -> bool:
    """Whether a sign behind this is an operator and not a number's own."""
    return before not in _BEFORE_EXPRESSION and (_is_word(before) or before[-1:] in _ENDS_OPERAND)


def _is_word(before: str) -> bool:
    return before[-1:].isalnum() or before[-1:] == "_"


def _is_type(found: re.Match[str]) -> bool:
    """`char(65)` behind AS, `::`, a column's name or in `<…>` is a type; elsewhere it is a call."""
    before = _before(found)
    if _is_word(before):
        return before == "AS" or before not in _BEFORE_EXPRESSION
    return before in {"", ":", "<", "`", '"'} or (before == "," and found.string.startswith(">", found.end()))


def _without_repetition(text: str) -> str:
    """Equal neighbours in lists of literals are kept once: `IN (?, ?)` is `IN (?)`, so that no text changes with their
    number. The same holds for the rows of VALUES, for Catalyst's `INSET ?, ?` and for `[?, ?]`."""
    if "?" not in text:
        return text
    listed = _LIST.sub(lambda found: found["name"] or _ITEMS.sub(r"\1", found.group()), text)
    return _ROWS.sub(lambda found: found["row"] or found.group(), listed)


def _without_count(found: re.Match[str]) -> str:
    kind = found.lastgroup
    if kind == "gap":
        return " "  # what was apart stays apart
    return "@v" if kind == "at" else found[kind] if kind else ""
