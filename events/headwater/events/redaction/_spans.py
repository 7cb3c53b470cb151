"""Places in a text that must go, found one by one on the same text and taken out together.

No finder sees what another one has taken out: a mark set by one could hide from the next one where a secret ends.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

REDACTED: Final = "*********(redacted)"
"""The mark that stands where a secret stood: Spark's own, so that people know it and tools that look for it find it."""


class Span(NamedTuple):
    start: int
    end: int


def without(text: str, spans: Iterable[Span]) -> str:
    """The text with a mark for each span; spans that overlap or touch share one."""
    pieces: list[str] = []
    done = 0
    for start, end in _merge_spans(spans):
        if text[start:end] != REDACTED:
            pieces += (text[done:start], REDACTED)
            done = end
    return "".join([*pieces, text[done:]]) if pieces else text


def _merge_spans(spans: Iterable[Span]) -> list[Span]:
    united: list[Span] = []
    for span in sorted(span for span in spans if span.end > span.start):
        if united and span.start <= united[-1].end:
            united[-1] = Span(united[-1].start, max(united[-1].end, span.end))
        else:
            united.append(span)
    return united
