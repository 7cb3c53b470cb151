"""Sets of origins as sets of small integers, so that joining and changing them is cheap, and the same set is shared.

A member is a column's number and a derivation in one: `column << 4 | derivation`.

What is known of the columns of a query.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Final, TypeAlias

from headwater.events.column_lineage import Derivation
from headwater.events.scalars import FieldPath
from headwater.listeners.capture.plan.tree import Plan, PlanError


@dataclass(frozen=True, slots=True)
class ColumnOrigin:
    """A column of a leaf of the plan, and how it comes into its target."""

    leaf: int
    """The node that reads it: a relation, an RDD, a stream. Rows made by the query itself have no origin."""
    path: tuple[str, ...]
    """The column, and the fields of structs that lead on from it."""
    derivation: Derivation
    """Of the whole way from the leaf."""
    expression: str | None = None
    """The expression as text, literals as `?`, bounded in length; none where the value is passed on as it is."""


@dataclass(frozen=True)
class QueryLineage:
    columns: Mapping[int, tuple[ColumnOrigin, ...]] = field(default_factory=dict)
    """By the id of an attribute that the query gives: where its values come from, and what chooses among them."""
    indirect: tuple[ColumnOrigin, ...] = ()
    """What decides about the rows: joins, filters, groups, sorting, windows."""
    leaves: tuple[int, ...] = ()
    """All that is read, subqueries included, in the plan's order."""
    unknown: tuple[str, ...] = ()
    """Operators that weren't understood: columns that come through them have no origins, and the caller tells a Gap."""
    fields: Mapping[tuple[str, ...], tuple[ColumnOrigin, ...]] = field(default_factory=dict)
    """By the path of a column of a target, where rows of a table are changed one by one."""


OriginsByTarget: TypeAlias = dict[FieldPath, tuple[ColumnOrigin, ...]]


def match_by_position(lineage: QueryLineage, plan: Plan, query: int, target_columns: Sequence[str]) -> OriginsByTarget:
    """AppendData, overwrites, CREATE TABLE AS SELECT and the writers of files: the n-th goes into the n-th."""
    output = plan.nodes[query].output
    if len(output) != len(target_columns):
        raise PlanError(f"{len(output)} columns are written into {len(target_columns)}")
    return {(name,): lineage.columns.get(attribute, ()) for name, attribute in zip(target_columns, output, strict=True)}


def match_by_name(
    lineage: QueryLineage, plan: Plan, query: int, target_columns: Sequence[str], *, case_sensitive: bool = False
) -> OriginsByTarget:
    """What a query gives beside the target's columns is left out, and so is what it doesn't give."""
    fold = str if case_sensitive else str.lower
    given = {fold(plan.attribute(attribute).name): attribute for attribute in reversed(plan.nodes[query].output)}
    names = [name for name in target_columns if fold(name) in given]
    return {(name,): lineage.columns.get(given[fold(name)], ()) for name in names}


Members: TypeAlias = frozenset[int]
NO_MEMBERS: Final[Members] = frozenset()
_BITS: Final = 4
_MASK: Final = 15


class DerivationRank(IntEnum):
    """Derivations in the order in which they win: of two on one way the later one holds, among the first three."""

    IDENTITY = 0
    TRANSFORMATION = 1
    AGGREGATION = 2
    JOIN = 3
    FILTER = 4
    GROUP_BY = 5
    SORT = 6
    WINDOW = 7
    CONDITIONAL = 8

    def of(self, inner: DerivationRank) -> DerivationRank:
        """What this makes of something that is derived already. What only decides never comes to carry values."""
        return self if self >= DerivationRank.JOIN else max(self, inner)


_WORDS: Final = tuple(Derivation[how.name] for how in DerivationRank)
_COMPOSED: Final = tuple(tuple(int(outer.of(inner)) for inner in DerivationRank) for outer in DerivationRank)


class OriginSets:
    """The columns of a plan's leaves that were met, and the sets of them that were made."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._numbers: dict[tuple[int, tuple[str, ...]], int] = {}
        self._columns: list[tuple[int, tuple[str, ...]]] = []
        self._lifted: dict[tuple[int, DerivationRank], tuple[Members, Members]] = {}
        self._positions: dict[int, dict[str, int]] = {}
        self._has_outer = False

    def column(self, leaf: int, path: tuple[str, ...]) -> int:
        """The member that stands for a column as it is. A negative leaf is attribute -1 - leaf of an outer query."""
        number = self._numbers.setdefault((leaf, path), len(self._columns))
        if number == len(self._columns):
            self._columns.append((leaf, path))
            self._has_outer |= leaf < 0
        return number << _BITS

    def place(self, member: int) -> tuple[int, tuple[str, ...]]:
        return self._columns[member >> _BITS]

    def lift(self, members: Members, how: DerivationRank) -> Members:
        """What comes of them one step further on; the same set for the same question."""
        if how is DerivationRank.IDENTITY or not members:
            return members
        known = self._lifted.get((id(members), how))
        if known is not None:
            return known[1]
        composed = _COMPOSED[how]
        made = frozenset([(member & ~_MASK) | composed[member & _MASK] for member in members])
        self._lifted[id(members), how] = (members, made)  # holds the set, so that its id stays its own
        return made

    def deeper(self, member: int, fields: tuple[str, ...]) -> int:
        """The field of a struct: of a column as it is that field, of anything else what it was made from."""
        if member & _MASK:
            return (member & ~_MASK) | _COMPOSED[DerivationRank.TRANSFORMATION][member & _MASK]
        leaf, path = self.place(member)
        return self.column(leaf, path + fields)

    def outer(self, members: Members) -> list[int]:
        """Those that stand for attributes of an outer query."""
        return [member for member in members if self._columns[member >> _BITS][0] < 0] if self._has_outer else []

    def column_origins(self, members: Iterable[int], text: str | None) -> list[ColumnOrigin]:
        found: list[ColumnOrigin] = []
        for member in members:
            leaf, path = self.place(member)
            how = member & _MASK
            found.append(ColumnOrigin(leaf, path, _WORDS[how], text if how else None))
        return found

    def in_order(self, members: Iterable[int]) -> list[int]:
        """By leaf, by the columns' order there, and by derivation."""
        return sorted(members, key=self._rank)

    def _rank(self, member: int) -> tuple[int, int, tuple[str, ...], int]:
        leaf, path = self.place(member)
        return leaf, self._position(leaf, path[0]) if leaf >= 0 else 0, path, member & _MASK

    def _position(self, leaf: int, column: str) -> int:
        known = self._positions.get(leaf)
        if known is None:
            names = (self._plan.attribute(attribute).name for attribute in self._plan.nodes[leaf].output)
            known = self._positions[leaf] = {name: n for n, name in reversed([*enumerate(names)])}
        return known[column]


def rank_of(member: int) -> DerivationRank:
    return DerivationRank(member & _MASK)
