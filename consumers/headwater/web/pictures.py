"""Graphs of pages: the boxes lead to pages of their own, and what is too large for a picture is said in words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from headwater.lineage.questions.lineage_answers import LineageAnswer
from headwater.lineage.rendering.html.drawing import Box, Marks, build_drawing
from headwater.lineage.rendering.html.svg import render_svg
from headwater.lineage.rendering.tree import as_text
from headwater.web.views.base import address

MOST: Final = 400
"""Of more boxes no eye makes anything."""


@dataclass(frozen=True)
class Picture:
    """A graph as SVG, and the same as text."""

    svg: str
    text: str
    boxes: int
    groups: tuple[str, ...]
    """The databases, by whose order the boxes have their colours."""

    @property
    def is_too_large(self) -> bool:
        return self.boxes > MOST


def draw(answers: Sequence[LineageAnswer[Any]], name: str, marks: Marks | None = None) -> Picture:
    """Return the graph of answers of one kind."""
    drawing = build_drawing(answers, marks)
    boxes = len(drawing.boxes)
    svg = render_svg(drawing, name, _address_of) if 0 < boxes <= MOST else ""
    return Picture(svg, "\n\n".join(map(as_text, answers)), boxes, tuple(drawing.groups()))


def _address_of(box: Box) -> str | None:
    if not box.is_job:
        return address("table", name=box.id[1])  # type: ignore[index]
    return address("job", name=box.hint) if ", " not in box.hint else None
