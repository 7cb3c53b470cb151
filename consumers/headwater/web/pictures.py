"""Graphs of pages: the boxes lead to pages of their own, and what is too large for a picture is said in words."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from headwater.lineage.questions.lineage_answers import LineageAnswer
from headwater.lineage.rendering.html.drawing import Box, Marks, build_drawing
from headwater.lineage.rendering.html.svg import BoxLinks, render_svg
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


def page_of(box: Box) -> BoxLinks:
    """Return what the name of a box leads to."""
    if not box.is_job:
        return BoxLinks(address("table", name=label_of(box)))
    return BoxLinks(address("job/runs", job=box.hint) if ", " not in box.hint else None)


def label_of(box: Box) -> str:
    """Return the name of the table that a box stands for."""
    return str(box.id[1]) if isinstance(box.id, tuple) else box.hint


def draw(
    answers: Sequence[LineageAnswer[Any]],
    name: str,
    marks: Marks | None = None,
    links_of: Callable[[Box], BoxLinks] = page_of,
) -> Picture:
    """Return the graph of answers of one kind."""
    drawing = build_drawing(answers, marks)
    boxes = len(drawing.boxes)
    svg = render_svg(drawing, name, links_of) if 0 < boxes <= MOST else ""
    return Picture(svg, "\n\n".join(map(as_text, answers)), boxes, tuple(drawing.groups()))
