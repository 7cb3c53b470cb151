"""What an instant was made on, where a table's timeline tells it and where it can't be read.

A real table's timeline is there when a write ends, unless the storage fails right then.
"""

from __future__ import annotations

from typing import Any, Final

import pytest

from headwater.events import Format
from headwater.events.identity import Environment
from headwater.events.jobs import CommitKind, OverwriteScope, SinkSchema
from headwater.listeners.capture.formats.hudi.timelines import produced_by, recorded_commits
from headwater.listeners.capture.formats.hudi.write_results import write_result
from headwater.listeners.capture.formats.protocol import WriteResult, WriteTarget
from headwater.listeners.capture.plan.tree import Plan
from headwater.listeners.capture.statements import Statement, StatementFacts

PATH = "file:/w/orders"
FIRST, SECOND = 20261127084009881, 20261127084018758

COMMIT: Final = {"hook": "hudi", "path": PATH, "inserted": 1, "changed": 0, "bytes": 1}


def instant(number: int) -> dict[str, Any]:
    return {"instant": str(number), "completed": 1, "action": "commit", "at": str(number), "operation": "UPSERT"}


def facts_of(number: int, timeline: list[dict[str, Any]] | None) -> StatementFacts:
    """What is known of a statement whose commit the hook saw."""
    looked_up = {"timelines": {} if timeline is None else {PATH: timeline}}
    return StatementFacts(hook_facts=({**COMMIT, "instant": str(number)},), looked_up={"hudi": looked_up})


def result_of(
    number: int, timeline: list[dict[str, Any]] | None, replaced: OverwriteScope = OverwriteScope.NOTHING
) -> WriteResult:
    plan = Plan(0, (), (), (), ())
    statement = Statement(id=1, plan=plan, ended=2, started=0, facts=facts_of(number, timeline))
    sink, hints = SinkSchema(dataset=None, format=Format.HUDI), {"environment": Environment(host="driver-1")}
    return write_result(WriteTarget(sink, None, CommitKind.APPEND, replaced, versioned=True, hints=hints), statement)


@pytest.mark.parametrize(("number", "parent"), [(FIRST, None), (SECOND, FIRST)])
def test_a_timeline_tells_what_an_instant_was_made_on(number: int, parent: int | None) -> None:
    result = result_of(number, [instant(FIRST), instant(SECOND)])
    assert [(each.snapshot, each.parent) for each in result.outputs] == [(number, parent)]
    assert (result.unknown_origin, result.gap) == (False, None)


@pytest.mark.parametrize("timeline", [None, [instant(FIRST)]], ids=["unreadable", "without it"])
def test_an_instant_whose_parent_is_not_known_is_no_tables_first(timeline: list[dict[str, Any]] | None) -> None:
    """It finds rows from before that nothing is known of: a commit without a parent is a table's first one."""
    result = result_of(SECOND, timeline)
    assert [(each.snapshot, each.parent) for each in result.outputs] == [(SECOND, None)]
    assert result.unknown_origin
    assert result.gap is not None
    assert str(SECOND) in result.gap


def test_what_replaces_all_needs_no_parent() -> None:
    result = result_of(SECOND, None, OverwriteScope.ALL)
    assert (result.unknown_origin, result.gap) == (False, None)


@pytest.mark.parametrize(
    ("timeline", "expected"),
    [
        ([instant(FIRST), instant(SECOND)], {"produced": SECOND, "parent": FIRST}),
        ([instant(SECOND)], {"produced": SECOND, "parent": None}),
        (None, {}),
    ],
    ids=["later", "first", "unreadable"],
)
def test_an_event_of_a_catalog_names_an_instant_if_its_parent_is_known(
    timeline: list[dict[str, Any]] | None, expected: dict[str, int | None]
) -> None:
    """It finds the same of ALTER TABLE, which has no inputs that could be unknown."""
    facts = facts_of(SECOND, timeline)
    assert produced_by(recorded_commits(facts)[0], facts) == expected
