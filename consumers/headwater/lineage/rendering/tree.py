"""Renders an answer as a text tree, with its limits in words below."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from headwater.events.presentation.phrases import seconds_of
from headwater.lineage.questions.answers import AnswerLimit, LimitReason
from headwater.lineage.questions.lineage_answers import LineageAnswer
from headwater.lineage.questions.traversal.context import Basis
from headwater.lineage.rendering.lineage_graph import PART, ROWS, GraphEdge, Id, LineageGraph, build_graph, datasets_in
from headwater.terminal import printable

WORDS: Final[Mapping[LimitReason, str]] = {
    LimitReason.OPAQUE: "reads something that Spark doesn't show",
    LimitReason.UNKNOWN_SOURCES: "its sources are unknown",
    LimitReason.UNKNOWN_SNAPSHOT: "its version is uncertain",
    LimitReason.UNKNOWN_WRITER: "its writer is unknown",
    LimitReason.UNKNOWN_COLUMNS: "some of its columns are unknown",
    LimitReason.UNKNOWN_EFFECT: "it is unknown whether a change took effect",
    LimitReason.THROUGH_VIEW: "it is a view",
    LimitReason.GAP: "something may be missing",
    LimitReason.OMITTED: "lineage is switched off",
    LimitReason.DELETED: "lineage was deleted",
    LimitReason.CUT: "cut off",
}
_BASIS: Final = {
    Basis.COMMIT: "what its commit read (commit)",
    Basis.STATE: "what is in it: all commits since the last full overwrite (state)",
}


def as_text(answer: LineageAnswer[Any]) -> str:
    return "\n".join(map(printable, _lines(answer)))


def _lines(answer: LineageAnswer[Any]) -> Iterator[str]:
    picture = build_graph(answer)
    yield _title(answer)
    if answer.note:
        yield f"  {answer.note}"
    yield ""
    yield from _path(picture) if answer.direction == "path" else _trees(picture)
    if not answer.rows:
        yield "  nothing is known"
    datasets = datasets_in(answer)
    other = [
        f"  {dataset.label} is also {', '.join(dataset.known_as[1:])}" for dataset in datasets if dataset.known_as[1:]
    ]
    other += [f"  {dataset.label} is {dataset.place}" for dataset in datasets if dataset.short_name]
    if other:
        yield from ("", *other)
    yield ""
    yield from _end(answer)


def _title(answer: LineageAnswer[Any]) -> str:
    if answer.direction == "path":
        return f"the way {answer.of}"
    basis = "" if answer.basis is None else f", {_BASIS[answer.basis]}"
    if answer.direction == "downstream" and answer.basis is not None:
        what = "itself" if answer.basis is Basis.COMMIT else "as a part of any state"
        basis = f", by who read it {what} ({answer.basis.value})"
    return f"{answer.of}: {answer.direction}{basis}"


def _trees(picture: LineageGraph) -> Iterator[str]:
    following: dict[Id, list[tuple[Id, GraphEdge]]] = {}
    for line in picture.lines.values():
        near, far = (line.source, line.target) if picture.direction == "downstream" else (line.target, line.source)
        following.setdefault(near, []).append((far, line))
    shown: set[Id] = set()
    for root in picture.roots:
        if root not in shown:
            node = picture.nodes[root]
            yield _label_line(node.label, node.note if picture.direction != "downstream" else "")
            shown.add(root)
            yield from _lines_below(root, "", picture, following, shown)


def _lines_below(
    start: Id, indent: str, picture: LineageGraph, following: Mapping[Id, list[tuple[Id, GraphEdge]]], shown: set[Id]
) -> Iterator[str]:
    """Yield the lines below a node. It doesn't recurse: a chain can be longer than Python's stack."""
    stack = [(indent, iter(_sort_lines(following.get(start, []), picture)))]
    while stack:
        indent, rest = stack[-1]
        found = next(rest, None)
        if found is None:
            stack.pop()
            continue
        far, line, is_last = found
        again = far in shown and bool(following.get(far))
        through = _through(line, picture)
        yield f"{indent}{'└─ ' if is_last else '├─ '}{_text(picture, far, line)}{through}{_mark(line, again=again)}"
        if far not in shown:
            shown.add(far)
            under = f"{indent}{'   ' if is_last else '│  '}"
            stack.append((under, iter(_sort_lines(following.get(far, []), picture))))


def _sort_lines(lines: list[tuple[Id, GraphEdge]], picture: LineageGraph) -> list[tuple[Id, GraphEdge, bool]]:
    ordered = sorted(lines, key=lambda edge: (picture.nodes[edge[0]].label, edge[1].label))
    return [(far, line, n == len(ordered)) for n, (far, line) in enumerate(ordered, 1)]


def _text(picture: LineageGraph, far: Id, line: GraphEdge) -> str:
    node = picture.nodes[far]
    if line.label in {PART, ROWS}:
        return _label_line(node.label, node.note)
    if line.label and (line.label[0].isdigit() or line.label[0] == "("):
        return _label_line(f"{node.label}@{line.label}", node.note)
    how = f" ({line.label})" if line.label else ""
    return _label_line(f"{node.label}{how}", node.note)


def _through(line: GraphEdge, picture: LineageGraph) -> str:
    """Return which of several jobs an edge goes through."""
    if not line.jobs or line.jobs == picture.nodes[line.target].jobs:
        return ""
    return f"  (through {', '.join(line.jobs)})"


def _mark(line: GraphEdge, *, again: bool) -> str:
    if line.in_cycle:
        return "  (in a cycle)"
    return "  (see above)" if again else ""


def _label_line(label: str, note: str) -> str:
    return f"{label}  {note}" if note else label


def _path(picture: LineageGraph) -> Iterator[str]:
    for number, line in enumerate(picture.lines.values()):
        if number == 0:
            yield picture.nodes[line.source].label
        node = picture.nodes[line.target]
        yield f"{'   ' * number}└─> {_label_line(node.label, node.note)}"


def _end(answer: LineageAnswer[Any]) -> Iterator[str]:
    until = answer.complete_until
    yield "complete until: " + ("nothing is known of that" if until is None else seconds_of(until))
    if answer.limits:
        yield "this answer may be incomplete:"
        yield from (f"  - {limit_text(limit)}" for limit in answer.limits)


def limit_text(limit: AnswerLimit) -> str:
    words = WORDS[limit.why]
    if limit.detail.startswith(words):
        return f"{limit.about}: {limit.detail}"
    return f"{limit.about}: {words}" + (f": {limit.detail}" if limit.detail else "")
