"""What a validation read and made is no answer to a question about real tables, and is there for who asks for it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import Connection, Select

from headwater.events.jobs import JobStarted, JobType, RunScope
from headwater.events.names import VALIDATION_JOB_NAMESPACE, JobName
from headwater.lineage.mapping.commits import SINK, SOURCE
from headwater.lineage.questions.columns import downstream_columns
from headwater.lineage.questions.jobs import jobs, jobs_of, tables_of
from headwater.lineage.questions.paths import path_between
from headwater.lineage.questions.runs import runs
from headwater.lineage.questions.snapshots import downstream_snapshots, upstream_snapshots
from headwater.lineage.questions.tables import downstream_tables, upstream_tables
from headwater.lineage.questions.uses import uses
from headwater.lineage.sql.pip5_rows import data_rows, table_rows
from tests.kit.lineage.scripted_producer import store
from tests.kit.lineage.stories import Derivation, StoryProducer
from tests.kit.stores import memory_connection

VALIDATION = JobName(namespace=VALIDATION_JOB_NAMESPACE, name="report")


@pytest.fixture
def connection() -> Iterator[Connection]:
    """`b` is made from `a`, and so is `result`, by the same job when it was validated."""
    real, validation = StoryProducer(), StoryProducer(2)
    validation.job = VALIDATION
    for story, sink in ((real, "b"), (validation, "result")):
        story.job = VALIDATION if story is validation else JobName(name="report")
        story.emit(0, JobStarted, job_type=JobType.BATCH, scope=RunScope.APPLICATION)
        shape = story.shape(sink, ["a"], ("a.x", "y", Derivation.IDENTITY))
        story.commit(f"{sink}@1", reads=["a@1"], shape=shape)
    with memory_connection() as connection:
        store(connection, real, validation)
        yield connection


def test_questions_about_real_tables_leave_it_out(connection: Connection) -> None:
    a = "lake.db.a"
    assert {each.target.label for each in downstream_tables(connection, a)} == {"lake.db.b"}
    assert {each.target.label for each in downstream_snapshots(connection, a, 1)} == {"lake.db.b@1"}
    assert {each.target.label for each in downstream_columns(connection, f"{a}.x")} == {"lake.db.b.y"}
    assert [each.job for each in jobs_of(connection, a)] == ["report"]
    assert [(each.job, each.writes) for each in uses(connection, a)] == [("report", 1)]
    assert [each.job for each in jobs(connection)] == ["report"]
    assert [each.run for each in runs(connection)] == [UUID(int=1001)]
    assert [each.run for each in runs(connection, table=a)] == [UUID(int=1001)]
    assert [each.run for each in runs(connection, "report")] == [UUID(int=1001)]


@pytest.mark.parametrize(
    ("rows", "tables"), [(table_rows(SOURCE), {"a"}), (table_rows(SINK), {"b"}), (data_rows(SINK), {"b"})]
)
def test_pip5_rows_are_those_of_production(connection: Connection, rows: Select[Any], tables: set[str]) -> None:
    """A catalog's users would take a result table that is gone for one of theirs, and its job for one that runs."""
    found = connection.execute(rows).all()
    assert {each.table for each in found} == tables
    assert {each.job for each in found} == {"report"}


def test_who_asks_for_it_gets_it(connection: Connection) -> None:
    result = "lake.db.result"
    assert {each.source.label for each in upstream_tables(connection, result)} == {"lake.db.a"}
    assert {each.source.label for each in upstream_snapshots(connection, result, 1)} == {"lake.db.a@1"}
    assert len(path_between(connection, "lake.db.a", result).rows) == 1
    assert {each.table for each in tables_of(connection, VALIDATION)} == {"lake.db.a", result}
    assert [each.run for each in runs(connection, VALIDATION)] == [UUID(int=1002)]
    assert [each.run for each in runs(connection, run=UUID(int=1002))] == [UUID(int=1002)]
