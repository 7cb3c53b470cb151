"""Which version of Delta a statement read: what was scanned where rows were read, never what was analysed."""

from __future__ import annotations

from typing import Any

import pytest

from headwater.events import DatasetId, Format
from headwater.events.jobs import SourceSchema
from headwater.listeners.capture.formats.delta.read_versions import versions_of
from headwater.listeners.capture.formats.protocol import ReadVersion, SourceRelation
from headwater.listeners.capture.plan.tree import Plan, PlanNode
from headwater.listeners.capture.statements import StatementFacts

PATH = "file:/w/t"
TABLE, OTHER = 0, 1
"""Two leaves that read the same table, such as those of a self-join, each with an attribute of its own."""
LEAVES = tuple(PlanNode(number, "LogicalRelation", None, (), (number,), {}) for number in (TABLE, OTHER))
PLAN = Plan(2, (), (), (), (*LEAVES, PlanNode(2, "Join", None, (TABLE, OTHER), (0, 1), {})))
TOTAL = Plan(1, (), (), (), (LEAVES[0], PlanNode(1, "Aggregate", None, (TABLE,), (), {})))


def leaf(version: int, *attributes: int, path: str = PATH) -> dict[str, Any]:
    return {"format": "delta", "path": path, "version": version, "attributes": list(attributes)}


def scanned(version: int, **fields: Any) -> dict[str, Any]:
    return {"hook": "delta", "action": "scanned", "path": PATH, "version": version, **fields}


def versions(facts: StatementFacts, plan: Plan = PLAN, **hints: Any) -> list[Any]:
    schema = SourceSchema(dataset=DatasetId(namespace="file://host", name="/w/t"), format=Format.DELTA)
    source = SourceRelation(TABLE, schema, versioned=True, hints={"path": PATH, **hints})
    return [number(each) for each in versions_of(source, plan, facts)]


def number(read: ReadVersion) -> Any:
    return list(read.candidates) if read.snapshot is None else read.snapshot


def seen(lowest: int, highest: int) -> dict[str, Any]:
    """What the table's newest version was, when the statement was analysed and when it had ended."""
    return {"delta": {"tables": {PATH: {"lowest": lowest, "highest": highest}}}}


def test_a_write_read_what_its_own_execution_scanned() -> None:
    """Delta plans the query of a write a second time and reads it there; the first plan has the analysis' version."""
    facts = StatementFacts(
        reads=(leaf(3, TABLE),), nested_reads=(leaf(4),), hook_facts=(scanned(3), scanned(4, nested=True))
    )
    assert versions(facts) == [4]


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        (StatementFacts(reads=(leaf(3, TABLE), leaf(5, OTHER))), [3]),
        (StatementFacts(reads=(leaf(3), leaf(5))), [3, 5]),
        (StatementFacts(reads=(leaf(3, path="file:/w/u"),), nested_reads=(leaf(4, path="file:/w/u"),)), []),
    ],
    ids=["by its columns", "either", "another table's"],
)
def test_a_query_read_what_its_leaf_scanned(facts: StatementFacts, expected: list[int]) -> None:
    assert versions(facts) == expected


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        (StatementFacts(hook_facts=(scanned(6),), looked_up=seen(3, 7)), [6]),
        (StatementFacts(looked_up=seen(3, 3)), [3]),
        (StatementFacts(looked_up=seen(3, 5)), [[3, 4, 5]]),
    ],
    ids=["a scan was prepared", "nobody committed", "somebody committed"],
)
def test_a_total_that_the_log_answers_is_exact_where_nobody_committed(
    facts: StatementFacts, expected: list[Any]
) -> None:
    assert versions(facts, TOTAL) == expected


def test_what_was_never_scanned_was_not_read() -> None:
    assert versions(StatementFacts(looked_up=seen(3, 5))) == []


def test_a_merge_read_what_its_transaction_began_with() -> None:
    """Another writer's commit came before its own."""
    commit = {"hook": "delta", "action": "committed", "path": PATH, "readVersion": 3, "version": 5, "txnId": "a"}
    assert versions(StatementFacts(hook_facts=(commit,), reads=(leaf(4, TABLE),)), target=True) == [3]
