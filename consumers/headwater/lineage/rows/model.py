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

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from operator import itemgetter
from typing import Any, Final, NamedTuple, TypeAlias, cast

from headwater.lineage.rows.values import RowColumn, Value, encode, key_hasher

RowTuple: TypeAlias = "tuple[Any, ...]"
"""The values of a row's columns, in the order in which every table has them."""
NEVER: Final = -(2**63)
"""The time of something that didn't happen, where the greatest time wins."""
NOT_YET: Final = 2**63 - 1
"""The time of something that didn't happen, where the least time wins."""


NO_STAMP: Final = b""
"""The stamp of a column group that no event has set. It is less than any other stamp."""


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

    @cached_property
    def blank(self) -> RowTuple:
        """Its stamp and columns in a row for which no event has set them."""
        return (NO_STAMP, *(None,) * len(self.columns))


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
    def layout(self) -> RowLayout:
        """Where the columns of a row stand."""
        maxima = 1 + len(self.key)
        times = maxima + len(self.maxima)
        end = times + len(self.time_columns)
        groups = []
        for group in self.groups:
            begin, end = end, end + 1 + len(group.columns)
            groups.append(GroupPlace(begin, end, group.precedence is Precedence.OLDEST))
        return RowLayout(maxima, times, times + len(self.time_columns), tuple(groups))

    @cached_property
    def pick_primary_key(self) -> Callable[[RowTuple], Any]:
        """A function that picks the primary key from a row's values."""
        places = {"id": 0, **{column.name: place for place, column in enumerate(self.key, 1)}}
        return itemgetter(*(places[name] for name in self.primary_key))

    @cached_property
    def hash_key(self) -> Callable[..., bytes]:
        """A function that returns a row's id. The values of the key are its arguments."""
        return key_hasher(self.name, self.key)


class GroupPlace(NamedTuple):
    """Where a column group stands in a row: its stamp first, then its columns."""

    begin: int
    end: int
    keeps_oldest: bool


class RowLayout(NamedTuple):
    """Where the columns of a row stand. The id comes first, then the key."""

    maxima: int
    times: int
    times_end: int
    groups: tuple[GroupPlace, ...]


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
    """A row of the store, or what one event says about it: the values of its columns, in the order in which every table
    has them."""

    kind: RowKind
    values: RowTuple

    @classmethod
    def of(
        cls,
        kind: RowKind,
        key: tuple[Value, ...],
        *,
        maxima: tuple[Value, ...] = (),
        times: RowTimes = NO_TIMES,
        groups: tuple[GroupValues | None, ...] = (),
        bits: int = 0,
    ) -> Row:
        """Return the row of these parts."""
        values = [kind.hash_key(*key), *key, *maxima, *times[: len(kind.time_columns)]]
        for declared, group in zip(kind.groups, groups or (None,) * len(kind.groups), strict=True):
            values += declared.blank if group is None else (group.stamp, *group.values)
        return cls(kind, (*values, bits) if kind.has_bits else tuple(values))

    @property
    def id(self) -> bytes:
        """The hash of kind and key: the row's primary key in every database."""
        return self.values[0]  # type: ignore[no-any-return]

    @property
    def key(self) -> tuple[Value, ...]:
        return self.values[1 : self.kind.layout.maxima]

    @property
    def maxima(self) -> tuple[Value, ...]:
        return self.values[self.kind.layout.maxima : self.kind.layout.times]

    @property
    def times(self) -> RowTimes:
        return RowTimes(*self.values[self.kind.layout.times : self.kind.layout.times_end])

    @property
    def groups(self) -> tuple[GroupValues | None, ...]:
        """The column groups; None for those that no event has set."""
        values = self.values
        return tuple(
            GroupValues(values[begin], values[begin + 1 : end]) if values[begin] else None
            for begin, end, _ in self.kind.layout.groups
        )

    @property
    def bits(self) -> int:
        return self.values[-1] if self.kind.has_bits else 0

    @property
    def as_dict(self) -> dict[str, Value]:
        """Return all values by column name. Columns of a group that no event has set are None."""
        kind = self.kind
        found = dict(zip((column.name for column in (*kind.key, *kind.maxima)), self.values[1:], strict=False))
        for group, (begin, end, _) in zip(kind.groups, kind.layout.groups, strict=True):
            found.update(zip((column.name for column in group.columns), self.values[begin + 1 : end], strict=True))
        return found

    @property
    def is_visible(self) -> bool:
        """Whether the row itself was not deleted. Deletions of a whole set (`tombstones`) are applied by queries."""
        return not self.kind.has_times or self.times.is_visible


def combine_rows(one: Row, other: Row) -> Row:
    """Combine two rows of the same kind and key."""
    if one.values == other.values:
        return one
    values = list(one.values)
    merge_values(one.kind, values, other.values)
    return Row(one.kind, tuple(values))


def merge_values(kind: RowKind, held: list[Any], new: Sequence[Any]) -> None:
    """Merge the values of a row into those of another one of the same kind and key."""
    layout = kind.layout
    for at in range(layout.maxima, layout.times):
        if held[at] != new[at]:
            held[at] = _greatest(held[at], new[at])
    for at in range(layout.times, layout.times_end):
        if new[at] < held[at] if at == layout.times else new[at] > held[at]:
            held[at] = new[at]
    for place in layout.groups:
        _merge_group(place, held, new)
    if kind.has_bits:
        held[-1] |= new[-1]


def _greatest(one: Any, other: Any) -> Value:
    """Return the greater of two values of a column. NULL is the least; texts compare by code points, as their UTF-8
    does in databases."""
    if one is None or other is None:
        return cast("Value", other if one is None else one)
    return cast("Value", max(one, other))


def _merge_group(place: GroupPlace, held: list[Any], new: Sequence[Any]) -> None:
    """Choose the values of a group. One stamp belongs to one event; if two rows disagree all the same, the greater
    values win."""
    begin, end, keeps_oldest = place
    mine, theirs = held[begin], new[begin]
    if mine == theirs:
        is_chosen = bool(mine) and encode(new[begin:end]) > encode(held[begin:end])
    else:
        is_chosen = bool(theirs) and (not mine or (theirs < mine) is keeps_oldest)
    if is_chosen:
        held[begin:end] = new[begin:end]
