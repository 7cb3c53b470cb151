"""Column lineage of plans that Spark, Iceberg, Delta and Paimon gave; `record.py` makes them anew."""

from __future__ import annotations

from typing import Final

import pytest

from headwater.listeners.capture.plan.tree import Plan
from tests.kit.plan.cases import FORMATS, QUERIES, changes_of, recorded
from tests.kit.plan.notation import edges, edges_of, edges_of_changes

CHANGES: Final = [(name, statement) for name in FORMATS for statement in changes_of(name)]


def test_all_cases_are_recorded_and_nothing_else() -> None:
    assert list(recorded("queries")) == list(QUERIES)
    for name in FORMATS:
        assert list(recorded(name)) == list(changes_of(name))


@pytest.mark.parametrize("query", QUERIES)
def test_a_query(query: str) -> None:
    assert edges_of(Plan.parse(recorded("queries")[query])) == edges(QUERIES[query])


@pytest.mark.parametrize(("name", "statement"), CHANGES)
def test_a_change_of_rows(name: str, statement: str) -> None:
    plan = Plan.parse(recorded(name)[statement])
    assert edges_of_changes(plan) == edges(changes_of(name)[statement], {})
