"""Renders an answer as a Mermaid flowchart."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from headwater.lineage.questions.lineage_answers import LineageAnswer
from headwater.lineage.rendering.lineage_graph import PART, GraphEdge, GraphNode, build_graph
from headwater.terminal import printable

_ENTITIES: Final = {
    "#": "#35;",
    '"': "#quot;",
    "<": "#lt;",
    ">": "#gt;",
    "%": "#37;",
    "{": "#123;",
    "}": "#125;",
    "`": "#96;",
    "|": "#124;",
}


def as_mermaid(answer: LineageAnswer[Any]) -> str:
    return "\n".join(_lines(answer)) + "\n"


def _lines(answer: LineageAnswer[Any]) -> Iterator[str]:
    picture = build_graph(answer)
    names = {identity: f"n{number}" for number, identity in enumerate(picture.nodes, 1)}
    yield "flowchart LR"
    for identity, node in picture.nodes.items():
        yield f'  {names[identity]}["{_label(node)}"]'
    for line in picture.lines.values():
        yield f"  {names[line.source]} {_arrow(line)} {names[line.target]}"
    roots = ",".join(names[root] for root in picture.roots)
    if roots:
        yield f"  style {roots} stroke-width:3px"


def escaped(text: str) -> str:
    """Escape characters that Mermaid interprets: `%%{init: …}%%` is a directive wherever it stands."""
    return "".join(_ENTITIES.get(character, character) for character in printable(text))


def _label(node: GraphNode) -> str:
    return f"{escaped(node.label)}<br/>{escaped(node.note)}" if node.note else escaped(node.label)


def _arrow(line: GraphEdge) -> str:
    arrow = "-.->" if not line.is_direct or line.label == PART else "-->"
    return f'{arrow}|"{escaped(line.label)}"|' if line.label else arrow
