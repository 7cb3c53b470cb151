"""Versions of ten tables that belong together, in stores of different sizes: what is behind their common sources costs
nothing, and PostgreSQL says what SQLite says. All edges behind tables, which PostgreSQL finds in one statement."""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from random import Random
from typing import Any, Final, NamedTuple, TypeVar

import pytest
from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.pool import StaticPool

from headwater.lineage.questions.traversal.table_edges import load_behind
from headwater.lineage.rows import RowKind
from headwater.lineage.rows import tables as t
from headwater.lineage.sql import METADATA
from headwater.local import Service
from headwater.versions import align, check
from headwater.versions.finder import find_versions
from tests.kit.lineage.aligned_tables import TABLES, everything
from tests.kit.lineage.graph import BEGAN, Graph, Size, Values, key_of, put_postgres, put_sqlite

pytestmark = [pytest.mark.database, pytest.mark.long]

T = TypeVar("T")
ROUNDS: Final = 60
_MOST_STATEMENTS: Final = 19
_MOST_OF_FINDER: Final = 12
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


@pytest.mark.parametrize("seed", range(4))
def test_all_edges_behind_tables_are_found_in_one_statement(postgres: Service, seed: int) -> None:
    """It finds edges that are lost where ways meet or lead back, and a limit that cuts without saying so."""
    chance = Random(seed)
    names = [key_of("dataset", number) for number in range(40)]
    pairs = {(chance.choice(names), chance.choice(names)) for _ in range(60)}
    with _store(create_engine(postgres.address), _edges(pairs)) as engine, engine.connect() as connection:
        for is_upward in (True, False):
            all_edges = pairs if is_upward else {(source, target) for target, source in pairs}
            starts = set(chance.sample([here for here, _ in sorted(all_edges)], 3))
            behind = {each for each in all_edges if each[0] in _reached(starts, all_edges)}
            load = partial(load_behind, connection, starts, is_upward=is_upward)
            assert set(load(most=1_000)) == behind
            assert len(load(most=len(behind))) == len(behind)
            assert len(load(most=len(behind) - 1)) == len(behind)
            assert len(load(most=1)) == 2


def _edges(pairs: Iterable[tuple[bytes, bytes]]) -> Iterator[tuple[RowKind, Values]]:
    for number, (target, source) in enumerate(sorted(pairs)):
        edge: Values = {"target": target, "source": source, "job_namespace": "default", "first": BEGAN, "last": BEGAN}
        yield t.TABLE_EDGE, {"id": key_of("edge", number), "certainty": "EXACT", **edge}


def _reached(starts: Collection[bytes], edges: Collection[tuple[bytes, bytes]]) -> set[bytes]:
    found = set(starts)
    while new := {there for here, there in edges if here in found} - found:
        found |= new
    return found


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
        pinned, finding = _asked(engine, lambda connection: find_versions(connection, _NAMES[:2]))
        assert pinned == _asked(other, lambda connection: find_versions(connection, _NAMES[:2]))[0]
        assert [each.steps_behind for each in pinned.pins] == [1, 0]
        assert finding.statements <= _MOST_OF_FINDER
        return {"align": aligning, "check": checking, "find": finding}


def _filled(engine: Engine, edges: int) -> AbstractContextManager[Engine]:
    return _store(engine, everything(Graph(Size(tables=200, jobs=20, edges=edges)), ROUNDS, append=False))


@contextmanager
def _store(engine: Engine, rows: Iterator[tuple[RowKind, Values]]) -> Generator[Engine]:
    METADATA.create_all(engine)
    put = put_postgres if engine.dialect.name == "postgresql" else put_sqlite
    put(engine, rows)
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
