"""When a Paimon snapshot is reported, and when only candidates are: cases that a real table doesn't come to on
demand."""

from __future__ import annotations

from typing import Any

import pytest

from headwater.events import DatasetId, Format
from headwater.events.apply import apply
from headwater.events.changes import AddColumn, RetypeColumn
from headwater.events.jobs import CommitKind, OverwriteScope, RangeStart, SinkSchema, SourceSchema
from headwater.events.tables import Column, Table
from headwater.events.types import columns_from_schema_json
from headwater.listeners.capture.formats.paimon import PLUGIN
from headwater.listeners.capture.formats.protocol import ReadVersion, SourceRelation, WriteResult, WriteTarget
from headwater.listeners.capture.formats.schema_diff import SchemaDiff, fields_of
from headwater.listeners.capture.plan.tree import Plan, PlanNode
from headwater.listeners.capture.statements import Statement, StatementFacts

PLAN = Plan(0, (), (), (), (PlanNode(0, "DataSourceV2Relation", None, (), (), {}),))
PLACE = ("/w/d.db/t", "")
HERE = {"location": "file:/w/d.db/t"}
DATASET = DatasetId(namespace="file://host", name="/w/d.db/t")
PLANNED = 10_000_000


def commit(number: int, kind: str = "OVERWRITE", user: str = "u") -> dict[str, Any]:
    return {"snapshot": number, "kind": kind, "user": user, "schema": 0, "time": 1, "total": 0, "delta": 0}


def noted(number: int, kind: str = "APPEND", user: str = "u") -> dict[str, Any]:
    return {"hook": "paimon", **commit(number, kind, user), "rows": 5, "bytes": 50}


def statement(paimon: dict[str, Any], *notes: dict[str, Any]) -> Statement:
    facts = StatementFacts(hook_facts=notes, looked_up={"paimon": {"planned": PLANNED, **paimon}})
    return Statement(id=1, plan=PLAN, ended=PLANNED + 100, started=PLANNED, facts=facts)


def target(kind: CommitKind = CommitKind.TRUNCATE, **hints: Any) -> WriteTarget:
    sink = SinkSchema(dataset=DATASET, format=Format.PAIMON)
    return WriteTarget(
        sink, None, kind, OverwriteScope.ALL, versioned=True, hints={"place": PLACE, "schema": 0, **hints}
    )


def numbers(outcome: WriteResult) -> list[Any]:
    return [list(each.candidates) if each.snapshot is None else each.snapshot for each in outcome.outputs]


@pytest.mark.parametrize(
    ("certain", "complete", "found", "expected", "gap"),
    [
        (True, True, [4], [4], False),
        (True, True, [4, 5], [[4, 5]], True),
        (True, False, [4], [[4]], True),
        (True, True, [], [[]], True),
        (False, True, [4], [[4]], True),
        (False, True, [], [], False),
    ],
)
def test_a_commit_by_nobody_known(
    certain: bool, complete: bool, found: list[int], expected: list[Any], gap: bool
) -> None:
    within = {**HERE, "complete": complete, "older": True, "snapshots": [commit(each) for each in found]}
    outcome = PLUGIN.reader.write_result(target(certain=certain), statement({"within": within}))
    assert (numbers(outcome), outcome.gap is not None) == (expected, gap)


@pytest.mark.parametrize(("older", "expected"), [(True, [4]), (False, [[4]])])
def test_statistics_make_a_snapshot_only_where_there_was_one(older: bool, expected: list[Any]) -> None:
    within = {**HERE, "complete": True, "older": older, "snapshots": [commit(4, "ANALYZE")]}
    assert numbers(PLUGIN.reader.write_result(target(CommitKind.ANALYZE), statement({"within": within}))) == expected


def test_anothers_commit_in_the_same_statement_is_nobodys() -> None:
    found = statement({"writers": [{**HERE, "user": "u", "seen": True}]}, noted(3), noted(4, user="somebody"))
    assert numbers(PLUGIN.reader.write_result(target(CommitKind.APPEND), found)) == [3]


def test_a_note_that_was_lost_is_a_gap() -> None:
    outcome = PLUGIN.reader.write_result(
        target(CommitKind.APPEND), statement({"writers": [{**HERE, "user": "u", "seen": True}]})
    )
    assert (numbers(outcome), outcome.gap is not None) == ([[]], True)


def test_files_that_are_gone_are_a_gap() -> None:
    writer = {**HERE, "user": "u", "complete": False, "snapshots": []}
    outcome = PLUGIN.reader.write_result(target(CommitKind.APPEND), statement({"writers": [writer]}))
    assert (numbers(outcome), outcome.gap is not None) == ([[]], True)


def test_a_writer_that_committed_nothing_is_none() -> None:
    writers = [{**HERE, "user": "u", "seen": False}, {**HERE, "user": "v", "complete": True, "snapshots": []}]
    assert PLUGIN.reader.write_result(target(CommitKind.APPEND), statement({"writers": writers})) == WriteResult()


def test_a_write_that_nobody_saw_is_a_gap_unless_the_hook_did() -> None:
    assert PLUGIN.reader.write_result(target(CommitKind.APPEND), statement({})).gap
    assert numbers(PLUGIN.reader.write_result(target(CommitKind.APPEND), statement({}, noted(7)))) == [7]


def test_an_eye_that_failed_is_a_gap() -> None:
    assert PLUGIN.reader.write_result(target(CommitKind.APPEND), statement({"unreadable": "no"})).gap


def read(fact: dict[str, Any], asked: dict[str, str] | None = None, **more: Any) -> tuple[ReadVersion, ...]:
    source = SourceRelation(
        0, SourceSchema(dataset=DATASET), versioned=True, hints={"place": PLACE, "asked": asked or {}}
    )
    facts = statement({"reads": [{**HERE, **fact}], **more}).facts
    return PLUGIN.reader.versions_read(source, PLAN, facts)


def newest(*ages: tuple[int, int, bool], changed: int) -> dict[str, Any]:
    found = [{"snapshot": number, "time": PLANNED - age, "own": own} for number, age, own in ages]
    return {"snapshots": [], "newest": found, "changed": PLANNED - changed}


def test_no_file_but_the_newest_was_there_before() -> None:
    assert read(newest((5, 20, True), changed=20)) == (ReadVersion(5),)
    assert read(newest((5, 700_000, False), changed=700_000)) == (ReadVersion(5),)


@pytest.mark.parametrize(
    ("fact", "candidates"),
    [
        (newest((5, 20, False), (4, 900_000, False), (3, 900_001, False), changed=20), (4, 5)),
        (newest((5, -20, True), (4, 10, True), (3, 20, True), changed=-20), (4, 5)),
        (newest((5, 20, True), changed=-5), (5,)),
    ],
    ids=["another host's clock", "committed since", "rolled back since"],
)
def test_no_file_and_nobody_knows(fact: dict[str, Any], candidates: tuple[int, ...]) -> None:
    (version,) = read(fact)
    assert (version.snapshot, version.candidates, version.why is not None) == (None, candidates, True)


def test_no_file_and_no_snapshot_is_no_gap() -> None:
    assert read({"snapshots": [], "newest": [], "changed": 0}) == (ReadVersion(),)


def test_no_file_of_what_was_asked_for_by_number() -> None:
    asked = {"scan.snapshot-id": "3"}
    assert read({"snapshots": [], "asked": asked}, asked) == (ReadVersion(3),)
    between = {"incremental-between": "1,3"}
    assert read({"snapshots": [], "asked": between}, between) == (
        ReadVersion(3, since=RangeStart(snapshot=1), changes=True),
    )


def test_a_read_of_another_version_is_not_this_one() -> None:
    assert read({"snapshots": [3], "asked": {"scan.snapshot-id": "3"}}) == ()


def test_a_scan_in_no_plan_is_a_gap() -> None:
    (version,) = read({"snapshots": [3], "location": "file:/w/d.db/other"}, behind=True)
    assert (version.snapshot, version.why is not None) == (None, True)


def columns(fields: str) -> tuple[Column, ...]:
    return columns_from_schema_json(f'{{"type":"struct","fields":[{fields}]}}')


def test_what_a_merged_schema_changed() -> None:
    plain = '{"name":"a","type":"integer","nullable":true,"metadata":{}}'
    grown = plain.replace("integer", "long")
    inner = '{"name":"s","type":{"type":"struct","fields":[%s]},"nullable":true,"metadata":{}}'
    other = '{"name":"b","type":"string","nullable":true,"metadata":{}}'
    before, after = columns(f"{plain},{inner % plain}"), columns(f"{grown},{inner % f'{grown},{other}'},{other}")
    found = list(SchemaDiff().of(fields_of(before), fields_of(after)))
    assert [(type(each), each.path) for each in found if isinstance(each, AddColumn | RetypeColumn)] == [
        (AddColumn, ("b",)),
        (RetypeColumn, ("a",)),
        (AddColumn, ("s", "b")),
        (RetypeColumn, ("s", "a")),
    ]
    assert apply(found, Table(columns=before)).columns == after
