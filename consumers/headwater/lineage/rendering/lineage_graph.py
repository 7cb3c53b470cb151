"""The nodes and edges of any answer about lineage. All renderers use it."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from headwater.errors import PluginError
from headwater.events.presentation.phrases import seconds_of
from headwater.lineage.questions.columns import ColumnEdge, ColumnRef
from headwater.lineage.questions.datasets import Dataset
from headwater.lineage.questions.lineage_answers import (
    DatasetVersion,
    LineageAnswer,
    SnapshotEdge,
    StateEdge,
    VersionRange,
)
from headwater.lineage.questions.tables import VIEW, TableEdge
from headwater.lineage.questions.traversal.context import Basis
from headwater.lineage.questions.traversal.snapshot_rows import is_unordered
from headwater.plugins import extra_command

Id = Hashable
ROWS: Final = "which rows there are"
PART: Final = "is a part of"


@dataclass
class GraphNode:
    """A table, a version of a table, or a column."""

    id: Id
    label: str
    note: str = ""
    """Who wrote it: the commit's kind, job and time."""
    jobs: tuple[str, ...] = ()
    """All jobs that write it, if it isn't a single commit."""
    table: str = ""
    """Of a version or a column, the table that it is of; and `part`, which of it."""
    part: str = ""
    at: datetime | None = None
    """When the version was written, or else first read."""


@dataclass(frozen=True)
class GraphEdge:
    """What (`target`) is made from what (`source`)."""

    target: Id
    source: Id
    label: str = ""
    """The versions if nodes are tables, the derivation if they are columns."""
    in_cycle: bool = False
    is_direct: bool = True
    jobs: tuple[str, ...] = ()
    """The jobs that it goes through."""


@dataclass
class LineageGraph:
    of: str
    direction: str
    roots: list[Id] = field(default_factory=list)
    """Where the question started."""
    nodes: dict[Id, GraphNode] = field(default_factory=dict)
    lines: dict[tuple[Id, Id, str], GraphEdge] = field(default_factory=dict)

    def node(self, identity: Id, label: str, note: str = "", table: str = "", at: datetime | None = None) -> Id:
        """Add a node. `table` is the beginning of the label, if the node is a part of a table."""
        part = label[len(table) :].lstrip("@.") if table else ""
        known = self.nodes.setdefault(identity, GraphNode(identity, label, table=table, part=part))
        known.note = known.note or note
        known.at = min(filter(None, (known.at, at)), default=None)
        return identity

    def line(self, line: GraphEdge) -> None:
        key = (line.target, line.source, line.label)
        known = self.lines.get(key)
        self.lines[key] = line if known is None else replace(known, jobs=_jobs_of((known, line)))

    def name_jobs(self) -> None:
        """Note at each node which jobs write it."""
        jobs: dict[Id, list[GraphEdge]] = {}
        for line in self.lines.values():
            jobs.setdefault(line.target, []).append(line)
        for target, lines in jobs.items():
            self.nodes[target].note = self.nodes[target].note or _by(_jobs_of(lines))
            self.nodes[target].jobs = _jobs_of(lines)


def build_graph(answer: LineageAnswer[Any]) -> LineageGraph:
    picture = LineageGraph(answer.of, answer.direction)
    for row in answer.rows:
        target, source = _ADDERS[type(row)](picture, row)
        near = source if answer.direction == "downstream" else target
        if row.depth == 1 and answer.direction != "path" and near not in picture.roots:
            picture.roots.append(near)
    picture.name_jobs()
    _join_wholes(picture, [row for row in answer.rows if isinstance(row, ColumnEdge)])
    _join_ranges(picture, [row for row in answer.rows if isinstance(row, SnapshotEdge)], answer.basis)
    return picture


def _table_edge(picture: LineageGraph, row: TableEdge) -> tuple[Id, Id]:
    target = picture.node(row.target.key, row.target.label, "view" if row.via == VIEW else "")
    source = picture.node(row.source.key, row.source.label)
    picture.line(GraphEdge(target, source, in_cycle=row.in_cycle, jobs=tuple(row.jobs)))
    return target, source


def _snapshot_edge(picture: LineageGraph, row: SnapshotEdge) -> tuple[Id, Id]:
    job = "" if row.job is None else f" by {row.job}"
    note = f"{row.kind}{job}, {seconds_of(row.at)}"
    target = picture.node(_version_id(row.target), row.target.label, note, _table(row.target), row.at)
    table = _table(row.source) if _is_known(row.source) else ""
    source = picture.node(_source_id(row), source_label(row), table=table, at=row.at)
    picture.line(GraphEdge(target, source))
    return target, source


def _state_edge(picture: LineageGraph, row: StateEdge) -> tuple[Id, Id]:
    target = picture.node(_span_id(row.target), _table(row.target))
    source = picture.node(_span_id(row.source), _table(row.source))
    versions = row.source.label.removeprefix(_table(row.source)).lstrip("@")
    picture.line(GraphEdge(target, source, versions, jobs=tuple(row.jobs)))
    return target, source


def _column_edge(picture: LineageGraph, row: ColumnEdge) -> tuple[Id, Id]:
    target = picture.node(_column_id(row.target), row.target.label, table=row.target.label_of_table)
    source = picture.node(_column_id(row.source), row.source.label, table=row.source.label_of_table)
    picture.line(GraphEdge(target, source, row.derivation.lower(), is_direct=row.is_direct, jobs=tuple(row.jobs)))
    return target, source


_ADDERS: dict[type, Callable[[LineageGraph, Any], tuple[Id, Id]]] = {
    TableEdge: _table_edge,
    SnapshotEdge: _snapshot_edge,
    StateEdge: _state_edge,
    ColumnEdge: _column_edge,
}


def _join_ranges(picture: LineageGraph, rows: list[SnapshotEdge], basis: Basis | None) -> None:
    """Connect a state or a range with the commits that were found for it."""
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
                picture.line(GraphEdge(source, identity, PART))


def _is_unordered(parts: Mapping[Id, SnapshotEdge]) -> bool:
    return any(is_unordered(part.format) for part in parts.values())


def _by_numbers(row: SnapshotEdge, parts: Mapping[Id, SnapshotEdge]) -> Iterator[Id]:
    for identity, other in parts.items():
        if other.depth == row.depth + 1 and _is_within(row, other.target.snapshot):
            yield identity


def _by_parents(row: SnapshotEdge, parts: Mapping[Id, SnapshotEdge]) -> Iterator[Id]:
    """Walk from the read version back to where the range began, as far as parents are known."""
    at, seen = row.source.snapshot, set[int]()
    while at is not None and at != row.since and at not in seen:
        seen.add(at)
        identity = (*_home(row.source), at, None)
        if identity not in parts:
            return
        yield identity
        at = None if parts[identity].restarts and row.since is None else parts[identity].parent


def _join_wholes(picture: LineageGraph, rows: list[ColumnEdge]) -> None:
    """Connect the columns of a table with what decides which rows it has."""
    columns = {_column_id(end): end for row in rows for end in (row.target, row.source)}
    for identity, column in columns.items():
        whole = (column.dataset.key, None, column.snapshot)
        if column.path is not None and whole in picture.nodes:
            picture.line(GraphEdge(identity, whole, ROWS, is_direct=False))
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
    """Return a label: a range for changes, or what is known of an opaque source."""
    if row.source.opaque is not None and row.source.dataset is None:
        return f"? {row.source.opaque}"
    if row.since is None:
        return row.source.label
    table, _, number = row.source.label.rpartition("@")
    return f"{table}@({row.since}..{number}]"


def _version_id(version: DatasetVersion) -> Id:
    return (*_home(version), version.snapshot, version.version)


def _source_id(row: SnapshotEdge) -> Id:
    identity = (*_home(row.source), row.source.snapshot, row.source.version)
    return identity if row.since is None else (*identity, row.since)


def _home(version: DatasetVersion) -> tuple[Any, ...]:
    key: Any = version.name if version.dataset is None else version.dataset.key
    return (key, version.generation, version.branch)


def _span_id(span: VersionRange) -> Id:
    return (span.name if span.dataset is None else span.dataset.key, span.generation, span.branch)


def _table(of: VersionRange | DatasetVersion) -> str:
    name = of.name if of.dataset is None or not of.dataset.known_as else of.dataset.label
    return f"{name}[{of.branch}]" if of.branch else name


def _is_known(version: DatasetVersion) -> bool:
    return version.opaque is None or version.dataset is not None


def _column_id(column: ColumnRef) -> Id:
    return (column.dataset.key, column.path, column.snapshot)


def _jobs_of(lines: Iterable[GraphEdge]) -> tuple[str, ...]:
    return tuple(sorted({job for line in lines for job in line.jobs}))


def _by(jobs: Iterable[str]) -> str:
    names = list(jobs)
    if not names:
        return ""
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return f"by {', '.join(names[:3])}{more}"


def datasets_in(answer: LineageAnswer[Any]) -> Iterator[Dataset]:
    """Yield all datasets of an answer, each once."""
    seen: set[bytes] = set()
    for row in answer.rows:
        for end in (row.target, row.source):
            found = end if isinstance(end, Dataset) else end.dataset
            if found is not None and found.key not in seen:
                seen.add(found.key)
                yield found


if TYPE_CHECKING:
    from networkx import MultiDiGraph


def as_graph(answer: LineageAnswer[Any]) -> MultiDiGraph[Any]:
    """Return a networkx graph. Nodes are labels; edges go from source to target. Needs the extra `graph`."""
    try:
        import networkx as nx  # noqa: PLC0415 - an extra
    except ImportError:
        raise PluginError(f"networkx isn't installed: {extra_command('graph')}") from None
    picture = build_graph(answer)
    graph: MultiDiGraph[Any] = nx.MultiDiGraph(of=answer.of, direction=answer.direction)
    for identity, node in picture.nodes.items():
        graph.add_node(node.label, note=node.note, is_root=identity in picture.roots)
    for line in picture.lines.values():
        ends = (picture.nodes[line.source].label, picture.nodes[line.target].label)
        graph.add_edge(*ends, label=line.label, in_cycle=line.in_cycle, is_direct=line.is_direct)
    return graph
