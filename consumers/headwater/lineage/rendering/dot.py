"""Renders an answer for Graphviz."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from headwater.lineage.questions.lineage_answers import LineageAnswer
from headwater.lineage.rendering.lineage_graph import PART, GraphEdge, GraphNode, build_graph
from headwater.terminal import printable


def as_dot(answer: LineageAnswer[Any]) -> str:
    """Return a DOT graph. Dashed edges only decide which rows exist; red edges are part of a cycle."""
    return "\n".join(_lines(answer)) + "\n"


def _lines(answer: LineageAnswer[Any]) -> Iterator[str]:
    picture = build_graph(answer)
    names = {identity: f"n{number}" for number, identity in enumerate(picture.nodes, 1)}
    yield "digraph lineage {"
    yield '  rankdir=LR; node [shape=box, style=rounded, fontname="sans-serif"]; edge [fontname="sans-serif"];'
    yield f"  label={quoted(f'{answer.of}: {answer.direction}')}; labelloc=t;"
    for identity, node in picture.nodes.items():
        bold = ", penwidth=2" if identity in picture.roots else ""
        yield f"  {names[identity]} [label={_label(node)}{bold}];"
    for line in picture.lines.values():
        yield f"  {names[line.source]} -> {names[line.target]}{_look(line)};"
    yield "}"


def quoted(text: str) -> str:
    """Quote a DOT string; Graphviz reads backslashes in labels as escapes of its own."""
    return '"' + printable(text).replace("\\", "\\\\").replace('"', '\\"') + '"'


def _label(node: GraphNode) -> str:
    """Return the quoted label, the note on a line of its own."""
    return f"{quoted(node.label)[:-1]}\\n{quoted(node.note)[1:]}" if node.note else quoted(node.label)


def _look(line: GraphEdge) -> str:
    looks = [f"label={quoted(line.label)}"] if line.label else []
    looks += ["style=dashed"] if not line.is_direct or line.label == PART else []
    looks += ["color=red"] if line.in_cycle else []
    return f" [{', '.join(looks)}]" if looks else ""
