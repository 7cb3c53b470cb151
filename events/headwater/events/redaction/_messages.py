"""Messages of errors without the data in them: Spark, databases and Python quote values, and whole statements.

What is fixed stays: words, the error condition, SQLSTATE, names of classes, columns in backticks, types, paths, lines
of code. Every value in quotes, every number, every row in brackets becomes `?`, and what quotes a statement or a plan
goes as a whole. In doubt a message loses too much.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

_FRAME: Final = r"\n[ \t]*(?:at [\w.$/]+\(|Caused by: |Driver stacktrace)"
_STOP: Final = rf"(?={_FRAME}|\Z)"
_STATEMENT = re.compile(rf"(?s)(== [A-Z][^\n=]{{0,200}} ==)[ \t]*\n.*?{_STOP}")
_PLAN = re.compile(rf"(?s);\n['!]{{0,2}}[A-Z]\w*[ \n(].*?{_STOP}|\n[^\n]*\n[ :|]*[+:]- .*?{_STOP}")
_TRACEBACK = re.compile(
    r"(?s)(Traceback \(most recent call last\):\n)((?:[ \t][^\n]*\n)*)([\w.]*)"
    rf"(?::(?:(?!{_FRAME}|\n\n(?:During|The above) |\nTraceback \().)*)?"
)
_SOURCE_LINE = re.compile(r"(?m)^[ \t]+(?![ \t]|File )[^\n]*\n")
# What somebody wrote into raise_error() is a literal of the statement.
_RAISED = re.compile(
    rf"(?s)(\[USER_RAISED_EXCEPTION\] |java\.lang\.RuntimeException: (?!\[[A-Z_.]+\])).*?(?= SQLSTATE: |{_FRAME}|\Z)"
)
_RAISES_ANYTHING: Final = frozenset(["java.lang.RuntimeException"])
_CONDITION = re.compile(r"\s*\[[A-Z][A-Z0-9_.]*\]")
# Values that stand there without quotes.
_BARE_VALUE = re.compile(
    r"(?si)(duplicate map key |record parsing: |malformed csv record: |violated by row with values:)"
    rf"(?:(?! was found|\. Parse Mode: |\. Please| SQLSTATE: |{_FRAME}).)+"
)
_WORD: Final = r"[^\W\d][\w$]*(?:[.-][\w$]+)*"
_TOKEN = re.compile(
    rf"""
      (?P<keep>
          \[[A-Z][A-Z0-9]*(?:[_.][A-Z0-9]+)+\] | \A\s*\[[A-Z][A-Z0-9_.]*\]           # [DIVIDE_BY_ZERO]
        | SQLSTATE[:=]?\ ?\w{{5}}\b | SQLCODE=-?\d+ | ORA-\d+
        | (?i:line|pos|position|column|stage|task|TID|attempt|executor|job|port|status|HTTP|errno|error|partition
            |(?:exit|error|status|return)\ code)[ ]\#?\d{{1,5}}(?:\.\d{{1,3}})?(?![\w.]*\d)
        | (?i:batch|version|snapshot)[ ]\d+\b | \d{{1,4}}[ ]times\b
        | (?:id|runId)\ =\ [0-9a-f-]{{36}}\b
        | (?:[A-Za-z][A-Za-z0-9+.-]{{0,15}}:)?//?[^\s'"`,;()\[\]<>]*                  # paths and URLs
        | \d{{1,3}}(?:\.\d{{1,3}}){{3}}(?::\d+)?\b | \w+(?:-\w+)*(?:\.\w+(?:-\w+)*)+:\d+\b | localhost:\d+\b
        | `(?:[^`]|``)*`
        | (?P<prefix>[XxRrNnEeBb](?=['"]))
        | {_WORD}(?:'(?:t|s|re|ve|ll|d|m)\b)?
        | \s+
      )
    | (?P<number>[+-]?\.?\d(?:[\w.,:+%/-]*[\w%])?)
    | (?P<quotes>'+|"+)
    | (?P<bracket>[\[(])
    | .
    """,
    re.VERBOSE | re.DOTALL,
)
_NUMBER = "?"
_BEFORE_QUOTES: Final = frozenset(["", *" \t\n([{,:;=<>|/.!-`?'\""])
_OPENS_BEFORE: Final = frozenset(" \t\n([{,:=<>")
_CLOSES_AFTER: Final = frozenset(" \t\n)]},.;:")
_TYPES: Final = (
    r"STRING|BOOLEAN|TINYINT|SMALLINT|INT|INTEGER|BIGINT|FLOAT|DOUBLE|DATE|BINARY|VOID|VARIANT|TIMESTAMP(?:_NTZ|_LTZ)?"
    r"|(?:DECIMAL|CHAR|VARCHAR)(?:\(\d+(?:,\s?-?\d+)?\))?|INTERVAL(?: [A-Z]+(?: TO [A-Z]+)?)?"
    r"|(?:ARRAY|MAP|STRUCT)(?:<[^'\"]*>)?"
)
_KEPT_IN_QUOTES = re.compile(rf"\?|true|false|{_TYPES}|(?:spark|hive|parquet|delta|hoodie|fs)(?:\.[\w-]+)+")
_NAMED_BEFORE = re.compile(
    r"(?i)\b(?:columns?|relation|table|constraint|index|schema|view|database|function|for key|option|module named|File)"
    r" \Z"
)
_NAME = re.compile(r"[\w.$/<>:-]+")
_VALUES_BEFORE = re.compile(
    r"(?i)(?:\)=|\bvalues?:? |contains |\bis |\brow:? "
    r"|\b(?:Map|List|Array|ArrayBuffer|Row|Vector|WrappedArray|Some|Set|Seq))\Z"
)
_ONLY_NAMES = re.compile(r"(?:[\s,.]|`[^`]*`)+|(?:id|runId) = .*", re.DOTALL)
_LOOK_BACK: Final = 24


def mask_message(text: str, *, kind: str = "") -> str:
    """The message with `?` for every value in it, and without the statements and plans that it quotes.

    `kind` is the class of the exception: what some classes say is anybody's text, and goes as a whole.
    """
    if kind in _RAISES_ANYTHING and not _CONDITION.match(text):
        return "?" if text else text
    fixed = _STATEMENT.sub(r"\1\n?", text)
    fixed = _PLAN.sub("", fixed)
    fixed = _TRACEBACK.sub(_traceback, fixed)
    fixed = _RAISED.sub(r"\1?", fixed)
    fixed = _BARE_VALUE.sub(r"\1?", fixed)
    return "".join(_masked(fixed))


def _traceback(found: re.Match[str]) -> str:
    """Where it happened and what it was, without the lines of code and without what it said."""
    return f"{found[1]}{_SOURCE_LINE.sub('', found[2])}{found[3]}"


def _masked(text: str) -> Iterator[str]:
    closing = _closing_brackets(text)
    at, is_prefixed = 0, False
    while at < len(text):
        found = _TOKEN.match(text, at)
        assert found is not None  # noqa: S101 - its last alternative takes any character
        end, shown = found.end(), found.group()
        if found["number"]:
            shown = _NUMBER
        elif found["quotes"] and (is_prefixed or text[at - 1 : at] in _BEFORE_QUOTES):
            end, shown = _quoted(text, found)
        elif found["bracket"]:
            end, shown = _bracketed(text, at, closing.get(at))
        is_prefixed = bool(found["prefix"])
        yield shown
        at = end


def _quoted(text: str, found: re.Match[str]) -> tuple[int, str]:
    """Where the value ends that these quotes open, and what is shown of it."""
    quotes, start = found["quotes"], found.end()
    if len(quotes) % 2 == 0 and (start == len(text) or text[start] in _CLOSES_AFTER):
        return start, quotes  # an empty one
    end, after = _end_of_value(text, start, quotes[0])
    value = text[start:end]
    is_name = _NAME.fullmatch(value) and _NAMED_BEFORE.search(text, max(0, found.start() - _LOOK_BACK), found.start())
    is_fixed = is_name or (quotes == '"' and _KEPT_IN_QUOTES.fullmatch(value))
    return after, f"{quotes}{value if is_fixed else '?'}{text[end:after]}"


def _end_of_value(text: str, start: int, quote: str) -> tuple[int, int]:
    """Where a quoted value ends, and where its closing quotes do.

    The quotes within it may not be escaped. So it ends at the last that can close it before one that can only open the
    next value.
    """
    end = after = len(text)
    is_closed = False
    at = text.find(quote, start)
    while at >= 0:
        behind = at + 1
        while text.startswith(quote, behind):
            behind += 1
        before, following = text[at - 1 : at], text[behind : behind + 1]
        if is_closed and before in _OPENS_BEFORE and following and following not in _CLOSES_AFTER:
            break
        if not _is_word(following) and before != "\\":
            end, after, is_closed = at, behind, True
        at = text.find(quote, behind)
    return end, after


def _bracketed(text: str, at: int, end: int | None) -> tuple[int, str]:
    """The whole of a row or a list of values, else the bracket alone."""
    if text[at] == "[":
        if end is None or _ONLY_NAMES.fullmatch(text, at + 1, end) or end == at + 1:
            return at + 1, "["
        return end + 1, "[?]"
    if not _VALUES_BEFORE.search(text, max(0, at - _LOOK_BACK), at):
        return at + 1, "("
    return (len(text), "(?") if end is None else (end + 1, "(?)")


def _closing_brackets(text: str) -> dict[int, int]:
    """Where the brackets end that begin at these places."""
    opened: dict[str, list[int]] = {"(": [], "[": []}
    closing: dict[int, int] = {}
    for found in _BRACKET.finditer(text):
        bracket = found.group()
        if bracket in opened:
            opened[bracket].append(found.start())
        elif before := opened[_OPENING[bracket]]:
            closing[before.pop()] = found.start()
    return closing


_BRACKET = re.compile(r"[\[\]()]")
_OPENING: Final = {")": "(", "]": "["}


def _is_word(char: str) -> bool:
    return char.isalnum() or char == "_"
