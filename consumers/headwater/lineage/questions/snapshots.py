"""What a snapshot was made from, and what was made from it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime
from itertools import chain, islice
from typing import Any, Final
from uuid import UUID

from sqlalchemy import Connection

from headwater.events.clock import moment_of
from headwater.events.names import DEFAULT_JOB_NAMESPACE
from headwater.lineage.questions.answers import LimitReason, micros_of_argument
from headwater.lineage.questions.completeness import complete_until
from headwater.lineage.questions.datasets import Dataset, load_datasets
from headwater.lineage.questions.lineage_answers import DatasetVersion, LineageAnswer, SnapshotEdge, add_known_limits
from headwater.lineage.questions.name_checks import TableSubject, check_branch, check_snapshot
from headwater.lineage.questions.names import find
from headwater.lineage.questions.start_points import StartPoint, StartSelector, find_start
from headwater.lineage.questions.traversal.ancestry import AncestryRequest, UpstreamWalk
from headwater.lineage.questions.traversal.context import Basis, LineageStep, TraversalContext
from headwater.lineage.questions.traversal.downstream import DownstreamWalk
from headwater.lineage.questions.traversal.snapshot_rows import SnapshotRead, SnapshotWrite, known_targets

AT_MOST: Final = 10_000
"""The default for how many edges an answer contains. Streams have no limit."""


def upstream_snapshots(
    connection: Connection,
    of: str | Dataset,
    snapshot: int | None = None,
    *,
    basis: Basis | str = Basis.COMMIT,
    generation: str | None = None,
    branch: str | None = None,
    depth: int | None = None,
    as_of: datetime | None = None,
    at_most: int = AT_MOST,
) -> LineageAnswer[SnapshotEdge]:
    """Return what a snapshot was made from, and so on up to `depth`. Without a snapshot the newest is meant, or the
    newest at `as_of`."""
    question = SnapshotQuestion.of(connection, of, StartSelector(snapshot, generation, branch), basis, as_of)
    return question.answer("upstream", question.upward(depth), at_most)


def downstream_snapshots(
    connection: Connection,
    of: str | Dataset,
    snapshot: int | None = None,
    *,
    basis: Basis | str = Basis.COMMIT,
    generation: str | None = None,
    branch: str | None = None,
    depth: int | None = None,
    as_of: datetime | None = None,
    at_most: int = AT_MOST,
) -> LineageAnswer[SnapshotEdge]:
    """Return what was made from a snapshot: by commits that read it, or changes that include it, or with the basis
    `state` any state that still contains it."""
    question = SnapshotQuestion.of(connection, of, StartSelector(snapshot, generation, branch), basis, as_of)
    return question.answer("downstream", question.downward(depth), at_most)


def stream_upstream_snapshots(
    connection: Connection,
    of: str | Dataset,
    snapshot: int | None = None,
    *,
    basis: Basis | str = Basis.COMMIT,
    generation: str | None = None,
    branch: str | None = None,
    depth: int | None = None,
    as_of: datetime | None = None,
) -> Iterator[SnapshotEdge]:
    """Yield the edges level by level, without a limit. It yields edges only, no limits."""
    question = SnapshotQuestion.of(connection, of, StartSelector(snapshot, generation, branch), basis, as_of)
    return question.edges(question.upward(depth))


def stream_downstream_snapshots(
    connection: Connection,
    of: str | Dataset,
    snapshot: int | None = None,
    *,
    basis: Basis | str = Basis.COMMIT,
    generation: str | None = None,
    branch: str | None = None,
    depth: int | None = None,
    as_of: datetime | None = None,
) -> Iterator[SnapshotEdge]:
    question = SnapshotQuestion.of(connection, of, StartSelector(snapshot, generation, branch), basis, as_of)
    return question.edges(question.downward(depth))


@dataclass
class SnapshotQuestion:
    """One question about a snapshot."""

    walk: TraversalContext
    start: StartPoint
    basis: Basis

    @classmethod
    def of(
        cls,
        connection: Connection,
        of: str | Dataset,
        which: StartSelector,
        basis: Basis | str,
        as_of: datetime | None,
    ) -> SnapshotQuestion:
        """Resolve the subject. `of` is a dataset, or what a person typed."""
        if isinstance(of, str):
            named = find(connection, of)
            of = named.dataset
            which = which._replace(snapshot=named.snapshot) if which.snapshot is None else which
        walk = TraversalContext(connection, None if as_of is None else micros_of_argument(as_of, "as_of"))
        start = find_start(walk, of, which, Basis(basis))
        if not start.writes:
            about = TableSubject(of, walk.identities.group(of.key))
            if which.branch is not None:
                check_branch(connection, about, which.branch)
            if which.snapshot is not None:
                check_snapshot(connection, about, which.snapshot)
        return cls(walk, start, Basis(basis))

    def upward(self, depth: int | None, most_commits: int | None = None) -> Generator[list[LineageStep], None, None]:
        """Yield the steps of each level. `LongHistory` tells that there are more commits than wanted."""
        upward, start = UpstreamWalk(self.walk, self.basis, most_commits), self.start
        if self.basis is Basis.STATE and start.snapshot is not None:
            yield from upward.levels((), [AncestryRequest(start.snapshot)], depth)
        else:
            yield from upward.levels(start.writes, (), depth)
        self.add_unversioned(upward.unversioned)

    def downward(self, depth: int | None) -> Generator[list[LineageStep], None, None]:
        if self.start.snapshot is not None:
            yield from DownstreamWalk(self.walk, self.basis).levels([(self.start.snapshot, self.start.writes)], depth)

    def edges(self, levels: Iterable[list[LineageStep]]) -> Iterator[SnapshotEdge]:
        for steps in levels:
            yield from self.edges_of(steps, load_datasets(self.walk.connection, self.datasets_of(steps)))

    def answer(
        self, direction: str, levels: Generator[list[LineageStep], None, None], at_most: int
    ) -> LineageAnswer[SnapshotEdge]:
        steps, limits = self.collect(levels, at_most), self.walk.limits
        found = self.datasets_of(steps)
        names = load_datasets(self.walk.connection, {*found, *limits.datasets, self.start.dataset.key})
        add_known_limits(self.walk.connection, names, {step.write.run for step in steps}, limits)
        return LineageAnswer(
            tuple(sorted(self.edges_of(steps, names), key=_order)),
            complete_until(self.walk.connection),
            limits.as_limits(names),
            of=self.start.label(names),
            direction=direction,
            basis=self.basis,
            note=self.start.note,
        )

    def collect(self, levels: Generator[list[LineageStep], None, None], at_most: int) -> list[LineageStep]:
        """Collect steps up to a number. Reaching it is a limit of the answer."""
        with closing(levels):
            steps = list(islice(chain.from_iterable(levels), at_most + 1))
        if len(steps) > at_most:
            self.walk.limits.add(LimitReason.CUT, f"the first {at_most:,} edges", "ask for more, or stream them")
        return steps[:at_most]

    def edges_of(self, steps: Sequence[LineageStep], names: Mapping[bytes, Dataset]) -> Iterator[SnapshotEdge]:
        versions = _Versions(self.identity, names)
        for step in steps:
            write, read = step.write, step.read
            yield SnapshotEdge(
                depth=step.depth,
                target=versions.of(write),
                source=versions.of(read),
                mode=read.mode,
                since=read.since,
                since_version=read.since_version,
                kind=write.kind,
                job=format_job_key(write.job),
                parent_job=format_job_key(write.parent_job),
                run=None if write.run is None else UUID(bytes=write.run),
                barrier=write.barrier,
                at=moment_of(write.at),
                format=write.format,
                parent=write.parent,
                restarts=write.restarts,
            )

    def identity(self, row: SnapshotWrite | SnapshotRead) -> bytes | None:
        """Return the dataset's current identity."""
        return None if row.dataset is None else self.walk.identities.one(row.dataset, row.generation)

    def datasets_of(self, steps: Iterable[LineageStep]) -> set[bytes]:
        return {one for step in steps for row in (step.write, step.read) if (one := self.identity(row)) is not None}

    def add_unversioned(self, datasets: Collection[bytes]) -> None:
        """Add a limit for each of these datasets that is made from anything."""
        for dataset in known_targets(self.walk.connection, datasets):
            detail = "it has no versions, so it isn't followed further"
            self.walk.limits.add_snapshot(LimitReason.UNKNOWN_SNAPSHOT, dataset, None, detail)


class _Versions:
    """The versions of datasets in an answer: one object for all edges of a version that many read."""

    def __init__(
        self, identity: Callable[[SnapshotWrite | SnapshotRead], bytes | None], names: Mapping[bytes, Dataset]
    ) -> None:
        self._identity = identity
        self._names = names
        self._known: dict[tuple[Any, ...], DatasetVersion] = {}

    def of(self, row: SnapshotWrite | SnapshotRead) -> DatasetVersion:
        version = (row.snapshot, row.version, row.generation, row.branch, row.opaque)
        key = (row.dataset, row.name, *version)
        known = self._known.get(key)
        if known is None:
            identity = self._identity(row)
            dataset = None if identity is None else self._names[identity]
            name = ".".join(filter(None, row.name)) or (dataset.place if dataset else row.opaque or "?")
            known = self._known[key] = DatasetVersion(dataset, name, *version)
        return known


def _order(edge: SnapshotEdge) -> tuple[int, str, str]:
    """Sort edges, so that an answer is the same each time."""
    return (edge.depth, edge.target.label, edge.source.label)


def format_job_key(job: tuple[str | None, str | None]) -> str | None:
    namespace, name = job
    return name if name is None or namespace in {None, DEFAULT_JOB_NAMESPACE} else f"{namespace}/{name}"
