"""Nodes and lines of any answer about lineage: what the forms draw."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Final

from headwater.events.presentation.words import seconds_of
from headwater.lineage.questions.columns import Column, ColumnEdge
from headwater.lineage.questions.datasets import Dataset
from headwater.lineage.questions.tables import VIEW, TableEdge
from headwater.lineage.questions.versions import Lineage, SnapshotEdge, Span, StateEdge, Version
from headwater.lineage.questions.walking.facts import ICEBERG
from headwater.lineage.questions.walking.walk import Basis

Id = Hashable
ROWS: Final = "which rows there are"
PART: Final = "is a part of"


@dataclass
class Node:
    """A table, a version of one, or a column."""

    id: Id
    label: str
    note: str = ""
    """Who made it: the commit's kind, its job and time."""
    jobs: tuple[str, ...] = ()
    """All that make it, where it isn't one commit's."""
    table: str = ""
    """Of a version or a column, the table that it is of; and `part`, which of it."""
    part: str = ""
    at: datetime | None = None
    """When a version was made; else, when it was read first."""


@dataclass(frozen=True)
class Line:
    """What is made (`target`) from what (`source`)."""

    target: Id
    source: Id
    label: str = ""
    """Which versions, where the nodes are tables; how, where they are columns."""
    in_cycle: bool = False
    is_direct: bool = True
    jobs: tuple[str, ...] = ()
    """Through which jobs it goes."""


@dataclass
class Picture:
    of: str
    direction: str
    roots: list[Id] = field(default_factory=list)
    """Where the question began."""
    nodes: dict[Id, Node] = field(default_factory=dict)
    lines: dict[tuple[Id, Id, str], Line] = field(default_factory=dict)

    def node(self, identity: Id, label: str, note: str = "", table: str = "", at: datetime | None = None) -> Id:
        """`table` is what the label begins with, where it is of a part of one."""
        part = label[len(table) :].lstrip("@.") if table else ""
        known = self.nodes.setdefault(identity, Node(identity, label, table=table, part=part))
        known.note = known.note or note
        known.at = min(filter(None, (known.at, at)), default=None)
        return identity

    def line(self, line: Line) -> None:
        key = (line.target, line.source, line.label)
        known = self.lines.get(key)
        self.lines[key] = line if known is None else replace(known, jobs=_united((known, line)))

    def name_jobs(self) -> None:
        """Beside each node who makes it."""
        jobs: dict[Id, list[Line]] = {}
        for line in self.lines.values():
            jobs.setdefault(line.target, []).append(line)
        for target, lines in jobs.items():
            self.nodes[target].note = self.nodes[target].note or _by(_united(lines))
            self.nodes[target].jobs = _united(lines)


def picture_of(answer: Lineage[Any]) -> Picture:
    picture = Picture(answer.of, answer.direction)
    for row in answer.rows:
        target, source = _DRAWN[type(row)](picture, row)
        near = source if answer.direction == "downstream" else target
        if row.depth == 1 and answer.direction != "path" and near not in picture.roots:
            picture.roots.append(near)
    picture.name_jobs()
    _join_wholes(picture, [row for row in answer.rows if isinstance(row, ColumnEdge)])
    _join_ranges(picture, [row for row in answer.rows if isinstance(row, SnapshotEdge)], answer.basis)
    return picture


def _table_edge(picture: Picture, row: TableEdge) -> tuple[Id, Id]:
    target = picture.node(row.target.key, row.target.label, "view" if row.via == VIEW else "")
    source = picture.node(row.source.key, row.source.label)
    picture.line(Line(target, source, in_cycle=row.in_cycle, jobs=tuple(row.jobs)))
    return target, source


def _snapshot_edge(picture: Picture, row: SnapshotEdge) -> tuple[Id, Id]:
    job = "" if row.job is None else f" by {row.job}"
    note = f"{row.kind}{job}, {seconds_of(row.at)}"
    target = picture.node(_version_id(row.target), row.target.label, note, _table(row.target), row.at)
    table = _table(row.source) if _is_known(row.source) else ""
    source = picture.node(_source_id(row), source_label(row), table=table, at=row.at)
    picture.line(Line(target, source))
    return target, source


def _state_edge(picture: Picture, row: StateEdge) -> tuple[Id, Id]:
    target = picture.node(_span_id(row.target), _table(row.target))
    source = picture.node(_span_id(row.source), _table(row.source))
    versions = row.source.label.removeprefix(_table(row.source)).lstrip("@")
    picture.line(Line(target, source, versions, jobs=tuple(row.jobs)))
    return target, source


def _column_edge(picture: Picture, row: ColumnEdge) -> tuple[Id, Id]:
    target = picture.node(_column_id(row.target), row.target.label, table=row.target.label_of_table)
    source = picture.node(_column_id(row.source), row.source.label, table=row.source.label_of_table)
    picture.line(Line(target, source, row.derivation.lower(), is_direct=row.is_direct, jobs=tuple(row.jobs)))
    return target, source


_DRAWN: dict[type, Callable[[Picture, Any], tuple[Id, Id]]] = {
    TableEdge: _table_edge,
    SnapshotEdge: _snapshot_edge,
    StateEdge: _state_edge,
    ColumnEdge: _column_edge,
}


def _join_ranges(picture: Picture, rows: list[SnapshotEdge], basis: Basis | None) -> None:
    """What was read as a state or a range is made of the commits that were found for it: a line from it to each."""
    made: dict[Id, dict[Id, SnapshotEdge]] = {}
    for row in rows:
        made.setdefault(_home(row.target), {})[_version_id(row.target)] = row
    for row in rows:
        if row.since is None and basis is not Basis.STATE:
            continue  # only the commit of this very version was looked for
        source, parts = _source_id(row), made.get(_home(row.source), {})
        inside = _by_parents(row, parts) if _is_unordered(parts) else _by_numbers(row, parts)
        for identity in inside:
            if identity != source:
                picture.line(Line(source, identity, PART))


def _is_unordered(parts: Mapping[Id, SnapshotEdge]) -> bool:
    return any(each.format == ICEBERG for each in parts.values())


def _by_numbers(row: SnapshotEdge, parts: Mapping[Id, SnapshotEdge]) -> Iterator[Id]:
    for identity, other in parts.items():
        if other.depth == row.depth + 1 and _is_within(row, other.target.snapshot):
            yield identity


def _by_parents(row: SnapshotEdge, parts: Mapping[Id, SnapshotEdge]) -> Iterator[Id]:
    """From the version that was read back to where it began, as far as that is told."""
    at, seen = row.source.snapshot, set[int]()
    while at is not None and at != row.since and at not in seen:
        seen.add(at)
        identity = (*_home(row.source), at, None)
        if identity not in parts:
            return
        yield identity
        at = None if parts[identity].restarts and row.since is None else parts[identity].parent


def _join_wholes(picture: Picture, rows: list[ColumnEdge]) -> None:
    """What decides about a table's rows decides about each of its columns."""
    columns = {_column_id(end): end for row in rows for end in (row.target, row.source)}
    for identity, column in columns.items():
        whole = (column.dataset.key, None, column.snapshot)
        if column.path is not None and whole in picture.nodes:
            picture.line(Line(identity, whole, ROWS, is_direct=False))
    if picture.direction == "upstream":
        asked = [root for root in picture.roots if root in columns and columns[root].path is not None]
        picture.roots = asked or picture.roots


def _is_within(row: SnapshotEdge, number: int | None) -> bool:
    if number is None or row.source.snapshot is None:
        return False
    if row.since is not None and row.since < row.source.snapshot:
        return row.since < number <= row.source.snapshot
    return True if row.since is not None else number <= row.source.snapshot


def source_label(row: SnapshotEdge) -> str:
    """Changes as a range, what is opaque as what is known of it."""
    if row.source.opaque is not None and row.source.dataset is None:
        return f"? {row.source.opaque}"
    if row.since is None:
        return row.source.label
    table, _, number = row.source.label.rpartition("@")
    return f"{table}@({row.since}..{number}]"


def _version_id(version: Version) -> Id:
    return (*_home(version), version.snapshot, version.version)


def _source_id(row: SnapshotEdge) -> Id:
    identity = (*_home(row.source), row.source.snapshot, row.source.version)
    return identity if row.since is None else (*identity, row.since)


def _home(version: Version) -> tuple[Any, ...]:
    key: Any = version.name if version.dataset is None else version.dataset.key
    return (key, version.life, version.branch)


def _span_id(span: Span) -> Id:
    return (span.name if span.dataset is None else span.dataset.key, span.life, span.branch)


def _table(of: Span | Version) -> str:
    name = of.name if of.dataset is None or not of.dataset.known_as else of.dataset.label
    return f"{name}[{of.branch}]" if of.branch else name


def _is_known(version: Version) -> bool:
    return version.opaque is None or version.dataset is not None


def _column_id(column: Column) -> Id:
    return (column.dataset.key, column.path, column.snapshot)


def _united(lines: Iterable[Line]) -> tuple[str, ...]:
    return tuple(sorted({job for line in lines for job in line.jobs}))


def _by(jobs: Iterable[str]) -> str:
    names = list(jobs)
    if not names:
        return ""
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return f"by {', '.join(names[:3])}{more}"


def datasets_in(answer: Lineage[Any]) -> Iterator[Dataset]:
    """All that its rows name, each once."""
    seen: set[bytes] = set()
    for row in answer.rows:
        for end in (row.target, row.source):
            found = end if isinstance(end, Dataset) else end.dataset
            if found is not None and found.key not in seen:
                seen.add(found.key)
                yield found
