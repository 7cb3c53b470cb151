"""Which columns a column is made from, and which are made from it: through writes, and through views."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from sqlalchemy import Connection

from headwater.errors import ConfigurationError
from headwater.events.clock import micros_of
from headwater.lineage.questions.answers import Why
from headwater.lineage.questions.completeness import complete_until
from headwater.lineage.questions.datasets import Dataset, described
from headwater.lineage.questions.lacks import lacks
from headwater.lineage.questions.names import find, parts_of
from headwater.lineage.questions.snapshots import AT_MOST, Asked, job_text
from headwater.lineage.questions.starts import Which
from headwater.lineage.questions.tables import VIEW, WRITE
from headwater.lineage.questions.versions import Lineage
from headwater.lineage.questions.walking.between import edges_between
from headwater.lineage.questions.walking.identities import FOREVER, Identities
from headwater.lineage.questions.walking.limits import Limits
from headwater.lineage.questions.walking.shapes import Link, Path, Shapes, covers, of_view
from headwater.lineage.questions.walking.views import defined_on, views_on
from headwater.lineage.questions.walking.walk import Basis, Step


@dataclass(frozen=True)
class Column:
    """A column of a table, nested ones by their path; none of them is the whole table."""

    dataset: Dataset
    path: Path | None
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
    """One column is made from another, or by its values it is decided what rows there are (`is_direct` is false)."""

    depth: int
    target: Column
    source: Column
    derivation: str
    is_direct: bool
    expression: str | None
    via: str
    jobs: tuple[str, ...]


class _Pair(NamedTuple):
    """Two tables whose columns are linked."""

    target: bytes
    source: bytes
    link: Link
    via: str
    job: str | None
    snapshots: tuple[int | None, int | None] = (None, None)


def upstream_columns(
    connection: Connection,
    of: str | Dataset,
    column: str | Path | None = None,
    *,
    snapshot: int | None = None,
    basis: Basis | str = Basis.COMMIT,
    branch: str | None = None,
    depth: int | None = None,
    indirect: bool = True,
    as_of: datetime | None = None,
    at_most: int = AT_MOST,
) -> Lineage[ColumnEdge]:
    """What a column is made from: by all writes of its table; with a snapshot, by those that this was made by. Columns
    that only decide about rows (joins, filters) are told, and not followed; `indirect` says whether they are told."""
    asked, path, snapshot = _meant(connection, of, column, snapshot)
    walk = _Columns(connection, upward=True, indirect=indirect, as_of=as_of)
    if snapshot is not None:
        question = Asked.of(connection, asked, Which(snapshot, None, branch), basis, as_of)
        walk.limits = question.walk.limits
        walk.steps = question.gathered(question.upward(depth), at_most)
        return walk.answer(asked, path, depth, at_most, Basis(basis))
    return walk.answer(asked, path, depth, at_most)


def downstream_columns(
    connection: Connection,
    of: str | Dataset,
    column: str | Path | None = None,
    *,
    depth: int | None = None,
    indirect: bool = True,
    as_of: datetime | None = None,
    at_most: int = AT_MOST,
) -> Lineage[ColumnEdge]:
    """What breaks if this column changes: what is made from it, by any write or view."""
    asked, path, _ = _meant(connection, of, column, None)
    return _Columns(connection, upward=False, indirect=indirect, as_of=as_of).answer(asked, path, depth, at_most)


def _meant(
    connection: Connection, of: str | Dataset, column: str | Path | None, snapshot: int | None
) -> tuple[Dataset, Path, int | None]:
    path = parts_of(column) if isinstance(column, str) else column
    if isinstance(of, str):
        named = find(connection, of)
        of, path = named.dataset, path or named.column
        snapshot = named.snapshot if snapshot is None else snapshot
    if not path:
        raise ConfigurationError(f"which column of {of.label}? Write {of.label}.COLUMN")
    return of, path, snapshot


class _Columns:
    """For one question."""

    def __init__(self, connection: Connection, *, upward: bool, indirect: bool, as_of: datetime | None) -> None:
        self._connection = connection
        self._upward = upward
        self._indirect = indirect
        self._as_of = FOREVER if as_of is None else micros_of(as_of)
        self._identities = Identities(connection)
        self._shapes = Shapes(connection)
        self._found: dict[tuple[Path, Path, _Pair], tuple[int, dict[str, None]]] = {}
        self.limits = Limits()
        self.steps: list[Step] | None = None

    def answer(
        self, of: Dataset, path: Path, depth: int | None, at_most: int, basis: Basis | None = None
    ) -> Lineage[ColumnEdge]:
        start = self._identities.one(of.key)
        self._spread({start: {path}}, depth, at_most)
        ends = {end for _, _, pair in self._found for end in (pair.target, pair.source)} | {start}
        names = described(self._connection, {*ends, *self.limits.datasets})
        lacks(self._connection, {key: names[key] for key in ends}, (), self.limits)
        rows = [self._row(key, *found, names) for key, found in self._found.items()]
        return Lineage(
            tuple(sorted(rows[:at_most], key=_order)),
            complete_until(self._connection),
            self.limits.told(names),
            of=f"{names[start].label}.{'.'.join(path)}",
            direction="upstream" if self._upward else "downstream",
            basis=basis,
        )

    def _spread(self, frontier: dict[bytes, set[Path]], depth: int | None, at_most: int) -> None:
        level, seen = 1, {(one, path) for one, paths in frontier.items() for path in paths}
        while frontier and (depth is None or level <= depth):
            following: dict[bytes, set[Path]] = {}
            for far, path in list(self._level(frontier, level)):
                if (far, path) not in seen:
                    seen.add((far, path))
                    following.setdefault(far, set()).add(path)
            if len(self._found) > at_most:
                self.limits.add(Why.CUT, f"the first {at_most:,} edges", "ask for more")
                return
            frontier, level = following, level + 1

    def _level(self, frontier: Mapping[bytes, set[Path]], level: int) -> Iterator[tuple[bytes, Path]]:
        for pair in self._pairs(frontier):
            near, far = (pair.target, pair.source) if self._upward else (pair.source, pair.target)
            ends = (pair.link.target, pair.link.source)
            near_path, far_path = ends if self._upward else (ends[1], ends[0])
            for asked in frontier.get(near, ()):
                if not covers(near_path, asked) or not (pair.link.is_direct or self._indirect):
                    continue
                known = self._found.setdefault((*ends, pair._replace(job=None)), (level, {}))
                if pair.job is not None:
                    known[1][pair.job] = None
                if pair.link.is_direct:
                    yield far, _within(far_path, near_path, asked)

    def _pairs(self, frontier: Mapping[bytes, set[Path]]) -> Iterable[_Pair]:
        members = {member: one for one in frontier for member in self._identities.group(one)}
        if self.steps is not None:
            yield from self._of_steps(members)
            return
        yield from self._of_writes(members)
        find_views = defined_on if self._upward else views_on
        for definition in find_views(self._connection, members, self._as_of):
            for source, link in of_view(definition):
                view, one = self._identities.one(definition.view), self._identities.one(source)
                if self._upward or source in members:
                    yield _Pair(view, one, link, VIEW, None)

    def _of_writes(self, members: Mapping[bytes, bytes]) -> Iterator[_Pair]:
        edges = edges_between(self._connection, members, self.limits, upward=self._upward, as_of=self._as_of)
        self._shapes.load(bytes(each.fingerprint) for each in edges if each.fingerprint is not None)
        for each in edges:
            if each.target is not None and each.source is not None:
                fingerprint = None if each.fingerprint is None else bytes(each.fingerprint)
                job = job_text((each.job_namespace, each.job))
                yield from self._linked(bytes(each.target), bytes(each.source), fingerprint, job)

    def _of_steps(self, members: Mapping[bytes, bytes]) -> Iterator[_Pair]:
        steps = [each for each in self.steps or () if each.made.dataset in members and each.taken.dataset is not None]
        self._shapes.load(each.made.fingerprint for each in steps if each.made.fingerprint is not None)
        for step in steps:
            made, taken = step.made, step.taken
            assert made.dataset is not None  # noqa: S101 - they were chosen for it
            assert taken.dataset is not None  # noqa: S101
            for pair in self._linked(made.dataset, taken.dataset, made.fingerprint, job_text(made.job)):
                yield pair._replace(snapshots=(made.snapshot, taken.snapshot))

    def _linked(self, target: bytes, source: bytes, fingerprint: bytes | None, job: str | None) -> Iterator[_Pair]:
        shape = self._shapes.of(fingerprint)
        if shape is None:
            detail = "the shape of a write never came" if fingerprint else "a write has no shape that is told"
            self.limits.add_snapshot(Why.UNKNOWN_COLUMNS, target, None, detail)
            return
        if not shape.is_whole:
            detail = "of the shape of a write not all parts came"
            self.limits.add_snapshot(Why.UNKNOWN_COLUMNS, target, None, detail)
        ends = (self._identities.one(target), self._identities.one(source))
        yield from (_Pair(*ends, link, WRITE, job) for link in shape.links.get((target, source), ()))

    def _row(
        self, key: tuple[Path, Path, _Pair], depth: int, jobs: Mapping[str, None], names: Mapping[bytes, Dataset]
    ) -> ColumnEdge:
        target, source, pair = key
        made, taken = pair.snapshots
        return ColumnEdge(
            depth,
            Column(names[pair.target], target or None, made),
            Column(names[pair.source], source, taken),
            pair.link.derivation,
            pair.link.is_direct,
            pair.link.expression,
            pair.via,
            tuple(sorted(jobs)),
        )


def _order(edge: ColumnEdge) -> tuple[int, str, str, str]:
    return (edge.depth, edge.target.label, edge.source.label, edge.derivation)


def _within(far: Path, near: Path, asked: Path) -> Path:
    """Of a struct that is taken as it is, the field that is asked for is the same field there."""
    return (*far, *asked[len(near) :]) if len(asked) > len(near) else far
