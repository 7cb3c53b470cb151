"""Secrets in tables as Spark shows them: the cells below a column whose name says that it holds secrets."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Final

from headwater.events.redaction._keys import MAX_NAME, names_secret
from headwater.events.redaction._spans import Span

_BORDER: Final = r"[ \t]*\+-[-+]*\+[ \t]*\r?\n"
_TABLE: Final = re.compile(
    rf"(?m)^{_BORDER}[ \t]*(?P<header>\|[^\n]*)\n{_BORDER}(?P<rows>(?:[ \t]*\|[^\n]*(?:\n|\Z))+)"
)


def secrets_in_tables(text: str, is_custom: Callable[[str], bool] | None) -> Iterator[Span]:
    """The places of such cells: `show()` writes names and values each into a row of their own."""
    if "+-" not in text:
        return
    for table in _TABLE.finditer(text):
        names = [name.strip()[-MAX_NAME:] for name in table["header"].strip().strip("|").split("|")]
        secret = [n for n, name in enumerate(names) if names_secret(name) or (is_custom and is_custom(name))]
        if secret:
            for row in re.finditer(r"[^\n]+", table["rows"]):
                start = table.start("rows") + row.start()
                yield from (_cell(row.group(), start, n, len(names)) for n in secret)


def _cell(row: str, start: int, number: int, count: int) -> Span:
    """From the left up to its bar, from the right down to it: a value that has bars itself goes whole."""
    bars = [n for n, character in enumerate(row) if character == "|"]
    first = bars[number] + 1 if number < len(bars) else len(row)
    last = bars[number - count] if len(bars) > count else len(row)
    return Span(start + first, start + max(first, last))
