"""What a kind of rows is made of, and how two rows of one key become one.

A change is a row too: what one event tells of it. So merging is one function, idempotent, commutative and associative,
each part of it being the greatest or least of something:

- `first` and `last` are the least and the greatest time of all facts, `deleted` the greatest of all tombstones; a row
  is visible if it was told after it was deleted;
- a group of columns is that of the newest stamp (or the oldest, where a kind says so), whole;
- bits are united;
- what is fixed is the same in all rows of one key.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from typing import Final, NamedTuple

from headwater.lineage.rows.values import Field, Value, encoded

NEVER: Final = -(2**63)
"""The time of what didn't happen, as the greatest of nothing."""
NOT_YET: Final = 2**63 - 1
"""The same as the least of nothing."""


class Keep(Enum):
    """Which of several that were told holds."""

    NEWEST = "NEWEST"
    OLDEST = "OLDEST"


@dataclass(frozen=True)
class Group:
    """Columns that are told together, and replaced together."""

    name: str
    columns: tuple[Field, ...]
    keep: Keep = Keep.NEWEST


@dataclass(frozen=True)
class Kind:
    """A table. Two kinds are one if they have one name."""

    name: str
    key: tuple[Field, ...]
    """What names a row; absent values are part of the name."""
    fixed: tuple[Field, ...] = ()
    """What is the same in all rows of one key, because an event or its content is the key."""
    groups: tuple[Group, ...] = ()
    mortal: bool = True
    """Whether rows have a first, a last and a deletion; others live by what refers to them."""
    bits: bool = False
    """Whether rows have bits that are united."""
    partition: str | None = None
    """The column of the key by which a database may keep rows apart: it grows with time."""
    lasting: bool = False
    """Whether a row is its content, told by many events and the same in each: who knows it to be in a store needn't
    tell it again."""

    def __hash__(self) -> int:
        return hash(self.name)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Kind) and other.name == self.name

    @cached_property
    def blank(self) -> tuple[Told | None, ...]:
        """No group told."""
        return (None,) * len(self.groups)


class Span(NamedTuple):
    first: int = NOT_YET
    last: int = NEVER
    deleted: int = NEVER

    @property
    def is_visible(self) -> bool:
        return self.last > self.deleted


NO_SPAN: Final = Span()


class Told(NamedTuple):
    """What was told of a group: stamps compare as bytes, in Python and in every database."""

    stamp: bytes
    values: tuple[Value, ...]


class Row(NamedTuple):
    """A row, or what an event tells of one."""

    kind: Kind
    id: bytes
    """The hash of its kind and key: what names it in every store."""
    key: tuple[Value, ...]
    fixed: tuple[Value, ...] = ()
    span: Span = NO_SPAN
    groups: tuple[Told | None, ...] = ()
    bits: int = 0

    @property
    def named(self) -> dict[str, Value]:
        """All values by the names of their columns; those of groups that nobody told are absent."""
        kind = self.kind
        values = dict(zip((field.name for field in (*kind.key, *kind.fixed)), (*self.key, *self.fixed), strict=True))
        for group, told in zip(kind.groups, self.groups or kind.blank, strict=True):
            given = (None,) * len(group.columns) if told is None else told.values
            values.update(zip((field.name for field in group.columns), given, strict=True))
        return values

    @property
    def is_visible(self) -> bool:
        """By itself; what was deleted as a set (`tombstones`) is decided when reading."""
        return not self.kind.mortal or self.span.is_visible


def merged(one: Row, other: Row) -> Row:
    """Both are of one kind and key."""
    a, b = one.span, other.span
    span = a if a == b else Span(min(a.first, b.first), max(a.last, b.last), max(a.deleted, b.deleted))
    groups = one.groups
    if groups != other.groups:
        pairs = zip(one.kind.groups, one.groups, other.groups, strict=True)
        groups = tuple(_held(group.keep, mine, theirs) for group, mine, theirs in pairs)
    fixed = one.fixed if one.fixed == other.fixed else max(one.fixed, other.fixed, key=encoded)
    return Row(one.kind, one.id, one.key, fixed, span, groups, one.bits | other.bits)


def _held(keep: Keep, mine: Told | None, theirs: Told | None) -> Told | None:
    """One stamp is one event, which tells one thing: an order of the values is for what isn't so all the same."""
    if mine is None or theirs is None:
        return mine or theirs
    if mine.stamp != theirs.stamp:
        is_newer = theirs.stamp > mine.stamp
        return theirs if is_newer is (keep is Keep.NEWEST) else mine
    return max(mine, theirs, key=lambda told: encoded(told.values))
