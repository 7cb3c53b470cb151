"""Secrets in free text: errors, comments, details of Gaps, SQL.

Nobody knows where a secret ends in a text. So from the place where one is named or recognised, all goes up to the next
blank line; values stand below their names in tables, YAML, XML and code. What is kept of such a paragraph is certain:
the words before the place, the whole lines of words above it, and the frames of a stack.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from headwater.events.redaction._folding import fold, lazy
from headwater.events.redaction._places import Place, places

REDACTED: Final = "*********(redacted)"
"""The mark that stands where a secret stood: Spark's own, so that people know it and tools that look for it find it."""
KEPT: Final = 12_288
"""Characters that are kept of a text; the rest goes."""
READ: Final = KEPT + 1_024
"""Characters that are read of a text, and that have to be given where somebody cuts it before."""
_MOST_PARTS: Final = 25
"""Of those that are hidden; after so many the rest of the text goes."""
FRAME: Final = lazy(r"(?m)^[ \t]+at (?:[\w$]+[./])+[\w$<>]+\([\w$. ]{1,80}(?::\d{1,6})?\)[ \t]*$")
_UNCERTAIN: Final = lazy(r"[^A-Za-z\s,.:;()\[\]{}$_+>-]")
_WORDS: Final = lazy(r"\s*(?:[A-Za-z]+(?:[-'][A-Za-z]+)*[,.]?[ \t]+)*(?:[A-Za-z]+(?:[-'][A-Za-z]+)*[,.:]?\s*)?")
_BLANK: Final = lazy(r"\n[ \t\r\f\v]*\n")
_BINDS: Final = (":", " =", "->", "=>")
_VISIBLE: Final = lazy(r"\w")


def has_secret(text: str) -> bool:
    """Whether a secret is named or recognised in the text."""
    folded = fold(text)
    return folded is None or next(places(folded, None), None) is not None


def without_secrets(text: str, custom: re.Pattern[str] | None = None) -> str:
    """The text with a mark in the place of what may be secret; the very same text where nothing is.

    What is longer than can be kept is read a bit further than it is kept: a password without the `@` behind it doesn't
    look like one.
    """
    read = text[:READ]
    folded = fold(read)
    if folded is None:
        return REDACTED
    pieces: list[str] = []
    done = 0
    for count, (start, end) in enumerate(_hidden_parts(read, places(folded, custom))):
        if start >= KEPT:
            break
        pieces += (read[done:start], REDACTED)
        if count == _MOST_PARTS:
            done = len(read)
            break
        pieces += (f"\n{frame}" for frame in FRAME.findall(read, start, end))
        done = end
    if not pieces and len(text) <= KEPT:
        return text
    return "".join([*pieces, read[done:KEPT], "…" if len(text) > KEPT else ""])


def _hidden_parts(text: str, found: Iterator[Place]) -> Iterator[tuple[int, int]]:
    done = 0
    for start, shown_until in found:
        if start < done:
            continue
        line = text.rfind("\n", done, start) + 1 or done
        if _is_frame(text, line, start):
            continue
        top = _first_uncertain_line(text, done, line)
        begin = top if top < line else _end_of_words(text, line, shown_until)
        done = _end_of_paragraph(text, start, shown_until)
        if _VISIBLE.search(text, begin, done):
            yield begin, done
        if done == len(text):
            return


def _is_frame(text: str, line: int, start: int) -> bool:
    frame = FRAME.match(text, line)
    return frame is not None and frame.end() > start


def _first_uncertain_line(text: str, done: int, line: int) -> int:
    """The beginning of the lines right above this one that aren't only words: a value may stand above its name."""
    top = line
    while top > done:
        above = text.rfind("\n", done, top - 1) + 1 or done
        if _WORDS.fullmatch(text, above, top) or FRAME.fullmatch(text, above, top - 1):
            break
        top = above
    return top


def _end_of_words(text: str, line: int, shown_until: int) -> int:
    """Where something other than words begins in the line."""
    uncertain = _UNCERTAIN.search(text, line, shown_until)
    if not uncertain:
        return shown_until
    return max(line, text.rfind(" ", line, uncertain.start()) + 1, text.rfind("\t", line, uncertain.start()) + 1)


def _end_of_paragraph(text: str, start: int, shown_until: int) -> int:
    """The next blank line with something before it; behind a PEM block, or the end of the text for one that is cut."""
    at = shown_until
    if "BEGIN " in text[start : start + 11]:
        at = text.find("END ", start)
        if at < 0:
            return len(text)
    for blank in _BLANK.finditer(text, at):
        if _VISIBLE.search(text, at, blank.start()) and not _binds(text[max(at, blank.start() - 12) : blank.start()]):
            return blank.start()
    return len(text)


def _binds(end: str) -> bool:
    """Whether a value is to come after the end of this line."""
    folded = fold(end)
    return folded is None or folded.text.rstrip().endswith(_BINDS)
