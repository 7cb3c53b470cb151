"""What a snapshot was made from, and what was made from it."""

from __future__ import annotations

from collections.abc import Collection, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime
from itertools import chain, islice
from typing import Final
from uuid import UUID

from sqlalchemy import Connection

from headwater.events.clock import micros_of, moment_of
from headwater.events.names import DEFAULT_JOB_NAMESPACE
from headwater.lineage.questions.answers import Why
from headwater.lineage.questions.completeness import complete_until
from headwater.lineage.questions.datasets import Dataset, described
from headwater.lineage.questions.lacks import lacks
from headwater.lineage.questions.names import find
from headwater.lineage.questions.starts import Start, Which, start_of
from headwater.lineage.questions.versions import Lineage, SnapshotEdge, Version
from headwater.lineage.questions.walking.ancestry import Reach
from headwater.lineage.questions.walking.downward import Downward
from headwater.lineage.questions.walking.facts import Made, Taken, known_targets
from headwater.lineage.questions.walking.upward import Upward
from headwater.lineage.questions.walking.walk import Basis, Step, Walk

AT_MOST: Final = 10_000
"""So many edges an answer has unless told otherwise; what streams has no end but its own."""


def upstream_snapshots(
    connection: Connection,
    of: str | Dataset,
    snapshot: int | None = None,
    *,
    basis: Basis | str = Basis.COMMIT,
    life: str | None = None,
    branch: str | None = None,
    depth: int | None = None,
    as_of: datetime | None = None,
    at_most: int = AT_MOST,
) -> Lineage[SnapshotEdge]:
    """What a snapshot was made from, and what that was made from, as far as `depth`. Without a snapshot the newest is
    meant, `as_of` a time if one is given."""
    question = Asked.of(connection, of, Which(snapshot, life, branch), basis, as_of)
    return question.answer("upstream", question.upward(depth), at_most)


def downstream_snapshots(
    connection: Connection,
    of: str | Dataset,
    snapshot: int | None = None,
    *,
    basis: Basis | str = Basis.COMMIT,
    life: str | None = None,
    branch: str | None = None,
    depth: int | None = None,
    as_of: datetime | None = None,
    at_most: int = AT_MOST,
) -> Lineage[SnapshotEdge]:
    """What was made from a snapshot: by commits that read it itself or changes that it is among, or (`state`) any state
    that it is still a part of."""
    question = Asked.of(connection, of, Which(snapshot, life, branch), basis, as_of)
    return question.answer("downstream", question.downward(depth), at_most)


def stream_upstream_snapshots(
    connection: Connection,
    of: str | Dataset,
    snapshot: int | None = None,
    *,
    basis: Basis | str = Basis.COMMIT,
    life: str | None = None,
    branch: str | None = None,
    depth: int | None = None,
    as_of: datetime | None = None,
) -> Iterator[SnapshotEdge]:
    """The same without an end, as it is found, level by level. It tells edges only: no limits."""
    question = Asked.of(connection, of, Which(snapshot, life, branch), basis, as_of)
    return question.edges(question.upward(depth))


def stream_downstream_snapshots(
    connection: Connection,
    of: str | Dataset,
    snapshot: int | None = None,
    *,
    basis: Basis | str = Basis.COMMIT,
    life: str | None = None,
    branch: str | None = None,
    depth: int | None = None,
    as_of: datetime | None = None,
) -> Iterator[SnapshotEdge]:
    question = Asked.of(connection, of, Which(snapshot, life, branch), basis, as_of)
    return question.edges(question.downward(depth))


@dataclass
class Asked:
    """One question on its way."""

    walk: Walk
    start: Start
    basis: Basis

    @classmethod
    def of(
        cls, connection: Connection, of: str | Dataset, which: Which, basis: Basis | str, as_of: datetime | None
    ) -> Asked:
        """`of` is a dataset, or what a person types for one."""
        if isinstance(of, str):
            named = find(connection, of)
            of = named.dataset
            which = which._replace(snapshot=named.snapshot) if which.snapshot is None else which
        walk = Walk(connection, None if as_of is None else micros_of(as_of))
        return cls(walk, start_of(walk, of, which, Basis(basis)), Basis(basis))

    def upward(self, depth: int | None) -> Generator[list[Step], None, None]:
        upward, start = Upward(self.walk, self.basis), self.start
        if self.basis is Basis.STATE and start.wanted is not None:
            yield from upward.levels((), [Reach(start.wanted)], depth)
        else:
            yield from upward.levels(start.made, (), depth)
        self._unversioned(upward.unversioned)

    def downward(self, depth: int | None) -> Generator[list[Step], None, None]:
        if self.start.wanted is not None:
            yield from Downward(self.walk, self.basis).levels([(self.start.wanted, self.start.made)], depth)

    def edges(self, levels: Iterable[list[Step]]) -> Iterator[SnapshotEdge]:
        for steps in levels:
            yield from self.edges_of(steps, described(self.walk.connection, self.datasets_of(steps)))

    def answer(self, direction: str, levels: Generator[list[Step], None, None], at_most: int) -> Lineage[SnapshotEdge]:
        steps, limits = self.gathered(levels, at_most), self.walk.limits
        found = self.datasets_of(steps)
        names = described(self.walk.connection, {*found, *limits.datasets, self.start.dataset.key})
        lacks(self.walk.connection, names, {each.made.run for each in steps}, limits)
        return Lineage(
            tuple(sorted(self.edges_of(steps, names), key=_order)),
            complete_until(self.walk.connection),
            limits.told(names),
            of=self.start.label(names),
            direction=direction,
            basis=self.basis,
            note=self.start.note,
        )

    def gathered(self, levels: Generator[list[Step], None, None], at_most: int) -> list[Step]:
        """Steps up to a number; whether it was reached is a limit."""
        with closing(levels):
            steps = list(islice(chain.from_iterable(levels), at_most + 1))
        if len(steps) > at_most:
            self.walk.limits.add(Why.CUT, f"the first {at_most:,} edges", "ask for more, or stream them")
        return steps[:at_most]

    def edges_of(self, steps: Sequence[Step], names: Mapping[bytes, Dataset]) -> Iterator[SnapshotEdge]:
        for step in steps:
            made, taken = step.made, step.taken
            yield SnapshotEdge(
                depth=step.depth,
                target=self._version(made, names),
                source=self._version(taken, names),
                mode=taken.mode,
                since=taken.since,
                since_version=taken.since_version,
                kind=made.kind,
                job=job_text(made.job),
                parent_job=job_text(made.parent_job),
                run=None if made.run is None else UUID(bytes=made.run),
                barrier=made.barrier,
                at=moment_of(made.at),
                format=made.format,
                parent=made.parent,
                restarts=made.restarts,
            )

    def identity(self, row: Made | Taken) -> bytes | None:
        """What the dataset is called now."""
        return None if row.dataset is None else self.walk.identities.one(row.dataset, row.life)

    def datasets_of(self, steps: Iterable[Step]) -> set[bytes]:
        return {one for step in steps for row in (step.made, step.taken) if (one := self.identity(row)) is not None}

    def _version(self, row: Made | Taken, names: Mapping[bytes, Dataset]) -> Version:
        identity = self.identity(row)
        dataset = None if identity is None else names[identity]
        name = ".".join(filter(None, row.name)) or (dataset.place if dataset else row.opaque or "?")
        return Version(dataset, name, row.snapshot, row.version, row.life, row.branch, row.opaque)

    def _unversioned(self, datasets: Collection[bytes]) -> None:
        for each in known_targets(self.walk.connection, datasets):
            detail = "it has no versions: what was in it when it was read isn't followed"
            self.walk.limits.add_snapshot(Why.UNKNOWN_SNAPSHOT, each, None, detail)


def _order(edge: SnapshotEdge) -> tuple[int, str, str]:
    """A database gives its rows in any order; an answer is the same each time."""
    return (edge.depth, edge.target.label, edge.source.label)


def job_text(job: tuple[str | None, str | None]) -> str | None:
    namespace, name = job
    return name if name is None or namespace in {None, DEFAULT_JOB_NAMESPACE} else f"{namespace}/{name}"
