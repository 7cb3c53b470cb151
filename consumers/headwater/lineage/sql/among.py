"""Rows of many keys at once: on PostgreSQL keys are arrays, so that one statement serves any number of them; elsewhere
they are lists, in portions that every database takes.
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
"""An expression of SQLite's may be 1,000 deep."""
_ARRAYS: Final[dict[type, Any]] = {bytes: ARRAY(LargeBinary()), int: ARRAY(BigInteger()), str: ARRAY(Text())}


def among(connection: Connection, statement: Any, column: ColumnElement[Any], keys: Iterable[Any]) -> Iterator[Any]:
    """The statement's rows whose column is one of these."""
    wanted = sorted(set(keys))
    for portion in _portions(wanted):
        yield from connection.execute(statement.where(is_among(connection.dialect.name, column, portion)))


def is_among(dialect: str, column: ColumnElement[Any], keys: Sequence[Any]) -> ColumnElement[bool]:
    """A condition for a portion of keys."""
    if dialect != "postgresql":
        return column.in_(keys)
    array = sql_cast(bindparam(None, list(keys)), _ARRAYS[type(keys[0]) if keys else bytes])
    is_one: ColumnElement[bool] = column == func.any(array)
    return is_one


class Pairs:
    """A statement's rows by two columns, a hash and a number, made once for all that ask it."""

    def __init__(self, statement: Any, key: ColumnElement[Any], number: ColumnElement[Any]) -> None:
        self._statement = statement
        self._columns = (key, number)
        self._by_dialect: dict[str, Any] = {}

    def among(self, connection: Connection, keys: Iterable[tuple[bytes, int]]) -> Iterator[Any]:
        """Those that are one of these pairs."""
        wanted, dialect = sorted(set(keys)), connection.dialect.name
        if dialect == "sqlite":
            yield from self._in_sqlite(connection, wanted)
            return
        for portion in _portions(wanted):
            if dialect == "postgresql":
                hashes, numbers = [each[0] for each in portion], [each[1] for each in portion]
                given: dict[str, Any] = {"hashes": hashes, "numbers": numbers}
            else:
                given = {"pairs": portion}
            yield from connection.execute(self._made(dialect), given)

    def by_key(self, connection: Connection, keys: Iterable[bytes]) -> Iterator[Any]:
        """Those whose hash is one of these."""
        name = f"{connection.dialect.name} keys"
        statement = self._by_dialect.get(name)
        if statement is None:
            keys_of: Any = bindparam("keys", expanding=True)
            statement = self._by_dialect[name] = self._statement.where(self._columns[0].in_(keys_of))
        for portion in _portions(sorted(set(keys))):
            yield from connection.execute(statement, {"keys": portion})

    def by_barrier(self, connection: Connection, keys: Iterable[tuple[bytes, int]]) -> Iterator[Any]:
        """Where the number is a barrier, which the hash says already: it helps only where rows are kept apart by it."""
        if connection.dialect.name == "postgresql":
            return self.among(connection, keys)
        return self.by_key(connection, (key for key, _ in keys))

    def _made(self, dialect: str) -> Any:
        made = self._by_dialect.get(dialect)
        if made is None:
            if dialect == "postgresql":
                asked = _unnested(bindparam("hashes"), bindparam("numbers"))
                is_one = and_(self._columns[0] == asked.c.a, self._columns[1] == asked.c.b)
            else:
                is_one = tuple_(*self._columns).in_(bindparam("pairs", expanding=True))
            made = self._by_dialect[dialect] = self._statement.where(is_one)
        return made

    def _in_sqlite(self, connection: Connection, wanted: Sequence[tuple[bytes, int]]) -> Iterator[Any]:
        """SQLite reads the whole table for `(a, b) IN (VALUES …)`, and looks up each `a = … OR …` in the index. The
        statement has its WHERE at its end."""
        known = self._by_dialect.get("sqlite")
        if known is None:
            dialect = connection.dialect
            compiled = self._statement.compile(dialect=dialect, compile_kwargs={"render_postcompile": True})
            given = [compiled.params[name] for name in compiled.positiontup or ()]
            names = [column.compile(dialect=dialect) for column in self._columns]
            known = self._by_dialect["sqlite"] = (str(compiled), given, f"({names[0]} = ? AND {names[1]} = ?)")
        text, given, one = known
        for start in range(0, len(wanted), _OR_AT_ONCE):
            portion = wanted[start : start + _OR_AT_ONCE]
            values = (*given, *(value for pair in portion for value in pair))
            yield from connection.exec_driver_sql(f"{text} AND ({' OR '.join([one] * len(portion))})", values)


def is_over(dialect: str, key: Any, end: Any, start: Any, wanted: Sequence[tuple[bytes, int]]) -> ColumnElement[bool]:
    """A range of numbers, from behind or with `start` to `end`, that one of these is in."""
    if dialect != "postgresql":
        return or_(*(and_(key == one, end >= number, start <= number) for one, number in wanted))
    hashes, numbers = [each[0] for each in wanted], [each[1] for each in wanted]
    asked = _unnested(bindparam(None, hashes), bindparam(None, numbers))
    return and_(key == asked.c.a, end >= asked.c.b, start <= asked.c.b)


def _unnested(hashes: Any, numbers: Any) -> Any:
    arrays = (sql_cast(hashes, _ARRAYS[bytes]), sql_cast(numbers, _ARRAYS[int]))
    wanted = func.unnest(*arrays).table_valued(sql_column("a", LargeBinary()), sql_column("b", BigInteger()))
    return wanted.render_derived()


def _portions(keys: Sequence[Any]) -> Iterator[Sequence[Any]]:
    for start in range(0, len(keys), _AT_ONCE):
        yield keys[start : start + _AT_ONCE]
