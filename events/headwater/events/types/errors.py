"""What is wrong with the text of a type, and the limits that are held against every such text."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

from headwater.errors import TerminalError

MAX_NESTING: Final = 100
"""How many arrays, maps and structs may stand in each other. Spark's own parser gives out somewhere above this."""
MAX_TEXT: Final = 4 * 1024 * 1024
"""How many characters the text of a type or schema may have: some ten thousand columns."""
MAX_JSON_NESTING: Final = 3 * MAX_NESTING + 100
"""A struct takes three levels of JSON; the rest is room for metadata."""


class TypeTextError(TerminalError):
    """A text isn't the type or schema it should be; the message says what is wrong and where."""


@contextmanager
def bounded_stack() -> Generator[None, None, None]:
    """Types nest only so deep, but a caller may have used up most of the stack."""
    try:
        yield
    except RecursionError:
        raise TypeTextError("nested too deeply for the stack that is left here") from None


def excerpt(text: str, around: int = 0, width: int = 60) -> str:
    """The neighbourhood of a place in a text, short enough for a message."""
    start = max(0, around - width // 2)
    piece = text[start : start + width]
    return f"{'…' if start else ''}{piece}{'…' if start + width < len(text) else ''}"


def check_size(text: str) -> None:
    if len(text) > MAX_TEXT:
        raise TypeTextError(f"the text has {len(text)} characters; at most {MAX_TEXT} are read")


def check_unicode(text: str) -> None:
    """Half a surrogate pair has no UTF-8, so that nothing that holds one could be reported to anybody."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise TypeTextError(f"half a surrogate pair at character {error.start}: no such text can be stored") from None
