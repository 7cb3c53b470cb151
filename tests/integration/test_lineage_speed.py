"""A store of 100,000 edges is walked by its indexes, in few statements. Bounds of time only catch what is many times
slower; `make bench BENCH=store_graph` measures."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from typing import Any

import pytest
from sqlalchemy import Engine, event, text

from headwater.lineage.questions.datasets import Dataset
from headwater.lineage.questions.snapshots import upstream_snapshots
from headwater.lineage.questions.tables import upstream_tables
from headwater.lineage.sql import METADATA
from headwater.local import Service
from tests.benchmarks.graph import Graph, key_of, load_postgres
from tests.benchmarks.store_graph import QUESTIONS, measured, size_of

pytestmark = [pytest.mark.slow, pytest.mark.database]

BOUNDS = {"direct upstream": 150, "whole chain": 400, "tables, closure": 300}


@pytest.fixture(scope="module")
def filled(postgres: Service) -> Iterator[tuple[Engine, Graph]]:
    from sqlalchemy import create_engine

    engine = create_engine(postgres.address)
    METADATA.create_all(engine)
    yield engine, load_postgres(engine, size_of(100_000))
    METADATA.drop_all(engine)
    engine.dispose()


def test_answers_come_in_time(filled: tuple[Engine, Graph]) -> None:
    found = measured(*filled, times=20, names=BOUNDS)
    medians = {name: statistics.median(found[name].took) for name in BOUNDS}
    assert {name: took for name, took in medians.items() if took > BOUNDS[name]} == {}


def test_no_question_reads_a_large_table_from_end_to_end(filled: tuple[Engine, Graph]) -> None:
    engine, graph = filled
    wanted = text(
        "SELECT relname FROM pg_stat_xact_user_tables WHERE seq_scan > 0 "
        "AND relname ~ '^(reads|writes|commits|edges|table_edges|received|producers)'"
    )
    with engine.connect() as connection:
        for question in QUESTIONS.values():
            for table in (graph.size.tables - 1, graph.size.tables // 2, 0):
                question(connection, Dataset(key_of("dataset", table)), graph.snapshots[table])
        assert connection.scalars(wanted).all() == []


def test_statements_grow_with_levels_and_not_with_edges(filled: tuple[Engine, Graph]) -> None:
    engine, graph = filled
    asked: list[str] = []

    @event.listens_for(engine, "before_cursor_execute")
    def keep(_: Any, __: Any, statement: str, *___: Any) -> None:
        asked.append(statement)

    dataset, number = Dataset(key_of("dataset", graph.size.tables - 1)), graph.snapshots[-1]
    with engine.connect() as connection:
        direct = len(upstream_snapshots(connection, dataset, number, depth=1)), len(asked)
        asked.clear()
        chain = upstream_snapshots(connection, dataset, number)
        levels = max(each.depth for each in chain)
        assert len(chain) > 10 * direct[0]
        assert len(asked) <= direct[1] + 4 * levels
        asked.clear()
        tables = upstream_tables(connection, dataset)
        assert len(asked) <= 12 + 4 * max(each.depth for each in tables)
    event.remove(engine, "before_cursor_execute", keep)
