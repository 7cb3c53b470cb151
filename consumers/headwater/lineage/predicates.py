"""Predicates over the entities of `lineage.api`, evaluated in memory or in SQL with the same result.

    from headwater.lineage.predicates import where

    (where.database == "sales") & ~where.table.like("tmp\\_%") & (where.barrier_id >= 7)
    where.job.in_(["a", "b"]) | where.create_time.is_null()

As in SQL, a comparison with NULL is neither true nor false, and such entities don't match. Texts compare by code
points, and `like` is case-sensitive. In its pattern `%` matches any text, `_` any character, and a backslash escapes
the next character.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from functools import cached_property
from typing import Any, ClassVar, Final, Generic, TypeAlias, TypeVar

V = TypeVar("V", str, int, datetime)
Truth: TypeAlias = "bool | None"


class Compare(Enum):
    EQUAL = "="
    NOT_EQUAL = "<>"
    LESS = "<"
    AT_MOST = "<="
    GREATER = ">"
    AT_LEAST = ">="


class Predicate(ABC):
    """A condition on an entity. Build predicates with `where`."""

    def __and__(self, other: Predicate) -> Predicate:
        return And(self, other)

    def __or__(self, other: Predicate) -> Predicate:
        return Or(self, other)

    def __invert__(self) -> Predicate:
        return Not(self)

    def __bool__(self) -> bool:
        raise TypeError("a predicate by itself is neither true nor false: join them with &, | and ~, not with words")

    @abstractmethod
    def holds(self, entity: object) -> Truth:
        """Evaluate the predicate; None means unknown."""


@dataclass(frozen=True)
class And(Predicate):
    left: Predicate
    right: Predicate

    def holds(self, entity: object) -> Truth:
        one, other = self.left.holds(entity), self.right.holds(entity)
        if one is False or other is False:
            return False
        return None if one is None or other is None else True


@dataclass(frozen=True)
class Or(Predicate):
    left: Predicate
    right: Predicate

    def holds(self, entity: object) -> Truth:
        one, other = self.left.holds(entity), self.right.holds(entity)
        if one or other:
            return True
        return None if one is None or other is None else False


@dataclass(frozen=True)
class Not(Predicate):
    of: Predicate

    def holds(self, entity: object) -> Truth:
        held = self.of.holds(entity)
        return None if held is None else not held


@dataclass(frozen=True)
class Comparison(Predicate):
    field: str
    how: Compare
    value: str | int | datetime

    def holds(self, entity: object) -> Truth:
        value: Any = getattr(entity, self.field)
        if value is None:
            return None
        order = (value > self.value) - (value < self.value)
        return order in _ORDERS[self.how]


_ORDERS: Final[dict[Compare, Collection[int]]] = {
    Compare.EQUAL: (0,),
    Compare.NOT_EQUAL: (-1, 1),
    Compare.LESS: (-1,),
    Compare.AT_MOST: (-1, 0),
    Compare.GREATER: (1,),
    Compare.AT_LEAST: (0, 1),
}


@dataclass(frozen=True)
class In(Predicate):
    field: str
    values: frozenset[str | int | datetime]

    def holds(self, entity: object) -> Truth:
        value = getattr(entity, self.field)
        if not self.values:
            return False
        return None if value is None else value in self.values


@dataclass(frozen=True)
class Like(Predicate):
    field: str
    pattern: str

    @cached_property
    def _expression(self) -> re.Pattern[str]:
        parts: list[str] = []
        for literal, character in pieces(self.pattern):
            parts.append(re.escape(character) if literal else _WILD[character])
        return re.compile("".join(parts), re.DOTALL)

    def holds(self, entity: object) -> Truth:
        value = getattr(entity, self.field)
        return None if value is None else self._expression.fullmatch(value) is not None


_WILD: Final = {"%": ".*", "_": "."}


def pieces(pattern: str) -> list[tuple[bool, str]]:
    """The characters of a pattern, and whether each stands for itself."""
    found: list[tuple[bool, str]] = []
    characters = iter(pattern)
    for character in characters:
        if character == "\\":
            found.append((True, next(characters, "\\")))
        else:
            found.append((character not in _WILD, character))
    return found


@dataclass(frozen=True)
class IsNull(Predicate):
    field: str

    def holds(self, entity: object) -> Truth:
        return getattr(entity, self.field) is None


class _Field(Generic[V]):
    """A field of an entity."""

    __hash__: ClassVar[None]  # type: ignore[assignment]  # as of everything whose == is no comparison

    def __init__(self, name: str) -> None:
        self._name = name

    def __eq__(self, value: V) -> Predicate:  # type: ignore[override]
        return Comparison(self._name, Compare.EQUAL, value)

    def __ne__(self, value: V) -> Predicate:  # type: ignore[override]
        return Comparison(self._name, Compare.NOT_EQUAL, value)

    def __lt__(self, value: V) -> Predicate:
        return Comparison(self._name, Compare.LESS, value)

    def __le__(self, value: V) -> Predicate:
        return Comparison(self._name, Compare.AT_MOST, value)

    def __gt__(self, value: V) -> Predicate:
        return Comparison(self._name, Compare.GREATER, value)

    def __ge__(self, value: V) -> Predicate:
        return Comparison(self._name, Compare.AT_LEAST, value)

    def in_(self, values: Collection[V]) -> Predicate:
        return In(self._name, frozenset(values))

    def is_null(self) -> Predicate:
        return IsNull(self._name)


class _Text(_Field[str]):
    def like(self, pattern: str) -> Predicate:
        return Like(self._name, pattern)


class _Where:
    """The fields that there are."""

    job = _Text("job")
    catalog = _Text("catalog")
    database = _Text("database")
    table = _Text("table")
    create_time: _Field[datetime] = _Field("create_time")
    barrier_id: _Field[int] = _Field("barrier_id")
    snapshot_id: _Field[int] = _Field("snapshot_id")


where: Final = _Where()
