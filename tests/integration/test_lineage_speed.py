"""A store of 100,000 edges is walked by its indexes, in few statements. Bounds of time only catch what is many times
slower; `make bench BENCH=store_graph` measures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import Engine, NullPool, create_engine, event, text

from headwater.events.clock import moment_of
from headwater.lineage.questions.completeness import gaps
from headwater.lineage.questions.datasets import Dataset
from headwater.lineage.questions.gaps import GapCause
from headwater.lineage.questions.snapshots import upstream_snapshots
from headwater.lineage.questions.tables import upstream_tables
from headwater.lineage.sql import METADATA
from headwater.local import Service
from tests.kit.lineage.graph import BEGAN, Graph, key_of, load_postgres
from tests.kit.lineage.graph_questions import QUESTIONS, hour_of, measured, size_of

pytestmark = [pytest.mark.slow, pytest.mark.database]

BOUNDS = {"direct upstream": 150, "whole chain": 400, "tables, closure": 300, "gaps of an hour": 1_000}


OF_THE_STORE = {"gaps of an hour"}
"""Questions that are about no table: what they read grows with the store."""


@pytest.fixture(scope="module")
def filled(postgres: Service) -> Iterator[tuple[Engine, Graph]]:
    engine = create_engine(postgres.address)
    METADATA.create_all(engine)
    yield engine, load_postgres(engine, size_of(100_000))
    METADATA.drop_all(engine)
    engine.dispose()


@pytest.mark.long
def test_answers_come_in_time(filled: tuple[Engine, Graph]) -> None:
    found = measured(*filled, times=20, names=BOUNDS)
    # The shortest of them: a machine that does other things too gives one of twenty its time.
    shortest = {name: min(found[name].took) for name in BOUNDS}
    assert {name: took for name, took in shortest.items() if took > BOUNDS[name]} == {}


@pytest.mark.long
def test_gaps_among_very_many_events_are_all_found(filled: tuple[Engine, Graph]) -> None:
    engine, graph = filled
    with engine.connect() as connection:
        answer = gaps(connection, now=moment_of(BEGAN) + timedelta(days=400))
        hour = gaps(connection, **hour_of(Dataset(bytes([2] * 16))))
    assert graph.holes > 10
    assert graph.deaths > 10
    assert Counter(each.cause for each in answer) == {
        GapCause.MISSING_SEQUENCE: graph.holes,
        GapCause.SILENCE: graph.deaths,
    }
    assert all(each.count == 1 and each.family == "JOB" for each in answer if each.cause is GapCause.MISSING_SEQUENCE)
    assert 0 < len(hour) < len(answer) / 2
    assert {*hour} <= {*answer}


def test_no_question_reads_a_large_table_from_end_to_end(filled: tuple[Engine, Graph]) -> None:
    engine, graph = filled
    wanted = text(
        "SELECT relname FROM pg_stat_xact_user_tables WHERE seq_scan > 0 "
        "AND relname ~ '^(reads|writes|commits|edges|table_edges|received|producers)'"
    )
    # A connection of its own: what PostgreSQL counts as this transaction's are all scans that a connection made since
    # its counters were flushed last, seconds ago.
    with create_engine(engine.url, poolclass=NullPool).connect() as connection:
        # What a planner chooses is up to its statistics, which are a sample; whether it has a choice is up to us.
        connection.execute(text("SET enable_seqscan = off"))
        for question in (each for name, each in QUESTIONS.items() if name not in OF_THE_STORE):
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
