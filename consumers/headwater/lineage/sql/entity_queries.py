"""Queries for the entities of `lineage.api`, with their predicates evaluated by the database."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from functools import singledispatchmethod
from typing import Any, Final, cast

from sqlalchemy import ColumnElement, Select, and_, false, not_, or_, select

from headwater.errors import ConfigurationError
from headwater.events.clock import micros_of
from headwater.lineage.predicates import And, Compare, Comparison, In, IsNull, Like, Not, Or, Predicate, pieces
from headwater.lineage.sql.pip5_rows import data_rows, table_rows

_OPERATORS: Final[dict[Compare, str]] = {comparison: comparison.value for comparison in Compare}


class PredicateCompiler:
    """Compiles predicates for one database. `columns` maps fields of entities to columns."""

    def __init__(self, dialect: str, columns: Mapping[str, ColumnElement[Any]]) -> None:
        self._dialect = dialect
        self._columns = columns

    @singledispatchmethod
    def of(self, predicate: Predicate) -> ColumnElement[bool]:
        """Compile a predicate."""
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
            _stored_value(predicate.value)
        )
        return compared

    @of.register
    def _in(self, predicate: In) -> ColumnElement[bool]:
        if not predicate.values:
            return false()
        return self._column(predicate.field).in_(sorted(map(_stored_value, predicate.values)))

    @of.register
    def _null(self, predicate: IsNull) -> ColumnElement[bool]:
        return self._column(predicate.field).is_(None)

    @of.register
    def _like(self, predicate: Like) -> ColumnElement[bool]:
        """SQLite's LIKE ignores case; its GLOB doesn't."""
        column = self._column(predicate.field)
        if self._dialect == "sqlite":
            compared: ColumnElement[bool] = column.op("GLOB", is_comparison=True)(_glob(predicate.pattern))
            return compared
        pattern = "".join(
            _escape(character) if literal else character for literal, character in pieces(predicate.pattern)
        )
        return column.like(pattern, escape="!")

    def _column(self, field: str) -> ColumnElement[Any]:
        if field not in self._columns:
            known = ", ".join(sorted(self._columns))
            raise ConfigurationError(f"there is no {field} here to ask for: there is {known}")
        return self._columns[field]


def _stored_value(value: str | int | datetime) -> Any:
    """Convert a time to microseconds, as the store has it."""
    return micros_of(value) if isinstance(value, datetime) else value


def _escape(character: str) -> str:
    return f"!{character}" if character in "!%_" else character


def _glob(pattern: str) -> str:
    wild = {"%": "*", "_": "?"}
    return "".join(
        (f"[{character}]" if character in "*?[" else character) if literal else wild[character]
        for literal, character in pieces(pattern)
    )


def select_table_entities(side: str, predicate: Predicate | None, dialect: str) -> Select[Any]:
    """Select job, database, table, create_time, catalog: one row for each job and table of a catalog."""
    return _filter(table_rows(side, by_catalog=True), predicate, dialect)


def select_data_entities(side: str, predicate: Predicate | None, dialect: str) -> Select[Any]:
    """Select the same with barrier_id and snapshot_id: one row for each job, barrier and table."""
    return _filter(data_rows(side, by_catalog=True), predicate, dialect)


def _filter(rows: Select[Any], predicate: Predicate | None, dialect: str) -> Select[Any]:
    found = rows.subquery()
    chosen = cast("Select[Any]", select(*found.c))
    return chosen if predicate is None else chosen.where(PredicateCompiler(dialect, dict(found.c)).of(predicate))
