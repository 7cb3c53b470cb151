"""Predicates in SQL, so that the database does the looking."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from functools import singledispatchmethod
from typing import Any, Final

from sqlalchemy import ColumnElement, and_, false, not_, or_

from headwater.errors import ConfigurationError
from headwater.events.clock import micros_of
from headwater.lineage.predicates import And, Compare, Comparison, In, IsNull, Like, Not, Or, Predicate, pieces

_OPERATORS: Final[dict[Compare, str]] = {each: each.value for each in Compare}


class Conditions:
    """For one database, whose columns stand for the fields of entities."""

    def __init__(self, dialect: str, columns: Mapping[str, ColumnElement[Any]]) -> None:
        self._dialect = dialect
        self._columns = columns

    @singledispatchmethod
    def of(self, predicate: Predicate) -> ColumnElement[bool]:
        raise TypeError(f"{type(predicate).__name__} is no predicate: make them with `where`")

    @of.register
    def _and(self, predicate: And) -> ColumnElement[bool]:
        return and_(self.of(predicate.left), self.of(predicate.right))

    @of.register
    def _or(self, predicate: Or) -> ColumnElement[bool]:
        return or_(self.of(predicate.left), self.of(predicate.right))

    @of.register
    def _not(self, predicate: Not) -> ColumnElement[bool]:
        return not_(self.of(predicate.of))

    @of.register
    def _comparison(self, predicate: Comparison) -> ColumnElement[bool]:
        column = self._column(predicate.field)
        compared: ColumnElement[bool] = column.op(_OPERATORS[predicate.how], is_comparison=True)(
            _plain(predicate.value)
        )
        return compared

    @of.register
    def _in(self, predicate: In) -> ColumnElement[bool]:
        if not predicate.values:
            return false()
        return self._column(predicate.field).in_(sorted(map(_plain, predicate.values)))

    @of.register
    def _null(self, predicate: IsNull) -> ColumnElement[bool]:
        return self._column(predicate.field).is_(None)

    @of.register
    def _like(self, predicate: Like) -> ColumnElement[bool]:
        """SQLite's LIKE minds no case, its GLOB does."""
        column = self._column(predicate.field)
        if self._dialect == "sqlite":
            compared: ColumnElement[bool] = column.op("GLOB", is_comparison=True)(_glob(predicate.pattern))
            return compared
        pattern = "".join(
            _escaped(character) if literal else character for literal, character in pieces(predicate.pattern)
        )
        return column.like(pattern, escape="!")

    def _column(self, field: str) -> ColumnElement[Any]:
        if field not in self._columns:
            known = ", ".join(sorted(self._columns))
            raise ConfigurationError(f"there is no {field} here to ask for: there is {known}")
        return self._columns[field]


def _plain(value: str | int | datetime) -> Any:
    """Moments are microseconds in the store."""
    return micros_of(value) if isinstance(value, datetime) else value


def _escaped(character: str) -> str:
    return f"!{character}" if character in "!%_" else character


def _glob(pattern: str) -> str:
    wild = {"%": "*", "_": "?"}
    return "".join(
        (f"[{character}]" if character in "*?[" else character) if literal else wild[character]
        for literal, character in pieces(pattern)
    )
