"""Column lineage, upstream and downstream, through writes and through views."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import chain
from typing import NamedTuple

from sqlalchemy import Connection

from headwater.errors import ConfigurationError
from headwater.lineage.questions.answers import LimitReason, micros_of_argument
from headwater.lineage.questions.completeness import complete_until
from headwater.lineage.questions.datasets import Dataset, load_datasets
from headwater.lineage.questions.known_columns import check_column
from headwater.lineage.questions.lineage_answers import LineageAnswer, add_known_limits
from headwater.lineage.questions.name_checks import TableSubject
from headwater.lineage.questions.names import find, parts_of
from headwater.lineage.questions.snapshots import AT_MOST, SnapshotQuestion, format_job_key
from headwater.lineage.questions.start_points import StartSelector
from headwater.lineage.questions.tables import VIEW, WRITE
from headwater.lineage.questions.traversal.column_links import (
    ColumnLink,
    ColumnPath,
    JobColumnsLoader,
    covers,
    view_links,
)
from headwater.lineage.questions.traversal.context import Basis, LineageStep
from headwater.lineage.questions.traversal.identities import FOREVER, Identities, IdentityMembers
from headwater.lineage.questions.traversal.limits import LimitCollector
from headwater.lineage.questions.traversal.table_edges import edges_between
from headwater.lineage.questions.traversal.views import (
    ViewDefinition,
    add_source_limits,
    add_view_limit,
    defined_on,
    views_on,
)


@dataclass(frozen=True)
class ColumnRef:
    """A column of a table. Nested columns have a path; None stands for the whole table."""

    dataset: Dataset
    path: ColumnPath | None
    snapshot: int | None = None
    """Where the question is about snapshots."""

    @property
    def label_of_table(self) -> str:
        return self.dataset.label if self.snapshot is None else f"{self.dataset.label}@{self.snapshot}"

    @property
    def label(self) -> str:
        return f"{self.label_of_table}.{'.'.join(self.path or ('*',))}"


@dataclass(frozen=True)
class ColumnEdge:
    """One column is computed from another. If `is_direct` is false, the source only decides which rows exist."""

    depth: int
    target: ColumnRef
    source: ColumnRef
    derivation: str
    is_direct: bool
    expression: str | None
    via: str
    jobs: tuple[str, ...]


class _Pair(NamedTuple):
    """Two tables with linked columns."""

    target: bytes
    source: bytes
    link: ColumnLink
    via: str
    job: str | None
    snapshots: tuple[int | None, int | None] = (None, None)


def upstream_columns(
    connection: Connection,
    of: str | Dataset,
    column: str | ColumnPath | None = None,
    *,
    snapshot: int | None = None,
    basis: Basis | str = Basis.COMMIT,
    branch: str | None = None,
    depth: int | None = None,
    indirect: bool = True,
    as_of: datetime | None = None,
    at_most: int = AT_MOST,
) -> LineageAnswer[ColumnEdge]:
    """Return the columns that a column is made from: by all writes of its table, or with `snapshot` by those that made
    it.

    Columns that only decide which rows exist (joins, filters) are included if `indirect` is set; they aren't followed
    further.
    """
    requested, path, snapshot = _resolve(connection, of, column, snapshot)
    walk = _Columns(connection, upward=True, indirect=indirect, as_of=as_of)
    if snapshot is not None:
        question = SnapshotQuestion.of(connection, requested, StartSelector(snapshot, None, branch), basis, as_of)
        walk.limits = question.walk.limits
        walk.steps = question.collect(question.upward(depth), at_most)
        return walk.answer(requested, path, depth, at_most, Basis(basis))
    return walk.answer(requested, path, depth, at_most)


def downstream_columns(
    connection: Connection,
    of: str | Dataset,
    column: str | ColumnPath | None = None,
    *,
    depth: int | None = None,
    indirect: bool = True,
    as_of: datetime | None = None,
    at_most: int = AT_MOST,
) -> LineageAnswer[ColumnEdge]:
    """Return the columns that are made from a column, by any write or view: what breaks if it changes."""
    requested, path, _ = _resolve(connection, of, column, None)
    return _Columns(connection, upward=False, indirect=indirect, as_of=as_of).answer(requested, path, depth, at_most)


def adjacent_columns(
    connection: Connection, of: Dataset, *, upward: bool, as_of: datetime | None = None, at_most: int = AT_MOST
) -> LineageAnswer[ColumnEdge]:
    """Return one step of all columns of a table: what they are made from, or what is made from them."""
    return _Columns(connection, upward=upward, indirect=False, as_of=as_of).answer_of_table(of, at_most)


def _resolve(
    connection: Connection, of: str | Dataset, column: str | ColumnPath | None, snapshot: int | None
) -> tuple[Dataset, ColumnPath, int | None]:
    path = parts_of(column) if isinstance(column, str) else column
    if isinstance(of, str):
        named = find(connection, of)
        of, path = named.dataset, path or named.column
        snapshot = named.snapshot if snapshot is None else snapshot
    if not path:
        raise ConfigurationError(f"which column of {of.label}? Write {of.label}.COLUMN")
    return of, path, snapshot


class _Columns:
    """Collects the answer to one question."""

    def __init__(self, connection: Connection, *, upward: bool, indirect: bool, as_of: datetime | None) -> None:
        self._connection = connection
        self._upward = upward
        self._indirect = indirect
        self._as_of = FOREVER if as_of is None else micros_of_argument(as_of, "as_of")
        self._identities = Identities(connection)
        self._shapes = JobColumnsLoader(connection)
        self._found: dict[tuple[ColumnPath, ColumnPath, _Pair], tuple[int, dict[str, None]]] = {}
        self.limits = LimitCollector()
        self.steps: list[LineageStep] | None = None

    def answer(
        self, of: Dataset, path: ColumnPath, depth: int | None, at_most: int, basis: Basis | None = None
    ) -> LineageAnswer[ColumnEdge]:
        start = self._identities.one(of.key)
        self._spread({start: {path}}, depth, at_most)
        about = TableSubject(of, self._identities.group(of.key))
        has_lineage = any(self._names(key, start, path) for key in self._found)
        note = check_column(self._connection, about, path, has_lineage=has_lineage)
        return self._answer(start, f".{'.'.join(path)}", at_most, basis, note or "")

    def answer_of_table(self, of: Dataset, at_most: int) -> LineageAnswer[ColumnEdge]:
        """Return the nearest edges of all columns: an empty path is met by each."""
        start = self._identities.one(of.key)
        self._spread({start: {()}}, 1, at_most)
        return self._answer(start, "", at_most)

    def _answer(
        self, start: bytes, column: str, at_most: int, basis: Basis | None = None, note: str = ""
    ) -> LineageAnswer[ColumnEdge]:
        if not self._upward:
            add_view_limit(self._connection, self._identities, start, self.limits)
        ends = {end for _, _, pair in self._found for end in (pair.target, pair.source)} | {start}
        names = load_datasets(self._connection, {*ends, *self.limits.datasets})
        add_known_limits(self._connection, {key: names[key] for key in ends}, (), self.limits)
        rows = [self._row(key, *found, names) for key, found in self._found.items()]
        return LineageAnswer(
            tuple(sorted(rows[:at_most], key=_order)),
            complete_until(self._connection),
            self.limits.as_limits(names),
            of=names[start].label + column,
            direction="upstream" if self._upward else "downstream",
            basis=basis,
            note=note,
        )

    def _names(self, key: tuple[ColumnPath, ColumnPath, _Pair], dataset: bytes, path: ColumnPath) -> bool:
        """Return whether an edge that was found names the column, and not all of its table."""
        target, source, pair = key
        near, named = (pair.target, target) if self._upward else (pair.source, source)
        return near == dataset and bool(named) and covers(named, path)

    def _spread(self, frontier: dict[bytes, set[ColumnPath]], depth: int | None, at_most: int) -> None:
        level, seen = 1, {(one, path) for one, paths in frontier.items() for path in paths}
        while frontier and (depth is None or level <= depth):
            following: dict[bytes, set[ColumnPath]] = {}
            for far, path in list(self._level(frontier, level)):
                if (far, path) not in seen:
                    seen.add((far, path))
                    following.setdefault(far, set()).add(path)
            if len(self._found) > at_most:
                self.limits.add(LimitReason.CUT, f"the first {at_most:,} edges", "ask for more")
                return
            frontier, level = following, level + 1

    def _level(self, frontier: Mapping[bytes, set[ColumnPath]], level: int) -> Iterator[tuple[bytes, ColumnPath]]:
        for pair in self._pairs(frontier):
            near, far = (pair.target, pair.source) if self._upward else (pair.source, pair.target)
            ends = (pair.link.target, pair.link.source)
            near_path, far_path = ends if self._upward else (ends[1], ends[0])
            for requested in frontier.get(near, ()):
                if not covers(near_path, requested) or not (pair.link.is_direct or self._indirect):
                    continue
                known = self._found.setdefault((*ends, pair._replace(job=None)), (level, {}))
                if pair.job is not None:
                    known[1][pair.job] = None
                if pair.link.is_direct:
                    yield far, _field_on_far_side(far_path, near_path, requested)

    def _pairs(self, frontier: Mapping[bytes, set[ColumnPath]]) -> Iterable[_Pair]:
        members = {member: one for one in frontier for member in self._identities.group(one)}
        if self.steps is not None:
            yield from self._of_steps(members)
            return
        yield from self._of_writes(members)
        for definition in self._views(self._identities.members(frontier)):
            if self._upward:
                add_source_limits(definition, self.limits)
            for source, link in view_links(definition):
                if self._upward or source in members:
                    yield _Pair(definition.view, self._identities.one(source), link, VIEW, None)

    def _views(self, members: IdentityMembers) -> Iterator[ViewDefinition]:
        if self._upward:
            return defined_on(self._connection, members, self._as_of)
        return views_on(self._connection, self._identities, members, self._as_of)

    def _of_writes(self, members: Mapping[bytes, bytes]) -> Iterator[_Pair]:
        portions = edges_between(self._connection, members, self.limits, upward=self._upward, as_of=self._as_of)
        edges = list(chain.from_iterable(portions))
        self._shapes.load(bytes(edge.fingerprint) for edge in edges if edge.fingerprint is not None)
        for edge in edges:
            if edge.target is not None and edge.source is not None:
                fingerprint = None if edge.fingerprint is None else bytes(edge.fingerprint)
                job = format_job_key((edge.job_namespace, edge.job))
                yield from self._linked(bytes(edge.target), bytes(edge.source), fingerprint, job)

    def _of_steps(self, members: Mapping[bytes, bytes]) -> Iterator[_Pair]:
        steps = [step for step in self.steps or () if step.write.dataset in members and step.read.dataset is not None]
        self._shapes.load(step.write.fingerprint for step in steps if step.write.fingerprint is not None)
        for step in steps:
            write, read = step.write, step.read
            assert write.dataset is not None  # noqa: S101 - they were chosen for it
            assert read.dataset is not None  # noqa: S101
            for pair in self._linked(write.dataset, read.dataset, write.fingerprint, format_job_key(write.job)):
                yield pair._replace(snapshots=(write.snapshot, read.snapshot))

    def _linked(self, target: bytes, source: bytes, fingerprint: bytes | None, job: str | None) -> Iterator[_Pair]:
        shape = self._shapes.of(fingerprint)
        if shape is None:
            detail = "the job lineage of a write never arrived" if fingerprint else "a write has no job lineage"
            self.limits.add_snapshot(LimitReason.UNKNOWN_COLUMNS, target, None, detail)
            return
        if shape.is_omitted:
            detail = "the column lineage of a write was too large for one event"
            self.limits.add_snapshot(LimitReason.UNKNOWN_COLUMNS, target, None, detail)
        ends = (self._identities.one(target), self._identities.one(source))
        yield from (_Pair(*ends, link, WRITE, job) for link in shape.links.get((target, source), ()))

    def _row(
        self,
        key: tuple[ColumnPath, ColumnPath, _Pair],
        depth: int,
        jobs: Mapping[str, None],
        names: Mapping[bytes, Dataset],
    ) -> ColumnEdge:
        target, source, pair = key
        write, read = pair.snapshots
        return ColumnEdge(
            depth,
            ColumnRef(names[pair.target], target or None, write),
            ColumnRef(names[pair.source], source, read),
            pair.link.derivation,
            pair.link.is_direct,
            pair.link.expression,
            pair.via,
            tuple(sorted(jobs)),
        )


def _order(edge: ColumnEdge) -> tuple[int, str, str, str]:
    return (edge.depth, edge.target.label, edge.source.label, edge.derivation)


def _field_on_far_side(far: ColumnPath, near: ColumnPath, requested: ColumnPath) -> ColumnPath:
    """Return the same field on the far side, where a struct is copied as a whole."""
    return (*far, *requested[len(near) :]) if len(requested) > len(near) else far
