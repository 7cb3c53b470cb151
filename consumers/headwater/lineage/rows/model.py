"""What a kind of row consists of, and how two rows of one key combine.

What one event says about a row is a row too. So merging needs one function, `combine_rows`. It is idempotent,
commutative and associative, because each part of it takes a greatest or a least value:

- `first` and `last` are the least and the greatest time of all events, `deleted` is the greatest time of all deletions;
  a row is visible if its last event is later than its last deletion;
- a group of columns is taken as a whole from the event with the newest stamp (or the oldest, where the kind says so);
- bits are combined with OR;
- each column of `maxima` takes its greatest value, and any value rather than NULL.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from typing import Any, Final, NamedTuple, cast

from headwater.lineage.rows.values import RowColumn, Value, encode

NEVER: Final = -(2**63)
"""The time of something that didn't happen, where the greatest time wins."""
NOT_YET: Final = 2**63 - 1
"""The time of something that didn't happen, where the least time wins."""


class Precedence(Enum):
    """Which of several events decides the values of a column group."""

    NEWEST = "NEWEST"
    OLDEST = "OLDEST"


@dataclass(frozen=True)
class ColumnGroup:
    """Columns that one event sets together and that a later event replaces together."""

    name: str
    columns: tuple[RowColumn, ...]
    precedence: Precedence = Precedence.NEWEST


@dataclass(frozen=True)
class RowKind:
    """The declaration of a table. Two kinds are equal if their names are equal."""

    name: str
    key: tuple[RowColumn, ...]
    """The columns that identify a row. NULL is a value like any other here."""
    maxima: tuple[RowColumn, ...] = ()
    """Columns of which the greatest value counts. Nearly always they are the same in all rows of one key; then this
    costs no stamp."""
    groups: tuple[ColumnGroup, ...] = ()
    has_times: bool = True
    """Whether rows have `first` and `last`. Rows without them exist as long as something refers to them."""
    has_deletions: bool = False
    """Whether events delete single rows of the kind, so that rows have `deleted`, too."""
    has_bits: bool = False
    """Whether rows have a bit set, combined with OR."""
    partition: str | None = None
    """The first key column, if a database may partition the table by it; its values grow with time."""
    owner: str | None = None
    """The second key column, if rows are looked up together by it. It is in the primary key behind the partition
    column, so it needs no other index."""
    is_immutable: bool = False
    """Whether a row never changes. Many events repeat it, so a writer skips it once the store has it."""

    def __hash__(self) -> int:
        return hash(self.name)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RowKind) and other.name == self.name

    @cached_property
    def primary_key(self) -> tuple[str, ...]:
        """The columns of a table's primary key, which are also the order in which every transaction writes rows.

        A partitioned table needs the partition column in it. That comes first, because it grows with time: new entries
        go to the end of the index, and not all over it, as hashes would.
        """
        return tuple(name for name in (self.partition, self.owner, "id") if name is not None)

    @cached_property
    def time_columns(self) -> tuple[str, ...]:
        """The columns of a row's times, in the order of `RowTimes`."""
        return RowTimes._fields[: self.has_times * (2 + self.has_deletions)]

    @cached_property
    def empty_groups(self) -> tuple[GroupValues | None, ...]:
        """The groups of a row for which no event has set any column."""
        return (None,) * len(self.groups)


class RowTimes(NamedTuple):
    """When events confirmed a row first and last, and when it was deleted last. Microseconds since the epoch."""

    first: int = NOT_YET
    last: int = NEVER
    deleted: int = NEVER

    @property
    def is_visible(self) -> bool:
        return self.last > self.deleted


NO_TIMES: Final = RowTimes()


class GroupValues(NamedTuple):
    """The values of a column group, with the stamp of the event that set them. Stamps compare as bytes everywhere."""

    stamp: bytes
    values: tuple[Value, ...]


class Row(NamedTuple):
    """A row of the store, or what one event says about it."""

    kind: RowKind
    id: bytes
    """The hash of kind and key: the row's primary key in every database."""
    key: tuple[Value, ...]
    maxima: tuple[Value, ...] = ()
    times: RowTimes = NO_TIMES
    groups: tuple[GroupValues | None, ...] = ()
    bits: int = 0

    @property
    def as_dict(self) -> dict[str, Value]:
        """Return all values by column name. Columns of a group that no event has set are None."""
        kind = self.kind
        values = dict(zip((field.name for field in (*kind.key, *kind.maxima)), (*self.key, *self.maxima), strict=True))
        for group, group_values in zip(kind.groups, self.groups or kind.empty_groups, strict=True):
            column_values = (None,) * len(group.columns) if group_values is None else group_values.values
            values.update(zip((field.name for field in group.columns), column_values, strict=True))
        return values

    @property
    def is_visible(self) -> bool:
        """Whether the row itself was not deleted. Deletions of a whole set (`tombstones`) are applied by queries."""
        return not self.kind.has_times or self.times.is_visible


def combine_rows(one: Row, other: Row) -> Row:
    """Combine two rows of the same kind and key."""
    a, b = one.times, other.times
    span = a if a == b else RowTimes(min(a.first, b.first), max(a.last, b.last), max(a.deleted, b.deleted))
    groups = combine_groups(one.kind, one.groups, other.groups)
    return Row(one.kind, one.id, one.key, combine_maxima(one.maxima, other.maxima), span, groups, one.bits | other.bits)


def combine_groups(
    kind: RowKind, one: tuple[GroupValues | None, ...], other: tuple[GroupValues | None, ...]
) -> tuple[GroupValues | None, ...]:
    if one == other:
        return one
    pairs = zip(kind.groups, one, other, strict=True)
    return tuple([_choose_values(group.precedence, mine, theirs) for group, mine, theirs in pairs])


def combine_maxima(one: tuple[Value, ...], other: tuple[Value, ...]) -> tuple[Value, ...]:
    return one if one == other else tuple(map(_greatest, one, other))


def _greatest(one: Any, other: Any) -> Value:
    """Return the greater of two values of a column. NULL is the least; texts compare by code points, as their UTF-8
    does in databases."""
    if one is None or other is None:
        return cast("Value", other if one is None else one)
    return cast("Value", max(one, other))


def _choose_values(keep: Precedence, mine: GroupValues | None, theirs: GroupValues | None) -> GroupValues | None:
    """Choose the values of a group. One stamp belongs to one event; if two rows disagree all the same, the greater
    values win."""
    if mine is None or theirs is None:
        return mine or theirs
    if mine.stamp != theirs.stamp:
        is_newer = theirs.stamp > mine.stamp
        return theirs if is_newer is (keep is Precedence.NEWEST) else mine
    return max(mine, theirs, key=lambda group_values: encode(group_values.values))
