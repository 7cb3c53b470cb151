"""Datasets that are the same: a rename moved the data, or somebody unified them.

A table can be renamed and another one created in its place. So facts about the old place up to the rename belong to the
new place. An old place with later facts is a table of its own again, and isn't followed forward.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cache
from typing import Any, Final, NamedTuple, TypeAlias

from sqlalchemy import ColumnElement, Connection, and_, bindparam, or_, select

from headwater.lineage.mapping.administration import UNIFIED
from headwater.lineage.rows import tables as t
from headwater.lineage.sql.key_lookup import select_by_keys
from headwater.lineage.sql.tables import table_of

_FEW: Final = 500
FOREVER: Final = 2**63 - 1


class Era(NamedTuple):
    """A range of times, excluding its beginning."""

    since: int
    until: int


ALWAYS: Final = Era(-1, FOREVER)
IdentityMembers: TypeAlias = Mapping[bytes, Sequence[tuple[bytes, Era]]]
"""Identities of tables: whose each is, by the current identity of that, and when."""


def in_eras(row: Any, eras: Mapping[bytes, Era]) -> ColumnElement[bool]:
    """Return a condition: a row with a dataset, `first` and `last` is about a table with these identities."""
    always = [key for key, era in eras.items() if era == ALWAYS]
    others = [
        and_(row.dataset == key, row.first <= era.until, row.last > era.since)
        for key, era in eras.items()
        if era != ALWAYS
    ]
    return or_(row.dataset.in_(always), *others)


@cache
def _links() -> Any:
    row = table_of(t.DATASET_LINK).c
    return select(row.old, row.new, row.reason, row.last)


@cache
def _some_links() -> Any:
    return _links().limit(bindparam("number"))


class Identities:
    """Resolves identities for one question."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._links: dict[tuple[bytes, bytes], tuple[bool, int]] = {}
        self._asked: set[bytes] = set()
        self._groups: dict[bytes, dict[bytes, Era]] = {}
        self._generations: dict[bytes, set[str]] = {}
        self._used: dict[bytes, int] = {}
        few: Sequence[Any] = connection.execute(_some_links(), {"number": _FEW + 1}).all()
        self._all_known = len(few) <= _FEW
        if self._all_known:
            self._keep(few)

    @property
    def are_all_single(self) -> bool:
        """Whether no two datasets were ever linked."""
        return self._all_known and not self._links

    def load(self, datasets: Collection[bytes]) -> None:
        """Load all links of these datasets at once."""
        wanted = set(datasets)
        while not self._all_known and (wanted := wanted - self._asked):
            self._asked |= wanted
            row, chosen = table_of(t.DATASET_LINK).c, _links()
            found = [
                *select_by_keys(self._connection, chosen, row.old, wanted),
                *select_by_keys(self._connection, chosen, row.new, wanted),
            ]
            self._keep(found)
            wanted = {bytes(pair[side]) for pair in found for side in (0, 1)}

    def group(self, dataset: bytes) -> dict[bytes, Era]:
        """Return all identities of a dataset, each with the times for which it holds. Facts outside of them belong to
        another table."""
        if self.are_all_single:
            return {dataset: ALWAYS}
        known = self._groups.get(dataset)
        if known is None:
            self.load([dataset])
            known = self._groups[dataset] = self._spread(dataset)
        return known

    def members(self, tables: Collection[bytes]) -> IdentityMembers:
        """Return the identities of these tables."""
        self.load(tables)
        members: dict[bytes, list[tuple[bytes, Era]]] = {}
        for one in tables:
            for member, era in self.group(one).items():
                members.setdefault(member, []).append((one, era))
        return members

    def linked(self, datasets: Collection[bytes]) -> set[bytes]:
        """Return these and all that links connect with them, whichever way and whenever."""
        found, waiting = set(datasets), list(datasets)
        while waiting:
            self.load(waiting)
            if not self._links:
                break
            ends = {end for pair in self._links if not found.isdisjoint(pair) for end in pair}
            waiting = list(ends - found)
            found |= ends
        return found

    def one(self, dataset: bytes, generation: str | None = None, at: int | None = None) -> bytes:
        """Return a dataset's current identity: for a place that was left, where its data went. A renamed table is
        recognized by its generation, or by the time of a fact about it."""
        if self._all_known and not self._links:
            return dataset
        seen = {dataset}
        while True:
            self.load([dataset])
            following = sorted(
                (when, new)
                for (old, new), (is_one, when) in self._links.items()
                if old == dataset and self._went(old, new, generation, at, is_one=is_one, when=when)
            )
            if not following:
                break
            dataset = following[-1][1]
            if dataset in seen:
                return min(seen)
            seen.add(dataset)
        return dataset

    def _went(self, old: bytes, new: bytes, generation: str | None, at: int | None, *, is_one: bool, when: int) -> bool:
        if is_one or self._last_use(old) <= when:
            return True
        return (at is not None and at <= when) or (generation is not None and generation in self._generations_of(new))

    def _spread(self, dataset: bytes) -> dict[bytes, Era]:
        group = {dataset: ALWAYS}
        waiting = [dataset]
        while waiting:
            one = waiting.pop()
            since, until = group[one]
            for (old, new), (is_one, at) in self._links.items():
                if new == one and (is_one or at <= until):
                    other, era = old, (group[one] if is_one else Era(since, min(at, until)))
                elif old == one and (is_one or self._last_use(one) <= at):
                    other, era = new, group[one]
                else:
                    if old == one and one == dataset:
                        group[one] = Era(max(since, at), until)
                    continue
                if other not in group or group[other].until < era.until:
                    group[other] = era
                    waiting.append(other)
        return group

    def _generations_of(self, dataset: bytes) -> set[str]:
        if dataset not in self._generations:
            row = table_of(t.GENERATION).c
            self._generations[dataset] = set(
                self._connection.scalars(select(row.generation).where(row.dataset == dataset))
            )
        return self._generations[dataset]

    def _last_use(self, dataset: bytes) -> int:
        """Return when the dataset was last seen under a name that it still has."""
        if dataset not in self._used:
            row = table_of(t.ALIAS).c
            generations = self._connection.scalars(
                select(row.last).where(row.dataset == dataset, row.last > row.deleted)
            )
            self._used[dataset] = max(generations, default=0)
        return self._used[dataset]

    def _keep(self, found: Iterable[tuple[bytes, bytes, str, int]]) -> None:
        for old, new, reason, last in found:
            key = (bytes(old), bytes(new))
            is_one, at = self._links.get(key, (False, 0))
            self._links[key] = (is_one or reason == UNIFIED, max(at, last))
