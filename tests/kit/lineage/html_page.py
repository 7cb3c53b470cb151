"""What is in a page of HTML, read as a browser reads it."""

from __future__ import annotations

from dataclasses import dataclass, field
from html.parser import HTMLParser

_VOID = {"meta", "link", "br", "rect", "path", "img", "input", "hr"}


@dataclass
class Element:
    tag: str
    attributes: dict[str, str]
    parts: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        return "".join(self.parts)

    @property
    def classes(self) -> set[str]:
        return set(self.attributes.get("class", "").split())


class Read(HTMLParser):
    """All elements in their order; the text of each with that of what is in it."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[Element] = []
        self.open: list[Element] = []
        self.feed(page)
        self.close()
        assert self.open == [], [each.tag for each in self.open]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append(Element(tag, {name: value or "" for name, value in attrs}))
        if tag not in _VOID:
            self.open.append(self.elements[-1])

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append(Element(tag, {name: value or "" for name, value in attrs}))

    def handle_endtag(self, tag: str) -> None:
        assert self.open, tag
        assert self.open.pop().tag == tag

    def handle_data(self, data: str) -> None:
        for each in self.open:
            each.parts.append(data)

    def of(self, tag: str, *classes: str) -> list[Element]:
        return [each for each in self.elements if each.tag == tag and set(classes) <= each.classes]

    def wires(self, graph: str) -> set[tuple[str, str]]:
        """Of one graph, from which label to which."""
        named = {
            each.attributes["id"]: each.attributes["aria-label"] for each in self.of("g") if "id" in each.attributes
        }
        return {
            (named[each.attributes["data-from"]], named[each.attributes["data-to"]])
            for each in self.of("g", "wire")
            if each.attributes["data-from"].startswith(f"{graph}-")
        }
