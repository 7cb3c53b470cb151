"""A drawing as SVG, which is styled by the page's own CSS, in light and dark, on a screen and on paper."""

from __future__ import annotations

import html
from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

from headwater.lineage.rendering.html.drawing import Box, BoxRow, Connector, Drawing, Mark
from headwater.lineage.rendering.html.layout import BoxSize, Key, LayoutLink, Point, compute_layout
from headwater.terminal import printable

_NAME: Final = 15.0
_SMALL: Final = 11.0
_HEAD: Final = 50.0
_ROW: Final = 26.0
_PILL: Final = 30.0
_FOOT: Final = 10.0
_MARK: Final = 19.0
_PAD: Final = 15.0
_WIDEST: Final = 300.0
_EDGE: Final = 14.0
_PART: Final = 12.5
_BOLD: Final = 1.12
_NARROW: Final = frozenset("iljtfrI.,:;'|!()[] ")
_WIDE: Final = frozenset("mwMW@%→…")


def escape(text: str) -> str:
    """Return a text that is only a text: what a browser or a terminal would act upon is shown."""
    return html.escape(printable(text))


class BoxLinks(NamedTuple):
    """Where a box leads to: its name, and marks at its left and right side that show more of the graph."""

    name: str | None = None
    before: str | None = None
    after: str | None = None


def render_svg(drawing: Drawing, name: str, links_of: Callable[[Box], BoxLinks] = lambda _: BoxLinks()) -> str:
    """`name` tells the graphs of one page apart."""
    return "\n".join(_Picture(drawing, name, links_of).lines())


def width_of(text: str, size: float, *, is_bold: bool = False) -> float:
    """Nearly: what it is shown in is the reader's own font. DejaVu Sans, which many a Linux has alone, is the widest of
    those that the page asks for, and has room in it."""
    return size * sum(map(_em, text)) * (_BOLD if is_bold else 1)


def _em(character: str) -> float:
    if character in _NARROW:
        return 0.36
    if character in _WIDE:
        return 0.95
    if ord(character) > 0x2E7F:
        return 1.05
    return 0.7 if character.isupper() else 0.62


class _Picture:
    def __init__(self, drawing: Drawing, name: str, links_of: Callable[[Box], BoxLinks]) -> None:
        self._drawing = drawing
        self._links_of = links_of
        self._name = name
        self._owner = drawing.owner_of()
        self._names: dict[Key, str] = {key: f"{name}-{number}" for number, key in enumerate(self._owner, 1)}
        self._groups = {group: number for number, group in enumerate(drawing.groups())}
        sizes = {key: _size(box) for key, box in drawing.boxes.items()}
        self._sizes = sizes
        self._links = {connector: self._link(connector) for connector in drawing.connectors}
        self._layout = compute_layout(sizes, self._links.values())

    def lines(self) -> Iterator[str]:
        width, height = self._layout.width + 2 * _EDGE, self._layout.height + 2 * _EDGE
        yield (
            f'<svg class="graph" role="group" aria-label="{escape(self._drawing.title)}" width="{width:.0f}" '
            f'height="{height:.0f}" viewBox="{-_EDGE:.0f} {-_EDGE:.0f} {width:.0f} {height:.0f}">'
        )
        for connector, link in self._links.items():
            yield self._connector(connector, link)
        for key, box in self._drawing.boxes.items():
            yield from self._pill(box) if box.is_job else self._card(box, self._layout.at[key])
        yield "</svg>"

    # Wires.

    def _link(self, connector: Connector) -> LayoutLink:
        source, target = self._owner[connector.source], self._owner[connector.target]
        return LayoutLink(source, target, self._port(connector.source), self._port(connector.target))

    def _port(self, end: Key) -> float:
        """How much below the middle of its box a row is."""
        box = self._drawing.boxes[self._owner[end]]
        if end not in box.rows:
            return 0.0
        return _row_top(list(box.rows).index(end)) + _ROW / 2 - self._sizes[box.id].height / 2

    def _connector(self, connector: Connector, link: LayoutLink) -> str:
        looks = "".join([" indirect" if not connector.is_direct else "", " cycle" if connector.in_cycle else ""])
        ends = f'data-from="{self._names[connector.source]}" data-to="{self._names[connector.target]}"'
        hint = f"<title>{escape(connector.hint)}</title>" if connector.hint else ""
        way = self._layout.ways.get(link)
        path, tip = _curve(way) if way else self._inside(link)
        return f'<g class="wire{looks}" {ends}>{hint}<path class="line" d="{path}"/><path class="tip" d="{tip}"/></g>'

    def _inside(self, link: LayoutLink) -> tuple[str, str]:
        """From a row to another of its own box, along its right side."""
        corner, size = self._layout.at[link.source], self._sizes[link.source]
        x, middle = corner.x + size.width, corner.y + size.height / 2
        start, end = middle + link.leaves, middle + link.enters
        if start == end:
            start, end = middle - 9, middle + 9
        else:  # beside what leaves the rows for other boxes, whose beginnings would seem to have tips
            aside = 6 if start < end else -6
            start, end = start + aside, end - aside
        far = x + 15
        return f"M{x:.1f} {start:.1f}C{far:.1f} {start:.1f} {far:.1f} {end:.1f} {x + 5:.1f} {end:.1f}", _tip(
            Point(x, end), -1
        )

    # Boxes.

    def _attributes(self, key: Key, classes: str, words: str, mark: Mark | None) -> str:
        marked = " bad" if mark is not None and mark.is_bad else ""
        rows = " ".join(self._names[row] for row in self._drawing.boxes[key].rows) if key in self._drawing.boxes else ""
        family = f'data-rows="{rows}"' if key in self._drawing.boxes else f'data-box="{self._names[self._owner[key]]}"'
        looks = f'class="{classes}{marked}" tabindex="0" role="img" aria-label="{escape(words)}"'
        return f'id="{self._names[key]}" {family} {looks}'

    def _card(self, box: Box, at: Point) -> Iterator[str]:
        size = self._sizes[box.id]
        colour = f"g{self._groups[box.group] % 6}" if box.group else "g-none"
        root = " root" if box.is_root else ""
        words = ". ".join(filter(None, (box.hint, box.mark.words if box.mark else "")))
        yield f"<g {self._attributes(box.id, f'box table {colour}{root}', words, box.mark)}>"
        yield f"<title>{escape(words)}</title>"
        x, y = at
        yield f'<rect class="card" x="{x:.1f}" y="{y:.1f}" width="{size.width:.1f}" height="{size.height:.1f}" rx="9"/>'
        yield (
            f'<path class="band" d="M{x + 9:.1f} {y:.1f}h-1a8 8 0 0 0 -8 8v{size.height - 16:.1f}a8 8 0 0 0 8 8h1'
            f'a4 4 0 0 1 -4 -4v{-(size.height - 8):.1f}a4 4 0 0 1 4 -4z"/>'
        )
        yield _text("above", x + _PAD, y + 19, _cut(box.above, size.width - 2 * _PAD, _title_width))
        yield self._linked(box, _text("name", x + _PAD, y + 38, _cut(box.title, size.width - 2 * _PAD, _name)))
        if box.mark:
            yield _text("mark", x + _PAD, y + size.height - 9, box.mark.words)
        yield "</g>"
        yield from self._handles(box, at)
        for number, row in enumerate(box.rows.values()):
            yield from self._row(row, Point(x + 9, y + _row_top(number)), size.width - 18, colour)

    def _linked(self, box: Box, words: str) -> str:
        address = self._links_of(box).name
        return words if address is None else f'<a href="{escape(address)}" tabindex="-1">{words}</a>'

    def _handles(self, box: Box, at: Point) -> Iterator[str]:
        links, size = self._links_of(box), self._sizes[box.id]
        sides = ((links.before, at.x, "what it is made from"), (links.after, at.x + size.width, "what is made from it"))
        for address, x, words in sides:
            if address is not None:
                y = at.y + size.height / 2
                yield (
                    f'<a class="more" href="{escape(address)}" aria-label="Show {words}: {escape(box.hint)}">'
                    f'<title>Show {words}</title><circle cx="{x:.1f}" cy="{y:.1f}" r="8"/>'
                    f'<path d="M{x - 4:.1f} {y:.1f}h8M{x:.1f} {y - 4:.1f}v8"/></a>'
                )

    def _row(self, row: BoxRow, at: Point, width: float, colour: str) -> Iterator[str]:
        root = " root" if row.is_root else ""
        words = ". ".join(filter(None, (row.hint, row.mark.words if row.mark else "")))
        yield f"<g {self._attributes(row.id, f'row {colour}{root}', words, row.mark)}><title>{escape(words)}</title>"
        height = _ROW - 4
        yield f'<rect class="chip" x="{at.x:.1f}" y="{at.y + 2:.1f}" width="{width:.1f}" height="{height:.1f}" rx="6"/>'
        yield _text("part", at.x + 9, at.y + 17.5, _cut(row.text, width - 18 - _aside(row), _row_width))
        if row.mark:
            yield _text("aside", at.x + width - 8, at.y + 17, row.mark.words)
        yield "</g>"

    def _pill(self, box: Box) -> Iterator[str]:
        at, size = self._layout.at[box.id], self._sizes[box.id]
        words = ". ".join(filter(None, (f"job {box.hint}", box.mark.words if box.mark else "")))
        yield f"<g {self._attributes(box.id, 'box job', words, box.mark)}><title>{escape(words)}</title>"
        yield (
            f'<rect class="pill" x="{at.x:.1f}" y="{at.y:.1f}" width="{size.width:.1f}" height="{size.height:.1f}" '
            f'rx="{_PILL / 2:.1f}"/>'
        )
        text = _cut(box.title, size.width - 2 * _PAD, _job)
        yield self._linked(box, _text("job-name", at.x + size.width / 2, at.y + 19.5, text))
        if box.mark:
            yield _text("mark middle", at.x + size.width / 2, at.y + size.height - 8, box.mark.words)
        yield "</g>"


def _size(box: Box) -> BoxSize:
    mark = width_of(box.mark.words, _SMALL, is_bold=True) if box.mark else 0.0
    if box.is_job:
        width = max(_job(box.title), mark) + 2 * _PAD
        return BoxSize(min(width, _WIDEST), _PILL + (_MARK - 4 if box.mark else 0))
    rows = [_row_width(row.text) + 18 + _aside(row) for row in box.rows.values()]
    width = max([_name(box.title), _title_width(box.above), mark, *rows, 96]) + 2 * _PAD
    height = _HEAD + (len(box.rows) * _ROW + _FOOT - 3 if box.rows else 0) + (_MARK if box.mark else 0)
    return BoxSize(min(width, _WIDEST), height)


def _name(text: str) -> float:
    return width_of(text, _NAME, is_bold=True)


def _title_width(text: str) -> float:
    return width_of(text, _SMALL, is_bold=True)


def _job(text: str) -> float:
    """As wide as one that failed, which is bold."""
    return width_of(text, _PART, is_bold=True)


def _row_width(text: str) -> float:
    """The width of a row's text, whose characters are all as wide."""
    return _PART * sum(1.05 if ord(character) > 0x2E7F else 0.62 for character in text)


def _aside(row: BoxRow) -> float:
    return width_of(row.mark.words, 10.5) + 14 if row.mark else 0.0


def _row_top(number: int) -> float:
    return _HEAD - 3 + number * _ROW


def _curve(way: Sequence[Point]) -> tuple[str, str]:
    """Through all its points, level where it leaves and enters."""
    ahead = 1 if way[0].x <= way[-1].x else -1
    end = Point(way[-1].x - 6 * ahead, way[-1].y)
    parts = [f"M{way[0].x:.1f} {way[0].y:.1f}"]
    for before, after in zip(way, [*way[1:-1], end], strict=False):
        middle = (before.x + after.x) / 2
        parts.append(f"C{middle:.1f} {before.y:.1f} {middle:.1f} {after.y:.1f} {after.x:.1f} {after.y:.1f}")
    return "".join(parts), _tip(way[-1], ahead)


def _tip(at: Point, ahead: int) -> str:
    return f"M{at.x:.1f} {at.y:.1f}l{-8 * ahead} -4.5v9z"


def _text(kind: str, x: float, y: float, text: str) -> str:
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}">{escape(text)}</text>' if text else ""


def _cut(text: str, width: float, measured: Callable[[str], float]) -> str:
    """What is too long loses its beginning: the end of a path tells more."""
    while len(text) > 4 and measured(text) > width + 0.5:
        text = f"…{text[2:] if text.startswith('…') else text[1:]}"
    return text
