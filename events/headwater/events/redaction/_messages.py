"""Messages of errors without the data in them: Spark, databases and Python quote values, and whole statements.

What is fixed stays: words, the error condition, SQLSTATE, names of classes, columns in backticks, types, paths, lines
of code. Every value in quotes, every number, every row in brackets becomes `?`, and what quotes a statement or a plan
goes as a whole. In doubt a message loses too much: two values in quotes of a line can become one.
"""

from __future__ import annotations

import re
from typing import Final

from headwater.events.redaction._folding import lazy
from headwater.events.redaction._texts import FRAME, without_secrets

_KEPT: Final = 3_000
"""Characters that are kept of a message."""
_READ: Final = _KEPT + 1_000
_FRAME: Final = r"\n[ \t]*(?:at [\w.$/]+\(|Caused by: |Driver stacktrace)"
_STOP: Final = rf"(?={_FRAME}|\Z)"
_STATE: Final = lazy(r" SQLSTATE: \w{5}\s*\Z")
_STATEMENT: Final = lazy(rf"(?s)(== [A-Z][^\n=]{{0,200}} ==)[ \t]*\n.*?{_STOP}")
_PLAN: Final = lazy(rf"(?s);\n['!]{{0,2}}[A-Z]\w*[ \n(].*?{_STOP}|\n[^\n]*\n[ :|]*[+:]- .*?{_STOP}")
_TRACEBACK: Final = lazy(
    r"(?s)(Traceback \(most recent call last\):\n)((?:[ \t][^\n]*\n)*)([\w.]*)"
    rf"(?::(?:(?!{_FRAME}|\n\n(?:During|The above) |\nTraceback \().)*)?"
)
_SOURCE_LINE: Final = lazy(r"(?m)^[ \t]+(?![ \t]|File )[^\n]*\n")
_RAISED: Final = lazy(  # what somebody wrote into raise_error() is a literal of the statement
    rf"(?s)(\[USER_RAISED_EXCEPTION\] |java\.lang\.RuntimeException: (?!\[[A-Z_.]+\])).*?(?= SQLSTATE: |{_FRAME}|\Z)"
)
_RAISES_ANYTHING: Final = frozenset(["java.lang.RuntimeException"])
_OF_SPARK: Final = lazy(r"\s*\[[A-Z][A-Z0-9]*(?:[_.][A-Z0-9]+)+\]\s?")
_CONDITION: Final = lazy(r"\s*\[[A-Z][A-Z0-9_.]*\]")
_BARE_VALUE: Final = lazy(  # values that stand there without quotes
    r"(?si)(duplicate map key |record parsing: |malformed csv record: |violated by row with values:)"
    rf"(?:(?! was found|\. Parse Mode: |\. Please| SQLSTATE: |{_FRAME}).)+"
)
_TYPES: Final = (
    r"STRING|BOOLEAN|TINYINT|SMALLINT|INT|INTEGER|BIGINT|FLOAT|DOUBLE|DATE|BINARY|VOID|VARIANT|TIMESTAMP(?:_NTZ|_LTZ)?"
    r"|(?:DECIMAL|CHAR|VARCHAR)(?:\(\d+(?:,\s?-?\d+)?\))?|INTERVAL(?: [A-Z]+(?: TO [A-Z]+)?)?"
    r"|(?:ARRAY|MAP|STRUCT)(?:<[^'\"\n]{0,500}>)?"
)
_NAMED: Final = (
    "columns?|relation|table|constraint|index|schema|view|database|function|for key|option|module named|File"
)
_SIGN: Final = r"[A-Za-z_<>]{1,32}|[^\w\s'\"]{1,3}"
_WORD: Final = r"[^\W\d][\w$]{0,99}(?:[.-][\w$]{1,99}){0,20}"
_FIXED: Final = rf"""
      \[[A-Z][A-Z0-9]{{0,60}}(?:[_.][A-Z0-9]{{1,60}}){{1,20}}\] | \A\s*\[[A-Z][A-Z0-9_.]*\]        # [DIVIDE_BY_ZERO]
    | SQLSTATE[:=]?\ ?\w{{5}}\b | SQLCODE=-?\d+ | ORA-\d+
    | (?i:line|pos|position|column|stage|task|TID|attempt|executor|job|port|status|HTTP|errno|error|partition
        |(?:exit|error|status|return)\ code)[ ]\#?\d{{1,5}}(?:\.\d{{1,3}})?(?![\w.]*\d)
    | (?i:batch|version|snapshot)[ ]\d+\b | \d{{1,4}}[ ]times\b
    | (?:id|runId)\ =\ [0-9a-f-]{{36}}\b
    | \[id\ =\ [0-9a-f-]{{36}},\ runId\ =\ [0-9a-f-]{{36}}\] | \[(?:[\s,.]|`[^`\n]*`)+\]
    | (?:[A-Za-z][A-Za-z0-9+.-]{{0,15}}:)?//?[^\s'"`,;()\[\]<>]*                       # paths and URLs
    | \d{{1,3}}(?:\.\d{{1,3}}){{3}}(?::\d+)?\b
    | \w{{1,99}}(?:-\w{{1,99}}){{0,20}}(?:\.\w{{1,99}}){{1,20}}:\d+\b
    | localhost:\d+\b
    | `(?:[^`]|``)*`
    | (?i:\b(?:{_NAMED})\ )(?:"(?![+-]?\d)[\w.$/<>:-]+"(?![\w"])|'(?![+-]?\d)[\w.$/<>:-]+'(?![\w']))
    | (?:extra\ input|mismatched\ input|missing|at\ or\ near|alternative\ at\ input|token)\ '(?:{_SIGN})'(?![\w'])
    | "(?:\?|true|false|{_TYPES}|(?:spark|hive|parquet|delta|hoodie|fs)(?:\.[\w-]+)+)"(?!["\w])
    | [XxRrNnEeBb](?=['"]) | {_WORD}(?:'(?:t|s|re|ve|ll|d|m)\b)? | \s+ | ['"]{{2}}(?=[\s)\]}},.:;]|\Z)
"""
_BEFORE_ROW: Final = "|".join(
    rf"(?<={word})"
    for word in (
        r"\)=", "contains[ ]", "values[ ]", "values:[ ]", "value[ ]", "value:[ ]", "[ ]is[ ]", "row[ ]",
        "row:[ ]", "Row", "Map", "List", "Array", "ArrayBuffer", "Vector", "Some", "Set", "Seq",
    )
)  # fmt: skip
_OPENS: Final = r"""(?:(?<![^\s(\[{,:;=<>|/.!`?'"-])|(?<=\b[XxRrNnEeBb]))"""
_VALUE: Final = rf"""
      [+-]?\.?\d(?:[\w.,:+%/-]*[\w%])?
    | {_OPENS}'(?:[^\n]*[^\n\s(\[{{,:=<>])?'+(?=[\s)\]}},.:;]|\Z) | {_OPENS}'(?s:.*)
    | {_OPENS}"(?:[^\n]*[^\n\s(\[{{,:=<>])?"+(?=[\s)\]}},.:;]|\Z) | {_OPENS}"(?s:.*)
    | \[(?:[^\n]*\]|[^\n]*) | (?:{_BEFORE_ROW})(?:\((?:[^\n()]|\([^\n()]*\))*\)|\([^\n]*)
"""
_TOKEN: Final = lazy(rf"(?x)(?P<fixed>(?:{_FIXED})+)|(?P<value>{_VALUE})")
_NAMES_ONLY: Final = lazy(
    rf"""(?:`(?:[^`]|``)*`|"[^"\n]*"|'\?'|\?|[\s,.;:()\[\]<>=-]|(?:[a-z0-9]{{1,16}}:)?/[^\s'"]*
    |: (?:extra input|mismatched input|missing) '(?:{_SIGN})')*""".replace("\n    ", "")
)
_SYNTAX_WORD: Final = lazy(rf"'(?:{_SIGN})'")


def mask_message(text: str, kind: str = "") -> str:
    """The message with `?` for every value in it, and without the statements and plans that it quotes.

    `kind` is the class of the exception: what some classes say is anybody's text, and goes as a whole.
    """
    if kind in _RAISES_ANYTHING and not _CONDITION.match(text):
        return "?" if text else text
    name = _OF_SPARK.match(text)  # of an error, and Spark's own: redaction doesn't read it
    condition = name.group() if name else ""
    message, end = _split_end(text[len(condition) : _READ])
    safe = condition + without_secrets(message)  # cut after that: half a password isn't seen
    fixed = _STATEMENT.sub(r"\1\n?", safe[:_KEPT])
    fixed = _PLAN.sub("", fixed)
    fixed = _TRACEBACK.sub(_traceback, fixed)
    fixed = _RAISED.sub(r"\1?", fixed)
    fixed = _BARE_VALUE.sub(r"\1?", fixed)
    return _TOKEN.sub(_placeholder, fixed) + end[:_KEPT]


def _split_end(text: str) -> tuple[str, str]:
    """The message, and what surely belongs to its error and not to a value: its SQLSTATE and the frames at its end.

    Of a value over several lines nobody knows where it ends, so that it would take these with it.
    """
    start = len(text)
    while start > 0:
        line = text.rfind("\n", 0, start)
        if line < 0 or not FRAME.fullmatch(text, line + 1, start):
            break
        start = line
    state = _STATE.search(text, 0, start)
    start = state.start() if state else start
    return text[:start], text[start:]


def mask_parameter(name: str, value: str) -> str:
    """The value of a parameter of Spark's message: names, types, settings and paths, and the word of a wrong syntax."""
    if name == "error" and _SYNTAX_WORD.fullmatch(value):
        return value
    masked = mask_message(value)
    return masked if _NAMES_ONLY.fullmatch(masked) else "?"


def _traceback(found: re.Match[str]) -> str:
    """Where it happened and what it was, without the lines of code and without what it said."""
    return f"{found[1]}{_SOURCE_LINE.sub('', found[2])}{found[3]}"


def _placeholder(found: re.Match[str]) -> str:
    value = found["value"]
    if value is None:
        return found.group()
    return f"{value[0]}?{_CLOSES[value[0]]}" if value[0] in _CLOSES else "?"


_CLOSES: Final = {"'": "'", '"': '"', "[": "]", "(": ")"}
