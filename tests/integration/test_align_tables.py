"""Versions of ten tables that belong together, in stores of different sizes: what is behind their common sources costs
nothing, and PostgreSQL says what SQLite says."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from typing import Any, Final, NamedTuple, TypeVar

import pytest
from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.pool import StaticPool

from headwater.lineage.sql import METADATA
from headwater.local import Service
from headwater.versions import align, check
from tests.benchmarks.align_tables import TABLES, everything
from tests.benchmarks.graph import Graph, Size, put_postgres, put_sqlite

pytestmark = [pytest.mark.database, pytest.mark.long]

T = TypeVar("T")
ROUNDS: Final = 60
_MOST_STATEMENTS: Final = 24
_NAMES: Final = [f"lake.mart.m{200 + mart}" for mart in range(TABLES)]


class Cost(NamedTuple):
    statements: int
    rows: int
    """Those that came from the database, the edges between tables among them."""


def test_what_is_behind_common_sources_costs_nothing(postgres: Service) -> None:
    """Ten times as many edges take as many statements and as many rows, and the answers are those of SQLite."""
    costs = {edges: _costs(postgres, edges) for edges in (2_000, 20_000)}
    for question, small in costs[2_000].items():
        large = costs[20_000][question]
        assert small.statements <= _MOST_STATEMENTS
        assert large.statements <= small.statements + 1  # what is behind them was looked at to the end in the small one
        assert large.rows <= small.rows * 1.1


def _costs(postgres: Service, edges: int) -> Mapping[str, Cost]:
    with (
        _filled(create_engine(postgres.address), edges) as engine,
        _filled(create_engine("sqlite://", poolclass=StaticPool), edges) as other,
    ):
        answer, aligning = _asked(engine, lambda connection: align(connection, _NAMES))
        assert answer == _asked(other, lambda connection: align(connection, _NAMES))[0]
        assert sorted({each.steps_behind for each in answer.rows}) == [0, 1, 2]
        newest = {name: each.table.snapshot for name, each in zip(_NAMES, answer.rows, strict=True)}
        checked, checking = _asked(engine, lambda connection: check(connection, newest))
        assert checked == _asked(other, lambda connection: check(connection, newest))[0]
        assert checked.is_consistent is True
        assert checked.cut == answer.cut
        return {"align": aligning, "check": checking}


@contextmanager
def _filled(engine: Engine, edges: int) -> Generator[Engine]:
    METADATA.create_all(engine)
    put = put_postgres if engine.dialect.name == "postgresql" else put_sqlite
    put(engine, everything(Graph(Size(tables=200, jobs=20, edges=edges)), ROUNDS, append=False))
    try:
        yield engine
    finally:
        METADATA.drop_all(engine)
        engine.dispose()


def _asked(engine: Engine, ask: Callable[[Connection], T]) -> tuple[T, Cost]:
    executed: list[int] = []

    def add(_: Any, cursor: Any, *__: Any) -> None:
        executed.append(max(cursor.rowcount, 0))

    event.listen(engine, "after_cursor_execute", add)
    try:
        with engine.connect() as connection:
            return ask(connection), Cost(len(executed), sum(executed))
    finally:
        event.remove(engine, "after_cursor_execute", add)
