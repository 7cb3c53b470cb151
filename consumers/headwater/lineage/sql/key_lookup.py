"""Selects rows by many keys at once.

On PostgreSQL the keys are one array parameter, so one prepared statement serves any number of keys. Elsewhere they are
IN lists, in portions that every database accepts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from sqlalchemy import (
    ARRAY,
    BigInteger,
    ColumnElement,
    Connection,
    LargeBinary,
    Text,
    and_,
    bindparam,
    func,
    or_,
    tuple_,
)
from sqlalchemy import cast as sql_cast
from sqlalchemy import column as sql_column

_AT_ONCE: Final = 5_000
_OR_AT_ONCE: Final = 250
"""SQLite limits the depth of an expression to 1,000."""
_ARRAYS: Final[dict[type, Any]] = {bytes: ARRAY(LargeBinary()), int: ARRAY(BigInteger()), str: ARRAY(Text())}


def select_by_keys(
    connection: Connection, statement: Any, column: ColumnElement[Any], keys: Iterable[Any]
) -> Iterator[Any]:
    """Yield the statement's rows whose column has one of these keys."""
    keys_sorted = sorted(set(keys))
    for portion in _portions(keys_sorted):
        yield from connection.execute(statement.where(has_any_key(connection.dialect.name, column, portion)))


def has_any_key(dialect: str, column: ColumnElement[Any], keys: Sequence[Any]) -> ColumnElement[bool]:
    """Return a condition: the column has one of these keys."""
    if dialect != "postgresql":
        return column.in_(keys)
    array = sql_cast(bindparam(None, list(keys)), _ARRAYS[type(keys[0]) if keys else bytes])
    is_one: ColumnElement[bool] = column == func.any(array)
    return is_one


class PairLookup:
    """Selects rows of a statement by two columns, a hash and a number. The compiled statement is reused."""

    def __init__(self, statement: Any, key: ColumnElement[Any], number: ColumnElement[Any]) -> None:
        self._statement = statement
        self._columns = (key, number)
        self._by_dialect: dict[str, Any] = {}

    def among(self, connection: Connection, keys: Iterable[tuple[bytes, int]]) -> Iterator[Any]:
        """Yield the rows that have one of these pairs."""
        keys_sorted, dialect = sorted(set(keys)), connection.dialect.name
        if dialect == "sqlite":
            yield from self._in_sqlite(connection, keys_sorted)
            return
        for portion in _portions(keys_sorted):
            if dialect == "postgresql":
                hashes, numbers = [each[0] for each in portion], [each[1] for each in portion]
                parameters: dict[str, Any] = {"hashes": hashes, "numbers": numbers}
            else:
                parameters = {"pairs": portion}
            yield from connection.execute(self._statement_for(dialect), parameters)

    def by_key(self, connection: Connection, keys: Iterable[bytes]) -> Iterator[Any]:
        """Yield the rows that have one of these hashes."""
        name = f"{connection.dialect.name} keys"
        statement = self._by_dialect.get(name)
        if statement is None:
            keys_of: Any = bindparam("keys", expanding=True)
            statement = self._by_dialect[name] = self._statement.where(self._columns[0].in_(keys_of))
        for portion in _portions(sorted(set(keys))):
            yield from connection.execute(statement, {"keys": portion})

    def by_barrier(self, connection: Connection, keys: Iterable[tuple[bytes, int]]) -> Iterator[Any]:
        """Select by hash and barrier. The hash implies the barrier, so the barrier is only compared where tables are
        partitioned by it."""
        if connection.dialect.name == "postgresql":
            return self.among(connection, keys)
        return self.by_key(connection, (key for key, _ in keys))

    def _statement_for(self, dialect: str) -> Any:
        prepared = self._by_dialect.get(dialect)
        if prepared is None:
            if dialect == "postgresql":
                requested = _unnested(bindparam("hashes"), bindparam("numbers"))
                is_one = and_(self._columns[0] == requested.c.a, self._columns[1] == requested.c.b)
            else:
                is_one = tuple_(*self._columns).in_(bindparam("pairs", expanding=True))
            prepared = self._by_dialect[dialect] = self._statement.where(is_one)
        return prepared

    def _in_sqlite(self, connection: Connection, keys_sorted: Sequence[tuple[bytes, int]]) -> Iterator[Any]:
        """SQLite scans the table for `(a, b) IN (VALUES …)`, but uses the index for `a = … AND b = … OR …`. The
        statement must end with its WHERE clause."""
        known = self._by_dialect.get("sqlite")
        if known is None:
            dialect = connection.dialect
            compiled = self._statement.compile(dialect=dialect, compile_kwargs={"render_postcompile": True})
            parameters = [compiled.params[name] for name in compiled.positiontup or ()]
            names = [column.compile(dialect=dialect) for column in self._columns]
            known = self._by_dialect["sqlite"] = (str(compiled), parameters, f"({names[0]} = ? AND {names[1]} = ?)")
        text, parameters, one = known
        for start in range(0, len(keys_sorted), _OR_AT_ONCE):
            portion = keys_sorted[start : start + _OR_AT_ONCE]
            values = (*parameters, *(value for pair in portion for value in pair))
            yield from connection.exec_driver_sql(f"{text} AND ({' OR '.join([one] * len(portion))})", values)


def range_contains_any(
    dialect: str, key: Any, end: Any, start: Any, keys_sorted: Sequence[tuple[bytes, int]]
) -> ColumnElement[bool]:
    """Return a condition: the range from `start` to `end` contains one of these numbers."""
    if dialect != "postgresql":
        return or_(*(and_(key == one, end >= number, start <= number) for one, number in keys_sorted))
    hashes, numbers = [each[0] for each in keys_sorted], [each[1] for each in keys_sorted]
    requested = _unnested(bindparam(None, hashes), bindparam(None, numbers))
    return and_(key == requested.c.a, end >= requested.c.b, start <= requested.c.b)


def _unnested(hashes: Any, numbers: Any) -> Any:
    arrays = (sql_cast(hashes, _ARRAYS[bytes]), sql_cast(numbers, _ARRAYS[int]))
    keys_sorted = func.unnest(*arrays).table_valued(sql_column("a", LargeBinary()), sql_column("b", BigInteger()))
    return keys_sorted.render_derived()


def _portions(keys: Sequence[Any]) -> Iterator[Sequence[Any]]:
    for start in range(0, len(keys), _AT_ONCE):
        yield keys[start : start + _AT_ONCE]
