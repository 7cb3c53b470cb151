"""An answer for Graphviz."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from headwater.lineage.forms.picture import PART, Line, Node, picture_of
from headwater.lineage.questions.versions import Lineage


def as_dot(answer: Lineage[Any]) -> str:
    """Data flows from left to right. Dashed: what only decides about rows; red: part of a cycle."""
    return "\n".join(_lines(answer)) + "\n"


def _lines(answer: Lineage[Any]) -> Iterator[str]:
    picture = picture_of(answer)
    names = {identity: f"n{number}" for number, identity in enumerate(picture.nodes, 1)}
    yield "digraph lineage {"
    yield '  rankdir=LR; node [shape=box, style=rounded, fontname="sans-serif"]; edge [fontname="sans-serif"];'
    yield f"  label={quoted(f'{answer.of}: {answer.direction}')}; labelloc=t;"
    for identity, node in picture.nodes.items():
        bold = ", penwidth=2" if identity in picture.roots else ""
        yield f"  {names[identity]} [label={quoted(_label(node))}{bold}];"
    for line in picture.lines.values():
        yield f"  {names[line.source]} -> {names[line.target]}{_look(line)};"
    yield "}"


def quoted(text: str) -> str:
    """A string of DOT: it knows no escape but that of the quote, and reads a backslash as its own."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\r", " ").replace("\n", "\\n") + '"'


def _label(node: Node) -> str:
    return f"{node.label}\n{node.note}" if node.note else node.label


def _look(line: Line) -> str:
    looks = [f"label={quoted(line.label)}"] if line.label else []
    looks += ["style=dashed"] if not line.is_direct or line.label == PART else []
    looks += ["color=red"] if line.in_cycle else []
    return f" [{', '.join(looks)}]" if looks else ""
