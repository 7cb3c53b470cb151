"""Which commit made the snapshot that somebody read.

A number alone doesn't say: a table that was dropped and made again begins anew (another life), branches of Paimon count
for themselves, and after a rollback Paimon gives numbers again. So the life and the branch count, and of several the
newest that was there when it was read. A rollback or a fast-forward only points to a snapshot: it didn't make it.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable
from typing import Final, NamedTuple

from sqlalchemy import Connection, select

from headwater.lineage.law.visible import DATA, Subject
from headwater.lineage.questions.walking.facts import ICEBERG, Made, Taken, changed_by, made_by
from headwater.lineage.questions.walking.hiding import Hiding
from headwater.lineage.questions.walking.identities import FOREVER, Identities
from headwater.lineage.rows import tables as t
from headwater.lineage.sql.tables import table_of

_POINTERS: Final = frozenset({"ROLLBACK", "FAST_FORWARD"})
_POINTERS_IF_UNKNOWN: Final = frozenset({"RESTORE", "CHERRY_PICK"})
Pair = tuple[bytes, int]


class Wanted(NamedTuple):
    """A snapshot, as somebody refers to it."""

    dataset: bytes
    snapshot: int
    life: str | None = None
    branch: str | None = None
    at: int = FOREVER
    """When: what was made later isn't meant."""
    any_branch: bool = False


def points(made: Made) -> bool:
    """To a snapshot that was there before."""
    return made.kind in _POINTERS or (made.kind in _POINTERS_IF_UNKNOWN and made.replaced == "UNKNOWN")


def subject(row: Made | Taken, by: Made) -> Subject:
    """What tombstones see: a row of data lineage, and the commit that told it."""
    return Subject(DATA, row.last, by.job, by.parent_job, by.run, row.dataset, row.name[0], row.life, row.snapshot)


class Makers:
    """For one question: writes that were loaded are kept."""

    def __init__(self, connection: Connection, hiding: Hiding, identities: Identities) -> None:
        self.connection = connection
        self.hiding = hiding
        self.identities = identities
        self._known: dict[Pair, dict[bytes, Made]] = {}
        self._whole: set[Pair] = set()
        self._changes: set[Pair] = set()
        self._branches: dict[bytes, list[tuple[str, str | None, int | None]]] = {}

    def load(self, wanted: Iterable[Wanted]) -> None:
        """Everything that has the numbers of these; what tables' changes made only where no commit did."""
        asked = list(wanted)
        pairs = {pair for each in asked for pair in self._pairs(each)} - self._whole
        if not pairs:
            return
        self._whole |= pairs
        self.keep(made_by(self.connection, pairs))
        missing = {pair for each in asked if not self._by_commit(each) for pair in self._pairs(each)} - self._changes
        if missing:
            self._changes |= missing
            self.keep(changed_by(self.connection, missing))

    def _by_commit(self, wanted: Wanted) -> bool:
        """Whether a commit is known that made it, surely."""
        there = self._candidates(wanted)
        exact = [each for each in there if each.branch == wanted.branch and each.life == wanted.life]
        return bool(exact) and len(exact) == len(there)

    def keep(self, found: Iterable[Made]) -> list[Made]:
        """Remember what was loaded otherwise; what was deleted is marked."""
        kept = list(found)
        if not self.hiding.hides_nothing:
            hidden = self.hiding.hidden([subject(each, each) for each in kept])
            kept = [each._replace(hidden=True) if is_one else each for each, is_one in zip(kept, hidden, strict=True)]
        for each in kept:
            if each.dataset is not None and each.snapshot is not None:
                self._known.setdefault((each.dataset, each.snapshot), {})[each.id] = each
        return kept

    def near(self, wanted: Wanted) -> list[Made] | None:
        """What made it, if that is certain from what was loaded for other reasons."""
        if self._pairs(wanted) <= self._whole:
            return self.of(wanted)
        certain = [
            each for each in self._candidates(wanted) if each.branch == wanted.branch and each.life == wanted.life
        ]
        return _chosen(certain, wanted.at) or None

    def of(self, wanted: Wanted) -> list[Made]:
        """The writes of the commit that made it, to be called behind `load`. Nothing if nobody is known to have."""
        there = self._candidates(wanted)
        exact = [each for each in there if each.branch == wanted.branch and not points(each)]
        if exact and not wanted.any_branch:
            return _chosen(exact, wanted.at)
        if wanted.any_branch or any(each.format == ICEBERG for each in there):
            return _chosen(there, wanted.at)
        return _chosen([each for each in there if self._is_inherited(each, wanted)], wanted.at)

    def lives(self, wanted: Wanted) -> set[str]:
        """The lives of the table that have this number."""
        return {each.life for each in self._candidates(wanted._replace(life=None)) if each.life is not None}

    def _pairs(self, wanted: Wanted) -> set[Pair]:
        return {(dataset, wanted.snapshot) for dataset in self.identities.group(wanted.dataset)}

    def _candidates(self, wanted: Wanted) -> list[Made]:
        group = self.identities.group(wanted.dataset)
        there = [
            each
            for dataset, (_, until) in group.items()
            for each in self._known.get((dataset, wanted.snapshot), {}).values()
            if (each.at <= until or (each.life is not None and each.life == wanted.life))
            and (wanted.life is None or each.life is None or each.life == wanted.life)
        ]
        same = [each for each in there if each.life == wanted.life]
        return same if wanted.life is not None and same else there

    def _is_inherited(self, made: Made, wanted: Wanted) -> bool:
        """A branch has the snapshots it was made on; one that was merged gives its own to the other."""
        for branch, origin, snapshot in self._lines(wanted.dataset):
            if (
                branch == wanted.branch
                and origin == made.branch
                and snapshot is not None
                and wanted.snapshot <= snapshot
            ):
                return True
        return (made.branch, wanted.branch) in self._merges(wanted.dataset)

    def _lines(self, dataset: bytes) -> Collection[tuple[str, str | None, int | None]]:
        known = self._branches.get(dataset)
        if known is None:
            row = table_of(t.BRANCH).c
            found = self.connection.execute(
                select(row.branch, row.from_branch, row.from_snapshot).where(row.dataset == dataset)
            )
            known = self._branches[dataset] = [(each[0], each[1], each[2]) for each in found]
        return known

    def _merges(self, dataset: bytes) -> set[tuple[str | None, str | None]]:
        row = table_of(t.MODIFICATION).c
        wanted = select(row.detail).where(row.dataset == dataset, row.kind == "BranchMerged", row.effect == "APPLIED")
        told = [json.loads(each) for each in self.connection.scalars(wanted)]
        return {(each.get("branch"), each.get("into")) for each in told}


def _chosen(there: Collection[Made], at: int) -> list[Made]:
    """What a commit told stands before what a change of the table told of itself, that before what only points; of
    several commits the newest that was there."""
    if len(there) < 2:
        return [] if any(map(points, there)) else list(there)
    ranks = (
        [each for each in there if each.commit_id is not None and not points(each)],
        [each for each in there if each.commit_id is None],
    )
    for rank in ranks:
        if rank:
            before = [each for each in rank if each.at <= at]
            best = max(before, key=_order) if before else min(rank, key=_order)
            same = best.commit_id
            return [best] if same is None else [each for each in rank if each.commit_id == same]
    return []


def _order(made: Made) -> tuple[int, bytes]:
    return (made.at, made.id)
