"""How many statements an answer takes: it may grow with the depth of what is answered, never with its edges.

No other test notices an answer that is right and asks the database once for each edge.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterator
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import Engine, create_engine, event
from sqlalchemy.pool import StaticPool

from headwater.events.clock import moment_of
from headwater.lineage.questions.lateness import lateness
from headwater.lineage.questions.paths import path_between
from headwater.lineage.questions.snapshots import downstream_snapshots
from headwater.lineage.questions.states import upstream_state
from headwater.lineage.questions.tables import TableClosure, downstream_tables, upstream_tables
from headwater.lineage.rows import RowKind
from headwater.lineage.rows import tables as t
from headwater.lineage.sql import METADATA
from tests.kit.lineage.graph import BEGAN, Values, put_sqlite
from tests.kit.lineage.shapes import FEED, HUB, LATE, LONG, PING, READERS, SOURCES, Statements, rows, table

pytestmark = pytest.mark.slow
LATER = moment_of(BEGAN) + timedelta(days=30)


@pytest.fixture(scope="module")
def stores() -> Iterator[list[Engine]]:
    """A small store, and one with ten times as many edges."""
    yield from _filled(rows(0.002), rows(0.02))


@pytest.fixture(scope="module")
def histories() -> Iterator[list[Engine]]:
    """A table of 70 snapshots, and one of 700."""
    yield from _filled(rows(0.0007), rows(0.007))


@pytest.fixture(scope="module")
def streams() -> Iterator[list[Engine]]:
    """The same of Iceberg, each commit of which read the changes since the one before."""
    yield from _filled(_of_changes(0.0007), _of_changes(0.007))


def _filled(*shapes: Iterator[tuple[RowKind, Values]]) -> Iterator[list[Engine]]:
    engines = [create_engine("sqlite://", poolclass=StaticPool) for _ in shapes]
    for engine, content in zip(engines, shapes, strict=True):
        METADATA.create_all(engine)
        put_sqlite(engine, content)
    yield engines
    for engine in engines:
        engine.dispose()


def _of_changes(share: float) -> Iterator[tuple[RowKind, Values]]:
    for kind, values in rows(share):
        if kind is t.PLACE:
            values |= {"format": "ICEBERG", "mode": values.get("mode") and "CHANGES"}
        elif kind is t.READ:
            values |= {"since_snapshot": values["snapshot"] - 1}
        yield kind, values


def work(stores: list[Engine], ask: Callable[[Any], Any]) -> list[int]:
    """How many hundred steps SQLite took for it, in each store."""
    found = []
    for engine in stores:
        with engine.connect() as connection:
            steps: list[None] = []
            driver: Any = connection.connection.driver_connection
            driver.set_progress_handler(lambda steps=steps: steps.append(None), 100)
            try:
                ask(connection)
            finally:
                driver.set_progress_handler(None, 0)
            found.append(len(steps))
    return found


def calls(stores: list[Engine], ask: Callable[[Any], Any]) -> list[int]:
    """How many functions were called for it, in each store."""
    found: list[int] = []

    def count(_: Any, what: str, __: Any) -> None:
        found[-1] += what in {"call", "c_call"}

    for engine in stores:
        found.append(0)
        with engine.connect() as connection:
            sys.setprofile(count)
            try:
                ask(connection)
            finally:
                sys.setprofile(None)
    return found


def counts(stores: list[Engine], ask: Callable[[Any], Any]) -> list[tuple[int, int]]:
    """The edges of the answer and the statements that it took, for each store."""
    found = []
    for engine in stores:
        statements = Statements(engine)
        try:
            with engine.connect() as connection:
                answer = ask(connection)
                found.append((len(answer), statements.count))
        finally:
            event.remove(engine, "before_cursor_execute", statements.add)
    return found


@pytest.mark.parametrize(
    "ask",
    [
        lambda c: downstream_snapshots(c, table(HUB), 1, at_most=10),
        lambda c: downstream_tables(c, table(HUB), at_most=10),
    ],
    ids=["snapshots", "tables"],
)
def test_the_first_of_many(stores: list[Engine], ask: Callable[[Any], Any]) -> None:
    """Of 20 readers and of 200: a portion is 64."""
    (few, small), (same, large) = counts(stores, ask)
    assert few == same == 10
    assert large <= small
    least, most = work(stores, ask)
    assert most < 4 * least


def test_all_readers_of_a_table(stores: list[Engine]) -> None:
    """Keys go to the database some hundred at once: 180 edges more take two statements for each portion of them."""
    (few, small), (many, large) = counts(stores, lambda c: downstream_snapshots(c, table(HUB), 1, at_most=READERS))
    assert (few, many) == (READERS // 500, READERS // 50)
    assert large - small < 8


def test_what_a_long_history_feeds(histories: list[Engine]) -> None:
    """Every later state contains the first commit: ten times as many take ten times as long."""
    least, most = calls(histories, lambda c: downstream_snapshots(c, table(FEED), 1, basis="state", at_most=10**6))
    assert most < 15 * least


def test_a_long_state(stores: list[Engine]) -> None:
    """Of 200 commits, which are walked, and of 2,000, which the database adds up."""
    (_, small), (edges, large) = counts(stores, lambda c: upstream_state(c, table(LONG)))
    assert edges == 1
    assert large < small + 30
    least, most = calls(stores, lambda c: upstream_state(c, table(LONG)))
    assert most < 5 * least


def test_what_reads_the_changes_of_a_long_history(streams: list[Engine]) -> None:
    """Only by the parents of Iceberg's snapshots is it known which changes contain the first."""
    with streams[1].connect() as connection:
        assert len(downstream_snapshots(connection, table(FEED), 1)) == 1
    least, most = calls(streams, lambda c: downstream_snapshots(c, table(FEED), 1, at_most=10**6))
    assert most < 15 * least


def test_tables_that_feed_each_other(stores: list[Engine]) -> None:
    (few, small), (same, large) = counts(stores, lambda c: upstream_tables(c, table(PING)))
    assert few == same == 2
    assert small == large


def test_a_late_table_of_many_sources(stores: list[Engine], monkeypatch: pytest.MonkeyPatch) -> None:
    """Their last commits are asked for together, and are those that each has by itself."""
    (_, small), (hops, large) = counts(stores, lambda c: lateness(c, table(LATE), now=LATER))
    assert hops == SOURCES + 1
    assert small == large
    assert large < SOURCES // 32 + 40
    with stores[1].connect() as connection:
        together = lateness(connection, table(LATE), now=LATER)
        monkeypatch.setattr("headwater.lineage.questions.lateness._COMMITS_AT_ONCE", 1)
        one_by_one = lateness(connection, table(LATE), now=LATER)
    assert together == one_by_one
    assert {each.snapshot for each in together if each.depth == 1} == {20}
    assert all(each.usual is not None for each in together if each.depth == 1)


@pytest.mark.parametrize(
    ("ends", "edges"), [((HUB, HUB + 5), 1), ((LATE + 5, LATE), 1), ((LATE + 5, HUB + 5), 0)], ids=["of", "to", "none"]
)
def test_a_path_is_searched_where_there_are_few_neighbours(
    stores: list[Engine], monkeypatch: pytest.MonkeyPatch, ends: tuple[int, int], edges: int
) -> None:
    """One end has 200 neighbours, and the other one has one."""
    met: list[int] = []
    within = TableClosure.expand

    def expand(closure: TableClosure, tables: Collection[bytes], level: int) -> set[bytes]:
        found = within(closure, tables, level)
        met.append(len(closure.edges))
        return found

    monkeypatch.setattr(TableClosure, "expand", expand)
    with stores[1].connect() as connection:
        found = path_between(connection, table(ends[0]), table(ends[1]))
    assert len(found) == edges
    assert max(met) == 1
