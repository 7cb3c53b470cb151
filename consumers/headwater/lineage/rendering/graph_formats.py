"""Renders an answer for Graphviz, as a Mermaid flowchart, and as JSON.

The form of JSON is documented in docs/questions.md and stable.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from headwater.lineage.questions.columns import ColumnEdge, ColumnRef
from headwater.lineage.questions.datasets import Dataset
from headwater.lineage.questions.lineage_answers import (
    DatasetVersion,
    LineageAnswer,
    SnapshotEdge,
    StateEdge,
    VersionRange,
)
from headwater.lineage.questions.tables import TableEdge
from headwater.lineage.rendering.lineage_graph import PART, GraphEdge, GraphNode, build_graph
from headwater.terminal import printable, printable_json


def as_dot(answer: LineageAnswer[Any]) -> str:
    """Return a DOT graph. Dashed edges only decide which rows exist; red edges are part of a cycle."""
    return "\n".join(_dot_lines(answer)) + "\n"


def _dot_lines(answer: LineageAnswer[Any]) -> Iterator[str]:
    picture = build_graph(answer)
    names = {identity: f"n{number}" for number, identity in enumerate(picture.nodes, 1)}
    yield "digraph lineage {"
    yield '  rankdir=LR; node [shape=box, style=rounded, fontname="sans-serif"]; edge [fontname="sans-serif"];'
    yield f"  label={quoted(f'{answer.of}: {answer.direction}')}; labelloc=t;"
    for identity, node in picture.nodes.items():
        bold = ", penwidth=2" if identity in picture.roots else ""
        yield f"  {names[identity]} [label={_dot_label(node)}{bold}];"
    for line in picture.lines.values():
        yield f"  {names[line.source]} -> {names[line.target]}{_look(line)};"
    yield "}"


def quoted(text: str) -> str:
    """Quote a DOT string; Graphviz reads backslashes in labels as escapes of its own."""
    return '"' + printable(text).replace("\\", "\\\\").replace('"', '\\"') + '"'


def _dot_label(node: GraphNode) -> str:
    """Return the quoted label, the note on a line of its own."""
    return f"{quoted(node.label)[:-1]}\\n{quoted(node.note)[1:]}" if node.note else quoted(node.label)


def _look(line: GraphEdge) -> str:
    looks = [f"label={quoted(line.label)}"] if line.label else []
    looks += ["style=dashed"] if not line.is_direct or line.label == PART else []
    looks += ["color=red"] if line.in_cycle else []
    return f" [{', '.join(looks)}]" if looks else ""


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
    return "\n".join(_mermaid_lines(answer)) + "\n"


def _mermaid_lines(answer: LineageAnswer[Any]) -> Iterator[str]:
    picture = build_graph(answer)
    names = {identity: f"n{number}" for number, identity in enumerate(picture.nodes, 1)}
    yield "flowchart LR"
    for identity, node in picture.nodes.items():
        yield f'  {names[identity]}["{_mermaid_label(node)}"]'
    for line in picture.lines.values():
        yield f"  {names[line.source]} {_arrow(line)} {names[line.target]}"
    roots = ",".join(names[root] for root in picture.roots)
    if roots:
        yield f"  style {roots} stroke-width:3px"


def escaped(text: str) -> str:
    """Escape characters that Mermaid interprets: `%%{init: …}%%` is a directive wherever it stands."""
    return "".join(_ENTITIES.get(character, character) for character in printable(text))


def _mermaid_label(node: GraphNode) -> str:
    return f"{escaped(node.label)}<br/>{escaped(node.note)}" if node.note else escaped(node.label)


def _arrow(line: GraphEdge) -> str:
    arrow = "-.->" if not line.is_direct or line.label == PART else "-->"
    return f'{arrow}|"{escaped(line.label)}"|' if line.label else arrow


FORM: Final = 1
"""The version of the form. It changes when the meaning of a field changes; new fields may be added at any time."""
_LONGS: Final = frozenset({"snapshot", "since", "barrier", "first", "last", "parent"})
"""64-bit integers are written as texts, because JavaScript can't represent them."""
_KINDS: Final = {TableEdge: "table", SnapshotEdge: "snapshot", StateEdge: "state", ColumnEdge: "column"}


def as_json(answer: LineageAnswer[Any], *, indent: int | None = None) -> str:
    return printable_json(plain(answer), indent=indent)


def plain(answer: LineageAnswer[Any]) -> dict[str, Any]:
    """Return the answer as plain values, ready for JSON."""
    return {
        "form": FORM,
        "of": answer.of,
        "direction": answer.direction,
        "basis": None if answer.basis is None else answer.basis.value,
        "note": answer.note or None,
        "complete_until": _json_value(answer.complete_until),
        "is_partial": answer.is_partial,
        "limits": [
            {"why": limit.why.value, "about": limit.about, "detail": limit.detail or None} for limit in answer.limits
        ],
        "edges": [edge(row) for row in answer.rows],
    }


def edge(row: Any) -> dict[str, Any]:
    """Return one edge as plain values, as streams write it."""
    return {"edge": _KINDS[type(row)], **_fields(row)}


def _fields(row: Any) -> dict[str, Any]:
    return {name: _long(value) if name in _LONGS else _json_value(value) for name, value in vars(row).items()}


def _long(value: Any) -> Any:
    return str(value) if isinstance(value, int) else _json_value(value)


def _json_value(value: Any) -> Any:
    if isinstance(value, Dataset):
        return {"namespace": value.namespace, "name": value.name, "known_as": list(value.known_as)}
    if isinstance(value, (DatasetVersion, VersionRange, ColumnRef)):
        return _fields(value)
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    if isinstance(value, UUID):
        return str(value)
    return list(value) if isinstance(value, tuple) else value
