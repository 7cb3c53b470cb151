"""Renders an answer as a self-contained HTML page.

page     the page and its chapters
drawing  which boxes and connectors an answer consists of
layout   where they are placed
svg      how they are drawn
"""

from __future__ import annotations

from typing import Any, Final

from headwater.lineage.questions.lineage_answers import LineageAnswer
from headwater.lineage.questions.traversal.context import Basis
from headwater.lineage.rendering.html.drawing import Drawing, Mark, Marks, build_drawing
from headwater.lineage.rendering.html.page import Chapter, Markup, Page, Tile, graph, limits

__all__ = ["Chapter", "Drawing", "Mark", "Marks", "Markup", "Page", "Tile", "as_html", "build_drawing", "graph"]

_TITLES: Final = {
    "upstream": "What {} was made from",
    "downstream": "What is made from {}",
    "path": "The way {}",
}
_BASIS: Final = {
    Basis.COMMIT: "What the commits read themselves (commit).",
    Basis.STATE: "All that is in it: every commit since the last full overwrite (state).",
}


def as_html(answer: LineageAnswer[Any]) -> str:
    words = "" if answer.basis is None else _BASIS[answer.basis]
    chapter = Chapter(
        "graph", "The graph", " ".join(filter(None, (words, answer.note))), (graph(answer, "g"), limits(answer))
    )
    title = _TITLES[answer.direction].format(answer.of)
    return str(Page(title, "Point at something to see what leads to it, and what is made of it.", (chapter,)))
