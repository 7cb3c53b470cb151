"""An answer as a tree of text, its limits in plain words below."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from headwater.events.presentation.words import seconds_of
from headwater.lineage.forms.picture import PART, ROWS, Id, Line, Picture, datasets_in, picture_of
from headwater.lineage.questions.answers import Limit, Why
from headwater.lineage.questions.versions import Lineage
from headwater.lineage.questions.walking.walk import Basis

WORDS: Final[Mapping[Why, str]] = {
    Why.OPAQUE: "reads something that can't be seen",
    Why.UNKNOWN_SOURCES: "what it was made from isn't known",
    Why.UNKNOWN_SNAPSHOT: "which version isn't certain",
    Why.UNKNOWN_WRITER: "its writer isn't known",
    Why.UNKNOWN_COLUMNS: "its columns aren't all known",
    Why.UNKNOWN_EFFECT: "something may have happened to it",
    Why.GAP: "something may be missing",
    Why.OMITTED: "lineage is switched off",
    Why.DELETED: "lineage was deleted",
    Why.CUT: "cut off",
}
_BASIS: Final = {
    Basis.COMMIT: "what its commit read (commit)",
    Basis.STATE: "what is in it: all commits since the last full overwrite (state)",
}


def as_text(answer: Lineage[Any]) -> str:
    return "\n".join(_lines(answer))


def _lines(answer: Lineage[Any]) -> Iterator[str]:
    picture = picture_of(answer)
    yield _title(answer)
    if answer.note:
        yield f"  {answer.note}"
    yield ""
    yield from _path(picture) if answer.direction == "path" else _trees(picture)
    if not answer.rows:
        yield "  nothing is known"
    other = [each for each in datasets_in(answer) if len(each.known_as) > 1]
    if other:
        yield ""
        yield from (f"  {each.label} is also {', '.join(each.known_as[1:])}" for each in other)
    yield ""
    yield from _end(answer)


def _title(answer: Lineage[Any]) -> str:
    if answer.direction == "path":
        return f"the way {answer.of}"
    basis = "" if answer.basis is None else f", {_BASIS[answer.basis]}"
    if answer.direction == "downstream" and answer.basis is not None:
        what = "itself" if answer.basis is Basis.COMMIT else "as a part of any state"
        basis = f", by who read it {what} ({answer.basis.value})"
    return f"{answer.of}: {answer.direction}{basis}"


def _trees(picture: Picture) -> Iterator[str]:
    following: dict[Id, list[tuple[Id, Line]]] = {}
    for line in picture.lines.values():
        near, far = (line.source, line.target) if picture.direction == "downstream" else (line.target, line.source)
        following.setdefault(near, []).append((far, line))
    shown: set[Id] = set()
    for root in picture.roots:
        if root not in shown:
            node = picture.nodes[root]
            yield _labelled(node.label, node.note if picture.direction != "downstream" else "")
            shown.add(root)
            yield from _below(root, "", picture, following, shown)


def _below(
    start: Id, indent: str, picture: Picture, following: Mapping[Id, list[tuple[Id, Line]]], shown: set[Id]
) -> Iterator[str]:
    """Without recursion: a chain can be longer than Python's stack."""
    stack = [(indent, iter(_sorted(following.get(start, []), picture)))]
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
            stack.append((under, iter(_sorted(following.get(far, []), picture))))


def _sorted(lines: list[tuple[Id, Line]], picture: Picture) -> list[tuple[Id, Line, bool]]:
    ordered = sorted(lines, key=lambda each: (picture.nodes[each[0]].label, each[1].label))
    return [(far, line, n == len(ordered)) for n, (far, line) in enumerate(ordered, 1)]


def _text(picture: Picture, far: Id, line: Line) -> str:
    node = picture.nodes[far]
    if line.label in {PART, ROWS}:
        return _labelled(node.label, node.note)
    if line.label and (line.label[0].isdigit() or line.label[0] == "("):
        return _labelled(f"{node.label}@{line.label}", node.note)
    how = f" ({line.label})" if line.label else ""
    return _labelled(f"{node.label}{how}", node.note)


def _through(line: Line, picture: Picture) -> str:
    """Which of several jobs this one goes through."""
    if not line.jobs or line.jobs == picture.nodes[line.target].jobs:
        return ""
    return f"  (through {', '.join(line.jobs)})"


def _mark(line: Line, *, again: bool) -> str:
    if line.in_cycle:
        return "  (in a cycle)"
    return "  (see above)" if again else ""


def _labelled(label: str, note: str) -> str:
    return f"{label}  {note}" if note else label


def _path(picture: Picture) -> Iterator[str]:
    for number, line in enumerate(picture.lines.values()):
        if number == 0:
            yield picture.nodes[line.source].label
        node = picture.nodes[line.target]
        yield f"{'   ' * number}└─> {_labelled(node.label, node.note)}"


def _end(answer: Lineage[Any]) -> Iterator[str]:
    until = answer.complete_until
    yield "complete until: " + ("nothing is known of that" if until is None else seconds_of(until))
    if answer.limits:
        yield "this answer may lack something:"
        yield from (f"  - {limit_text(each)}" for each in answer.limits)


def limit_text(limit: Limit) -> str:
    detail = f": {limit.detail}" if limit.detail else ""
    return f"{limit.about}: {WORDS[limit.why]}{detail}"
