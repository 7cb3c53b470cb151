"""A record's whole way, without Spark: what `record.py` recorded becomes events that say whose they are."""

from __future__ import annotations

import itertools
import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

from headwater.events import Committed, Event, Gap, JobStarted, StatementFailed
from headwater.events.health import GapReason
from headwater.events.identity import Environment
from headwater.events.jobs import CommitKind, OverwriteScope, RunScope, SparkDetails
from headwater.events.redaction import Redactor
from headwater.listeners.capture.context import CaptureContext
from headwater.listeners.capture.formats import installed
from headwater.listeners.capture.pipeline import EventPipeline
from headwater.listeners.capture.records import parse_record
from headwater.listeners.jobs import ApplicationFacts, ApplicationRuns
from headwater.listeners.settings import read_settings
from tests.kit.spark.driver import of, the

RECORDED: Final = Path(__file__).with_name("recorded")


class Line:
    """The stages one behind the other, with jobs of their own."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        settings, _ = read_settings({})
        facts = ApplicationFacts(id="app-1", name="shop", spark=SparkDetails(version="3.5.0"))
        self.runs = ApplicationRuns(facts, settings, self.events.append)
        context = CaptureContext(Environment(host="driver-1"), {}, Redactor(), installed())
        barriers: Callable[[], int] = itertools.count(1).__next__
        self._pipeline = EventPipeline(context, self.runs, barriers, self.events.append, settings)

    def events_of(self, *lines: str) -> list[Event]:
        before = len(self.events)
        for line in lines:
            self._pipeline.process(parse_record(line))
        return self.events[before:]


@pytest.fixture
def line() -> Line:
    return Line()


def recorded(name: str) -> list[str]:
    lines = (RECORDED / f"{name}.jsonl").read_text(encoding="utf-8").split("\n")[:-1]
    return [each for each in lines if json.loads(each)["kind"] != "mark"]


SPARK3: Final = [
    ("statement", ["CatalogOptionsDeclared", "JobLineage", "Committed"]),
    ("statement", ["StatementFailed"]),
    ("statement", ["StatementFailed"]),
    ("statement", ["JobLineage", "Committed"]),
    ("statement", ["JobLineage", "Committed"]),
    ("statement", []),  # a checkpoint, which the next one reads
    ("statement", ["JobLineage", "Committed"]),
    ("statement", ["CatalogOptionsDeclared", "CreateTable", "JobLineage", "Committed"]),
    ("outsideStatement", ["Committed"]),
    ("outsideStatement", ["Gap"]),
    ("query", ["JobStarted", "JobStatusChanged"]),
    ("statement", ["JobLineage", "Committed"]),
    ("query", ["JobStatusChanged"]),
    ("query", ["JobStarted", "JobStatusChanged"]),
    ("statement", ["JobLineage", "Committed"]),
    ("query", ["JobStatusChanged"]),
    ("query", ["JobStarted", "JobStatusChanged"]),
    ("statement", []),  # it failed, into a sink that only shows
    ("query", ["JobStatusChanged"]),
    ("client", ["JobStarted", "JobStatusChanged", "StatementFailed"]),
    ("statement", ["Committed"]),
    ("unreadable", ["Gap"]),
    ("outsideStatement", ["Committed"]),
    ("lost", ["Gap"]),
    ("failed", ["Gap"]),
    ("statement", ["JobLineage", "Committed"]),
    ("dropped", ["Gap"]),
]
SPARK4: Final = [
    ("analysisFailure", ["StatementFailed"]),
    ("statement", ["JobLineage", "Committed"]),
    ("procedureCall", ["Gap"]),
]


@pytest.mark.parametrize(("name", "expected"), [("spark3", SPARK3), ("spark4", SPARK4)])
def test_each_record_becomes_its_events(line: Line, name: str, expected: list[tuple[str, list[str]]]) -> None:
    kinds = [(json.loads(each)["kind"], [event.kind for event in line.events_of(each)]) for each in recorded(name)]
    assert kinds == expected
    assert all(event.job is not None and event.run is not None for event in line.events)


def first(kind: str, key: str) -> int:
    """The place of the first recorded record of a kind that has a key."""
    found = [json.loads(each) for each in recorded("spark3")]
    return next(n for n, each in enumerate(found) if each["kind"] == kind and key in each)


def changed(number: int, **fields: Any) -> str:
    return json.dumps({**json.loads(recorded("spark3")[number]), **fields})


def test_rows_of_a_checkpoint_are_seen_through(line: Line) -> None:
    """What it keeps is resolved before the record that reads it."""
    *before, reading = recorded("spark3")[: first("statement", "rdds") + 1]
    line.events_of(*before)
    committed = the(Committed, line.events_of(reading))
    assert [str(each.table) for each in committed.inputs] == ["ice.shop.orders"]


def test_what_was_caught_is_reported_of_each_statement_and_logged(line: Line, caplog: pytest.LogCaptureFixture) -> None:
    caught = [{"why": "A.java:1: X", "statement": 7}, {"why": "B.java:2: Y", "statement": 7}, {"why": "C.java:3: Z"}]
    first = {"place": "A.b", "why": "A.java:1: X", "frames": ["a.A.b(A.java:1)", "c.D.e(D.java:2)"]}
    reported = line.events_of(json.dumps({"kind": "failed", "count": 5, "caught": caught, "firsts": [first]}))
    assert [(gap.statement, gap.missed, gap.detail) for gap in of(Gap, reported)] == [
        (7, 2, "what was seen of statement 7 can't be read: A.java:1: X; B.java:2: Y"),
        (None, 3, "what was seen of some statements can't be read: C.java:3: Z"),
    ]
    assert [each.message for each in caplog.records] == [
        "A.b caught, and went on after: A.java:1: X\n    at a.A.b(A.java:1)\n    at c.D.e(D.java:2)"
    ]


def test_what_was_caught_and_is_reported_elsewhere_is_logged_only(line: Line, caplog: pytest.LogCaptureFixture) -> None:
    first = {"place": "A.b", "why": "A.java:1: X", "frames": []}
    assert line.events_of(json.dumps({"kind": "failed", "count": 0, "firsts": [first]})) == []
    assert [each.message for each in caplog.records] == ["A.b caught, and went on after: A.java:1: X"]


TRUE: Final = [["Literal", [], {"value": True, "type": 0}]]
IS_SEVEN: Final = [["Literal", [], {"value": "7", "type": 0}], ["EqualTo", [-5, 0], {}]]


@pytest.mark.parametrize(
    ("condition", "replaced"),
    [(TRUE, OverwriteScope.ALL), (IS_SEVEN, OverwriteScope.PART)],
    ids=["true", "of a column"],
)
def test_an_overwrite_replaces_what_its_condition_says(
    line: Line, condition: list[list[Any]], replaced: OverwriteScope
) -> None:
    record = json.loads(recorded("spark3")[0])
    (plan,) = record["plans"].values()
    place = len(plan["expressions"])
    for name, inputs, details in condition:
        moved = [each if each < 0 else place + each for each in inputs]
        plan["expressions"].append([name, moved, details])
    root = plan["nodes"][plan["root"]]
    root["c"], root["args"]["deleteExpr"] = "OverwriteByExpression", {"x": len(plan["expressions"]) - 1}
    for commit in (record["hookFacts"][1], record["formats"]["iceberg"]["commits"][0]):
        commit["operation"] = "overwrite"
    (output,) = the(Committed, line.events_of(json.dumps(record))).outputs
    assert (output.commit_kind, output.replaced) == (CommitKind.OVERWRITE, replaced)


@pytest.mark.parametrize(
    ("seen", "wap", "expected"),
    [
        ({"main": True}, "w", (None, True)),
        ({"branches": ["main"]}, None, (None, True)),
        ({"branches": ["b"]}, None, ("b", False)),
        ({"branches": ["b", "w"]}, "w", ("w", False)),
        ({"branches": ["b", "w"]}, None, (None, False)),
        ({"branches": []}, "w", (None, False)),
    ],
    ids=["main", "main by its name", "the only one", "the session's", "unknown which", "held back"],
)
def test_a_commit_is_to_the_branch_that_has_its_snapshot(
    line: Line, seen: dict[str, Any], wap: str | None, expected: tuple[str | None, bool]
) -> None:
    record = json.loads(recorded("spark3")[0])
    facts = record["formats"]["iceberg"]
    del facts["commits"][0]["main"]
    facts["commits"][0] |= seen
    facts["wapBranch"] = wap
    (output,) = the(Committed, line.events_of(json.dumps(record))).outputs
    assert (output.branch, output.main) == expected


def test_a_statement_is_its_sessions_jobs(line: Line) -> None:
    committed = the(Committed, line.events_of(recorded("spark3")[0]))
    assert (committed.job and committed.job.name) == "of_the_session"
    assert (committed.parent_job, committed.run) == (line.runs.application_job, line.runs.application_run)
    assert committed.statement == json.loads(recorded("spark3")[0])["id"]


def test_a_statement_in_a_block_is_the_blocks_and_the_block_is_reported_first(line: Line) -> None:
    block = line.runs.open_block("orders_etl", None, {})
    events = line.events_of(changed(0, tags=[block.tag]))
    assert the(JobStarted, events[:1]).scope is RunScope.BLOCK
    committed = the(Committed, events)
    assert (committed.job, committed.run, committed.parent_job) == (block.job, block.run, block.job)


def test_a_clients_statement_has_its_user(line: Line) -> None:
    number = first("statement", "client")
    line.events_of(recorded("spark3")[0])
    committed = the(Committed, line.events_of(changed(number, plans=json.loads(recorded("spark3")[number])["plans"])))
    assert committed.user == "anna"
    assert committed.operation == json.loads(recorded("spark3")[number])["client"]["operation"]


def test_a_failure_of_a_client_is_its_sessions(line: Line) -> None:
    events = line.events_of(recorded("spark3")[first("client", "message")])
    session, failed = the(JobStarted, events), the(StatementFailed, events)
    assert session.scope is RunScope.SESSION
    assert (failed.job, failed.run, failed.parent_job) == (session.job, session.run, line.runs.application_job)
    assert failed.user == "anna"


def of_function(line: Line, **fields: Any) -> list[Event]:
    """What is recorded of a micro-batch that a function got, of which these fields are others than those recorded."""
    number = first("statement", "functionColumns")
    line.events_of(*recorded("spark3")[:number])
    return line.events_of(changed(number, **fields))


def test_a_micro_batch_is_its_querys(line: Line) -> None:
    committed = the(Committed, of_function(line))
    query = of(JobStarted, line.events)[-1]
    assert (committed.job, committed.run, committed.parent_job) == (query.job, query.run, query.parent_job)
    assert committed.incarnation is not None


def test_a_part_that_cannot_be_read_is_a_gap_of_its_query_and_hides_no_other(line: Line) -> None:
    parts = json.loads(recorded("spark3")[first("statement", "functionColumns")])["parts"]
    lost = {**parts[0], "planDigest": "nowhere"}
    events = of_function(line, parts=[{"kind": "statement", "id": 99}, lost, *parts])
    assert Counter(event.kind for event in events) == {"Gap": 2, "JobLineage": 1, "Committed": 1}
    assert {gap.job for gap in of(Gap, events)} == {the(Committed, events).job}
    assert [gap.statement for gap in of(Gap, events)] == [99, lost["id"]]


def test_a_part_that_cannot_be_translated_is_a_gap_and_hides_no_other(line: Line) -> None:
    parts = json.loads(recorded("spark3")[first("statement", "functionColumns")])["parts"]
    made = json.loads(changed(first("statement", "nestedFacts"), hookFacts=[{"hook": "catalog"}]))
    events = of_function(line, parts=[made, *parts])
    assert "KeyError" in the(Gap, events).detail
    assert the(Gap, events).statement == made["id"]
    assert [str(each.table) for each in the(Committed, events).outputs] == ["ice.shop.orders"]


def test_what_cannot_be_resolved_is_a_gap_and_the_next_is_reported(line: Line) -> None:
    digest = json.loads(recorded("spark3")[0])["planDigest"]
    (gap,) = line.events_of(changed(0, plans={digest: {"root": 7}}))
    assert isinstance(gap, Gap)
    assert (gap.reason, gap.statement) == (GapReason.CAPTURE_FAILED, json.loads(recorded("spark3")[0])["id"])
    assert gap.first_time is not None
    assert "PlanError" in gap.detail
    assert of(Committed, line.events_of(recorded("spark3")[0]))


def test_what_cannot_be_translated_is_a_gap_and_the_next_is_reported(line: Line) -> None:
    (gap,) = line.events_of(changed(0, hookFacts=[{"hook": "iceberg", "action": "committed"}]))[-1:]
    assert isinstance(gap, Gap)
    assert "KeyError" in gap.detail
    assert of(Committed, line.events_of(recorded("spark3")[0]))
