"""What a stream's offsets tell of an Iceberg table, where they count the files of a whole state.

No release that the matrix runs writes such offsets, though all read them.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from headwater.events.jobs import RangeStart
from headwater.listeners.capture.formats.iceberg.streams import versions_of
from headwater.listeners.capture.formats.protocol import ReadVersion
from headwater.listeners.capture.plan.tree import PlanNode
from headwater.listeners.capture.statements import OffsetRange, StatementFacts

FIELDS = {"5": {"added": 1, "parent": 4}, "6": {"added": 2, "parent": 5}}


def offset(snapshot: int, position: int, *, is_state: bool = False) -> str:
    return json.dumps({"snapshot_id": snapshot, "position": position, "scan_all_files": is_state})


def read(start: str, end: str, **line: Any) -> ReadVersion:
    known = {**FIELDS, "5..6": {"first": 5, "before": 4, "at": 1, "adds": 0, "adds_later": 1} | line}
    facts = StatementFacts(looked_up={"iceberg": {"streamed": known}})
    node = PlanNode(0, "StreamingDataSourceV2Relation", None, (), (), {})
    [found] = versions_of(node, OffsetRange(start, end), facts)
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
