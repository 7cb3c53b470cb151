"""Where a value in a text ends, however it is quoted: the whole of a secret must go, not its part up to some quote.

In doubt a value is taken to be longer: covering a word too much is better than giving away a secret's tail.
"""

from __future__ import annotations

import re
from typing import Final

from headwater.events.redaction._spans import REDACTED, Span

_KEY_FOLLOWS = r"""(?:amp;)?\s?["'\\]{0,4}[\w.$-]{1,128}["'\\]{0,4}\s?(?:=|:|->)"""
_QUOTE_ENDS = r"""(?:[\s,;:)\]}>|+]|\.?\Z)"""
_BARE = re.compile(
    rf"""(?:
      [^\s"'`<,;&|\\%)\]}}]                         # nothing special
    | ["'`](?!{_QUOTE_ENDS})                        # a quote in the middle of a word
    | <(?!/)
    | ,(?!\s|\Z|{_KEY_FOLLOWS})
    | [;&|](?!\s|\Z|{_KEY_FOLLOWS})
    | \\(?!["']|[nrt]{_KEY_FOLLOWS})
    | %(?!26|3[bB])
    | [)\]}}](?![)\]}}]{{0,8}}(?:[\s,;:(\"'`]|\.?\Z))
    )*""",
    re.VERBOSE,
)
_OPENING = re.compile(r"""(?:\$?[bBrRuUfFnNeExX]{0,2})(?P<slashes>\\*)(?P<quotes>"+|'+|`+)""")
_RUNS = {quote: re.compile(quote + "+") for quote in "\"'`"}
_EMPTY_ENDS = re.compile(r"[\s,;:)\]}>&|]|\Z")
_JOINED = re.compile(r"""\s*(?:\|\||\+|\\\n)\s*(?=["'])|\s+(?=["'])""")  # neighbours are one text in Spark
_NEXT_DOUBLED = re.compile(r"\s+(?=''|\"\")")
_BRACKETED = re.compile(r"[A-Za-z_][\w.]{0,63}\(|[\[{(]")
_BRACKET = re.compile(r"[\[\](){}]")
_LONGEST_BRACKETED: Final = 8192
_MAP_ENDS = re.compile(r"[^\n]{0,512}?(?=,\s*[\w.$-]{1,128}\s?(?:->|=)|[)}\]])")
_INDENTED = re.compile(r"[|>][+-]?[ \t]*(?:\n[ \t]+[^\n]*)+")


def value_at(text: str, start: int, *, in_map: bool = False) -> Span:
    """The value that begins at `start`, without its quotes. `in_map`: it may hold spaces, until the next entry."""
    opening = _OPENING.match(text, start)
    if opening:
        return _quoted(text, opening)
    block = _INDENTED.match(text, start)
    if block:
        return Span(start, block.end())
    return _bare(text, start, in_map=in_map)


def _bare(text: str, start: int, *, in_map: bool) -> Span:
    after_mark = start + len(REDACTED) if text.startswith(REDACTED, start) else start
    end = _end_of(_BARE.match(text, after_mark), after_mark)
    while end > after_mark and text[end - 1] == "." and not text[end : end + 1].strip():
        end -= 1
    end = max(end, _end_of_brackets(text, after_mark))
    if in_map and text[end : end + 1] == " ":
        end = _end_of(_MAP_ENDS.match(text, end), end)
    return Span(start, end)


def _end_of(found: re.Match[str] | None, otherwise: int) -> int:
    return found.end() if found else otherwise


def _end_of_brackets(text: str, start: int) -> int:
    opened = _BRACKETED.match(text, start)
    if not opened:
        return start
    depth = 0
    for bracket in _BRACKET.finditer(text, start, start + _LONGEST_BRACKETED):
        depth += 1 if bracket.group() in "[({" else -1
        if depth == 0:
            return bracket.end()
    return start


def _quoted(text: str, opening: re.Match[str]) -> Span:
    quotes, start = opening["quotes"], opening.end()
    doubled = len(quotes) % 2 == 0
    if doubled and _EMPTY_ENDS.match(text, start):
        return Span(start, start)
    if quotes == '"""':
        found = text.find(quotes, start)
        return Span(start, found if found >= 0 else len(text))
    if doubled:
        return Span(start, _end_of_doubled_chain(text, start, quotes))
    start = opening.start("quotes") + 1
    return Span(start, _end_of_chain(text, start, quotes[0], len(opening["slashes"])))


def _end_of_doubled_chain(text: str, start: int, quotes: str) -> int:
    """The end of a literal within another one, and of those beside it: ''abc'' ''def''."""
    end = _closing_doubled(text, start, quotes)
    joined = _NEXT_DOUBLED.match(text, end + len(quotes))
    while joined and text.startswith(quotes, joined.end()):
        end = _closing_doubled(text, joined.end() + len(quotes), quotes)
        joined = _NEXT_DOUBLED.match(text, end + len(quotes))
    return end


def _end_of_chain(text: str, start: int, quote: str, slashes: int) -> int:
    """The end of a literal, and of those that are joined to it: 'abc' || 'def'."""
    end = _closing(text, start, quote, slashes)
    joined = _JOINED.match(text, end + slashes + 1)
    while joined:
        quote = text[joined.end()]
        end = _closing(text, joined.end() + 1, quote, slashes)
        joined = _JOINED.match(text, end + slashes + 1)
    return end


def _closing(text: str, start: int, quote: str, slashes: int) -> int:
    r"""Where a literal ends that was opened by a quote behind so many backslashes: '..', \"..\", \\\"..\\\".

    A quote is escaped by more backslashes than opened the literal, or by being doubled; fewer end what is around it.
    More backslashes may also be an escaped backslash before the end: what doubles them again (a JSON in an SQL text)
    makes the two look alike. So they end the literal only if nothing surer does.
    """
    perhaps = -1
    at = text.find(quote, start)
    while at >= 0:
        before = _slashes_before(text, start, at)
        if not slashes and not before % 2 and text.startswith(quote, at + 1):
            at += 1
        elif before <= slashes:
            return at - before
        elif perhaps < 0 and (before - slashes) % (2 * slashes + 2) == 0:
            perhaps = at - slashes
        at = text.find(quote, at + 1)
    return perhaps if perhaps >= 0 else len(text)


def _closing_doubled(text: str, start: int, quotes: str) -> int:
    """Where a literal ends that stands in another one, as in ''it''''s''.

    A run of quotes is a number of escaped ones, perhaps one that closes; an odd rest closes what is around it.
    """
    for run in _RUNS[quotes[0]].finditer(text, start):
        if run.start() > start and text[run.start() - 1] == "\\":
            continue
        count, rest = divmod(len(run.group()), len(quotes))
        if count % 2:
            return run.start() + (count - 1) * len(quotes)
        if rest:
            return run.end() - rest
    return len(text)


def _slashes_before(text: str, start: int, at: int) -> int:
    first = at
    while first > start and text[first - 1] == "\\":
        first -= 1
    return at - first
