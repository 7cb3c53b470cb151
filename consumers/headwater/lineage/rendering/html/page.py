"""A page that needs nothing but itself: chapters of words, graphs and tables, its styles and its script inside it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from html import escape
from importlib.resources import files
from typing import Any, Final

from headwater.events.presentation.phrases import seconds_of
from headwater.lineage.questions.answers import Answer
from headwater.lineage.questions.lineage_answers import LineageAnswer
from headwater.lineage.rendering.html.drawing import LAYERS, Connector, Drawing, Marks, build_drawing, layer_of
from headwater.lineage.rendering.html.svg import render_svg
from headwater.lineage.rendering.lineage_graph import PART
from headwater.lineage.rendering.tree import as_text, limit_text

MOST: Final = 1_500
"""Of more boxes, rows and lines together no eye makes anything: the text stands alone then."""


class Markup(str):
    """What is HTML already."""

    __slots__ = ()


@dataclass(frozen=True)
class Tile:
    """One fact in large letters, that leads to its chapter."""

    what: str
    value: str
    more: str
    chapter: str
    mood: str = ""
    """good, bad, or neither."""


@dataclass(frozen=True)
class Chapter:
    id: str
    title: str
    words: str | Markup = ""
    parts: Sequence[Markup] = ()


@dataclass(frozen=True)
class Page:
    title: str
    words: str
    chapters: Sequence[Chapter]
    tiles: Sequence[Tile] = field(default=())
    footer: str = ""

    def __str__(self) -> str:
        return "\n".join(filter(None, self._lines())) + "\n"

    def _lines(self) -> Iterator[str]:
        styles, script = (files("headwater.lineage.rendering.html").joinpath(f"page.{kind}") for kind in ("css", "js"))
        yield '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">'
        yield '<meta name="viewport" content="width=device-width, initial-scale=1">'
        yield '<link rel="icon" href="data:,">'
        yield f"<title>{escape(self.title)}</title>"
        yield f"<style>\n{styles.read_text(encoding='utf-8')}</style>\n</head>\n<body>\n<main>"
        yield '<header class="page">'
        yield '<div class="brand"><b>headwater</b> · who made what from which version of what</div>'
        yield f'<h1>{escape(self.title)}</h1>\n<p class="lede">{_markup(self.words)}</p>\n</header>'
        yield _tiles(self.tiles)
        for chapter in self.chapters:
            yield f'<section id="{escape(chapter.id)}">\n<h2>{escape(chapter.title)}</h2>'
            yield f"<p>{_markup(chapter.words)}</p>" if chapter.words else ""
            yield from chapter.parts
            yield "</section>"
        yield f"<footer>{escape(self.footer)}</footer>" if self.footer else ""
        yield f"</main>\n<script>\n{script.read_text(encoding='utf-8')}</script>\n</body>\n</html>"


def graph(answers: LineageAnswer[Any] | Sequence[LineageAnswer[Any]], name: str, marks: Marks | None = None) -> Markup:
    """A graph of one answer or of several of one kind, what its colours mean, and the same as text."""
    given = [answers] if isinstance(answers, LineageAnswer) else list(answers)
    drawing = build_drawing(given, marks)
    size = len(drawing.owner_of()) + len(drawing.connectors)
    trees = "\n\n".join(map(as_text, given))
    if not drawing.boxes:
        return Markup("<p>Nothing is known.</p>")
    if size > MOST:
        return Markup(f"<p>This is too much for a picture: {len(drawing.boxes):,} boxes.</p>\n{_pre(trees)}")
    about = 'class="scroll" role="region" tabindex="0" aria-label="a graph; the same as text stands below it"'
    picture = f"<div {about}>{render_svg(drawing, name)}</div>"
    return Markup(
        f"{picture}\n{_legend(drawing)}\n<details><summary>The same as text</summary>\n{_pre(trees)}</details>"
    )


def table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> Markup:
    """Text is escaped, Markup is as it is."""
    head = "".join(f'<th scope="col">{escape(column)}</th>' for column in columns)
    body = "\n".join("<tr>" + "".join(f"<td>{_markup(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return Markup(f'<div class="wide"><table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody></table></div>')


def callout(*paragraphs: str, mood: str = "") -> Markup:
    words = "".join(f"<p>{_markup(paragraph)}</p>" for paragraph in paragraphs)
    return Markup(f'<div class="callout {escape(mood)}">{words}</div>')


def command(line: str) -> Markup:
    """To be copied."""
    return Markup(
        f'<div class="command"><pre><code>{escape(line)}</code></pre><button type="button">Copy</button></div>'
    )


def code(text: object) -> Markup:
    return Markup(f'<code class="id">{escape(str(text))}</code>')


def moment(text: object) -> Markup:
    """A time, which isn't broken into two lines."""
    return Markup("-" if text is None else f"<time>{escape(str(text))}</time>")


def badge(text: str, mood: str = "") -> Markup:
    return Markup(f'<span class="badge {escape(mood)}">{escape(text)}</span>')


def limits(answer: Answer[Any]) -> Markup:
    """Up to when an answer is complete, and what it may lack."""
    until = "nothing is known of that" if answer.complete_until is None else seconds_of(answer.complete_until)
    lacks = "".join(f"<li>{escape(limit_text(limit))}</li>" for limit in answer.limits)
    more = f'\n<p>It may lack something:</p><ul class="limits">{lacks}</ul>' if lacks else ""
    return Markup(f"<p>Complete until: <strong>{escape(until)}</strong></p>{more}")


def concatenate(*parts: object) -> Markup:
    """Text is escaped, Markup is as it is."""
    return Markup("".join(_markup(part) for part in parts))


def _tiles(tiles: Sequence[Tile]) -> str:
    if not tiles:
        return ""
    shown = [
        f'<li class="{escape(finding.mood)}"><a href="#{escape(finding.chapter)}">'
        f'<span class="what">{escape(finding.what)}</span>'
        f'<span class="value">{escape(finding.value)}</span><span class="more">{escape(finding.more)}</span></a></li>'
        for finding in tiles
    ]
    return '<ul class="tiles">\n' + "\n".join(shown) + "\n</ul>"


def _legend(drawing: Drawing) -> str:
    groups = drawing.groups()
    shown = [
        f'<li class="g{number % 6}"><i></i><b>{escape(group)}</b>{_meaning(group)}</li>'
        for number, group in enumerate(groups)
    ]
    if any(box.is_job for box in drawing.boxes.values()):
        shown.append('<li class="g-none"><i></i>rounded: a job</li>')
    dashed = {_dashes(connector) for connector in drawing.connectors if not connector.is_direct}
    shown += [f"<li>dashed: {words}</li>" for words in sorted(dashed)]
    return f'<ul class="legend">{"".join(shown)}</ul>' if shown else ""


def _dashes(connector: Connector) -> str:
    return "what was in it before" if connector.hint == PART else "decides which rows, not their values"


def _meaning(group: str) -> str:
    words, _ = LAYERS.get(layer_of(group), ("", 0))
    return f" {escape(words)}" if words else ""


def _pre(text: str) -> str:
    return f"<pre>{escape(text)}</pre>"


def _markup(value: object) -> str:
    return value if isinstance(value, Markup) else escape("-" if value is None else str(value))
