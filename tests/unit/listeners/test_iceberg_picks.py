"""A snapshot that was picked by calling Iceberg's library, as the hook notes it: no statement says what it was."""

from __future__ import annotations

import json
from typing import Any

import pytest

from headwater.events.identity.environment import Environment
from headwater.events.jobs import CommitKind, OverwriteScope, RangeStart, ReadMode
from headwater.events.redaction import Redactor
from headwater.listeners.capture.context import CaptureContext
from headwater.listeners.capture.formats import installed
from headwater.listeners.capture.formats.iceberg.read_versions import versions_of_batch
from headwater.listeners.capture.formats.iceberg.write_results import outside_commit
from headwater.listeners.capture.formats.protocol import ReadVersion
from headwater.listeners.capture.plan.tree import PlanNode
from headwater.listeners.capture.statements import OffsetRange, StatementFacts

CONTEXT = CaptureContext(Environment(host="driver-1"), {}, Redactor(), installed())
PICKED: dict[str, Any] = {"snapshot": 52, "parent": 11, "branches": []}


def fact(*, operation: str = "append", source: str = "52", picked: dict[str, Any] | None = PICKED) -> dict[str, Any]:
    found = {
        "snapshot": 14,
        "parent": 13,
        "operation": operation,
        "location": "/lake/t",
        "main": True,
        "summary": {"source-snapshot-id": source},
        **({} if picked is None else {"picked": picked}),
    }
    return {"hook": "iceberg", "action": "committed", "found": found}


@pytest.mark.parametrize(
    ("operation", "replaced"), [("append", OverwriteScope.NOTHING), ("overwrite", OverwriteScope.PART)]
)
def test_it_is_made_from_the_changes_of_its_source(operation: str, replaced: OverwriteScope) -> None:
    """Iceberg picks an overwrite only if it replaced partitions."""
    found = outside_commit(fact(operation=operation), CONTEXT)
    assert found is not None
    (output,), (read,) = found.outputs, found.inputs or ()
    assert (output.snapshot, output.commit_kind, output.replaced) == (14, CommitKind.CHERRY_PICK, replaced)
    assert (read.snapshot, read.mode, read.since) == (52, ReadMode.CHANGES, RangeStart(snapshot=11))
    assert (read.branch, read.main, read.dataset) == (None, False, output.dataset)


def test_the_first_snapshot_is_a_state() -> None:
    found = outside_commit(fact(picked={"snapshot": 52, "parent": None, "branches": ["b"]}), CONTEXT)
    assert found is not None
    (read,) = found.inputs or ()
    assert (read.mode, read.since, read.branch) == (ReadMode.STATE, None, "b")


@pytest.mark.parametrize("source", ["52", "what I read of another table"])
def test_a_property_of_the_users_is_no_pick(source: str) -> None:
    """The table has no such snapshot: somebody gave a property this name."""
    found = outside_commit(fact(source=source, picked=None), CONTEXT)
    assert found is not None
    assert ([each.commit_kind for each in found.outputs], found.inputs) == ([CommitKind.APPEND], None)


# What a stream's offsets tell of an Iceberg table, where they count the files of a whole state.


FIELDS = {"5": {"added": 1, "parent": 4}, "6": {"added": 2, "parent": 5}}


def offset(snapshot: int, position: int, *, is_state: bool = False) -> str:
    return json.dumps({"snapshot_id": snapshot, "position": position, "scan_all_files": is_state})


def read(start: str, end: str, **line: Any) -> ReadVersion:
    known = {**FIELDS, "5..6": {"first": 5, "before": 4, "at": 1, "adds": 0, "adds_later": 1} | line}
    facts = StatementFacts(looked_up={"iceberg": {"streamed": known}})
    node = PlanNode(0, "StreamingDataSourceV2Relation", None, (), (), {})
    [found] = versions_of_batch(node, OffsetRange(start, end), facts)
    return found


@pytest.mark.parametrize(
    ("start", "end", "expected"),
    [
        (offset(5, 0, is_state=True), offset(6, 2), ReadVersion(6)),
        (offset(5, 0, is_state=True), offset(6, 1), ReadVersion(6, "6:1")),
        (offset(5, 0, is_state=True), offset(5, 7, is_state=True), ReadVersion(5, "5:7")),
        (offset(5, 7, is_state=True), offset(6, 2), ReadVersion(6, None, RangeStart(snapshot=5, version="5:7"), True)),
        (offset(5, 0), offset(6, 2), ReadVersion(6, None, RangeStart(snapshot=4), True)),
    ],
)
def test_a_state_and_what_came_after_it(start: str, end: str, expected: ReadVersion) -> None:
    assert read(start, end) == expected


def test_commits_that_were_passed_over_after_a_state() -> None:
    found = read(offset(5, 0, is_state=True), offset(6, 2), adds_later=0)
    assert (found.changes, found.since) == (True, None)
    assert found.why == "this stream passed over commits after the state that it began with"
