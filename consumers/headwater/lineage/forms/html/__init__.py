"""An answer as a page of HTML that needs nothing but itself.

page     the page: chapters, and what they are put together from
drawing  which boxes and wires an answer is
layout   where they stand
svg      how they look
"""

from __future__ import annotations

from typing import Any, Final

from headwater.lineage.forms.html.drawing import Drawing, Mark, Marks, drawing_of
from headwater.lineage.forms.html.page import Chapter, Markup, Page, Tile, graph, limits
from headwater.lineage.questions.versions import Lineage
from headwater.lineage.questions.walking.walk import Basis

__all__ = ["Chapter", "Drawing", "Mark", "Marks", "Markup", "Page", "Tile", "as_html", "drawing_of", "graph"]

_TITLES: Final = {
    "upstream": "What {} was made from",
    "downstream": "What is made from {}",
    "path": "The way {}",
}
_BASIS: Final = {
    Basis.COMMIT: "What the commits read themselves (commit).",
    Basis.STATE: "All that is in it: every commit since the last full overwrite (state).",
}


def as_html(answer: Lineage[Any]) -> str:
    words = "" if answer.basis is None else _BASIS[answer.basis]
    chapter = Chapter(
        "graph", "The graph", " ".join(filter(None, (words, answer.note))), (graph(answer, "g"), limits(answer))
    )
    title = _TITLES[answer.direction].format(answer.of)
    return str(Page(title, "Point at something to see what leads to it, and what is made of it.", (chapter,)))
