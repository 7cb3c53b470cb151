"""Which tables are left out when others are compared, in random graphs, wherever the walk stopped.

All contain them, they are met first, and none of the tables that are met is behind them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from functools import reduce
from typing import Final
from unittest.mock import Mock, patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headwater.lineage.questions.traversal.identities import Identities
from headwater.versions import shared_tables
from headwater.versions.shared_tables import SharedTables
from tests.kit.effort import examples
from tests.kit.stores import memory_connection

pytestmark = pytest.mark.slow

NAMES: Final = [bytes([each]) for each in b"abcdefghijkl"]
Graph = Mapping[bytes, Collection[bytes]]
"""What each table was made from."""


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    """Mostly made from those that stand before; now and then tables feed each other."""
    graph: dict[bytes, list[bytes]] = {}
    has_cycles = draw(st.integers(0, 4)) == 0
    for number, name in enumerate(NAMES):
        among = NAMES if has_cycles else NAMES[:number]
        graph[name] = draw(st.lists(st.sampled_from(among), max_size=3, unique=True)) if among else []
    return graph


@pytest.fixture(scope="module")
def identities() -> Iterator[Identities]:
    """Nothing is linked."""
    with memory_connection() as connection:
        yield Identities(connection)


def loader(graph: Graph) -> Callable[..., list[tuple[bytes, bytes]]]:
    """Return what loads edges from a store that has those of a graph."""

    def load(
        _: object, tables: Collection[bytes], *, is_upward: bool, most: int | None = None
    ) -> list[tuple[bytes, bytes]]:
        pairs = [(target, source) for target, sources in graph.items() for source in sources]
        found = [pair for pair in (pairs if is_upward else [(b, a) for a, b in pairs]) if pair[0] in tables]
        return found if most is None else found[: most + 1]

    return load


def loader_behind(graph: Graph) -> Callable[..., list[tuple[bytes, bytes]]]:
    """Return what loads all edges behind tables from such a store at once, until there are more than `most`."""
    near = loader(graph)

    def load(_: object, tables: Collection[bytes], *, is_upward: bool, most: int) -> list[tuple[bytes, bytes]]:
        found, waiting = set(tables), set(tables)
        while waiting:
            waiting = {there for _, there in near(_, waiting, is_upward=is_upward)} - found
            found |= waiting
        return near(_, found, is_upward=is_upward, most=most)

    return load


def reached(tables: Collection[bytes], graph: Graph, ends: Collection[bytes] = ()) -> set[bytes]:
    found, waiting = set(tables), list(tables)
    while waiting:
        one = waiting.pop()
        new = set() if one in ends else {each for each in graph[one] if each != one} - found
        found |= new
        waiting += new
    return found


def behind(table: bytes, graph: Graph) -> set[bytes]:
    return reached([each for each in graph[table] if each != table], graph)


def may_be_left_out(found: Collection[bytes], graph: Graph, tables: Collection[bytes]) -> bool:
    """Say so by the whole graph."""
    shared = reduce(set.__and__, [reached([each], graph) for each in tables])
    met = reached(tables, graph, found)
    return shared & met >= set(found) and all(behind(each, graph).isdisjoint(met) for each in found)


@settings(max_examples=examples(500))
@given(
    graph=graphs(),
    tables=st.lists(st.sampled_from(NAMES), min_size=2, max_size=4, unique=True),
    few=st.integers(1, 40),
    is_at_once=st.booleans(),
    data=st.data(),
)
def test_what_is_left_out_may_be_left_out(
    *, graph: Graph, tables: list[bytes], few: int, is_at_once: bool, data: st.DataObject, identities: Identities
) -> None:
    with (
        patch.object(shared_tables, "load_neighbors", loader(graph)),
        patch.object(shared_tables, "load_behind", loader_behind(graph)),
        patch.object(shared_tables, "can_load_behind", return_value=is_at_once),
        patch.object(shared_tables, "_FEW_EDGES", few),
    ):
        shared = SharedTables(Mock(), identities, tables)
        found = shared.nearest()
        assert may_be_left_out(found, graph, tables)
        if found:
            lacking = data.draw(st.sampled_from(sorted(found)))
            shared.include([lacking])
            others = shared.nearest()
            assert others.isdisjoint(reached([lacking], graph))
            assert may_be_left_out(others, graph, tables)
