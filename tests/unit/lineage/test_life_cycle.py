"""Lineage is deleted, by a person, a policy or its age: what is gone then, what stays, and what is told of it."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import Connection, func, select

from headwater.events import (
    CatalogId,
    CatalogOptionsDeclared,
    Committed,
    DatasetId,
    Event,
    Format,
    Input,
    JobName,
    JobStarted,
    JobStatus,
    JobStatusChanged,
    LineageScope,
    OnJobEnd,
    Output,
)
from headwater.lineage.law.visible import DATA
from headwater.lineage.life import delete_job, expire_before, expire_snapshots, hidden_by, unify
from headwater.lineage.life.purging import covered, last_batches, remove
from headwater.lineage.questions import Why
from headwater.lineage.questions.about import table_meant
from headwater.lineage.questions.completeness import gaps
from headwater.lineage.questions.gaps import Cause
from headwater.lineage.questions.jobs import jobs_of
from headwater.lineage.rows import tables as t
from headwater.lineage.sql.tables import table_of
from headwater.lineage.sql.visible import not_deleted
from headwater.testing.examples import CONTEXT
from tests.unit.lineage.scribe import Scribe, at, dataset, place, store

APP = JobName(name="app")
DAILY = JobName(name="app.daily")


def run_of(number: int, minute: float = 0) -> Scribe:
    scribe = Scribe(number, "app")
    scribe.tell(minute, JobStarted, job_type="BATCH")
    return scribe


def commit(scribe: Scribe, minute: float, snapshot: int, **more: Any) -> Event:
    fields: dict[str, Any] = {
        "barrier": 1_000_000 + int(minute * 1000),
        "job": DAILY,
        "parent_job": APP,
        "inputs": (Input(**place("orders"), snapshot=snapshot * 10),),
        "outputs": (Output(**place("daily"), snapshot=snapshot, made_from=(0,)),),
        **more,
    }
    return scribe.tell(minute, Committed, **fields)


def end(scribe: Scribe, minute: float, policy: OnJobEnd | None) -> None:
    scribe.tell(minute, JobStatusChanged, status=JobStatus.FINISHED, on_job_end=policy)


def snapshots(connection: Connection, table: str = "daily", kind: Any = t.WRITE) -> list[int]:
    """Those of which data lineage is visible."""
    row, commits = table_of(kind).c, table_of(t.COMMIT).c
    mine = (row.commit_id == commits.id, row.dataset.in_(table_meant(connection, f"sales.{table}").keys))
    chosen = select(row.snapshot).where(*mine, not_deleted(row, commits, DATA))
    return sorted(connection.scalars(chosen))


def writers(connection: Connection, minute: float = 60) -> list[tuple[str | None, int]]:
    return [(each.job, each.runs) for each in jobs_of(connection, "sales.daily", now=at(minute))]


def purged(connection: Connection) -> int:
    newest = last_batches(connection)
    total = remove(connection, covered(connection, newest).can_go).rows
    assert covered(connection, newest).can_go == [], "nothing is left to purge"
    return total


class TestDeleting:
    @pytest.mark.parametrize("job", [APP, DAILY], ids=["an application and its steps", "a step"])
    def test_table_lineage_of_a_job(self, connection: Connection, job: JobName) -> None:
        scribe = run_of(1)
        commit(scribe, 1, 1)
        store(connection, scribe)
        draft = delete_job(LineageScope.TABLES, job, before=at(2))
        assert hidden_by(connection, draft) == 2
        store(connection, [tell(draft)])
        assert writers(connection) == []
        assert hidden_by(connection, draft) == 0
        assert snapshots(connection) == [1], "data lineage stays"

    def test_data_lineage_of_a_job(self, connection: Connection) -> None:
        scribe = run_of(1)
        commit(scribe, 1, 1)
        commit(scribe, 5, 2)
        other = Scribe(2, "other")
        commit(other, 1, 3, job=JobName(name="other"), parent_job=None)
        store(connection, scribe, other)
        draft = delete_job(LineageScope.DATA, APP, before=at(2))
        assert hidden_by(connection, draft) == 2
        store(connection, [tell(draft)])
        assert snapshots(connection) == [2, 3], "what was told after it, and by others, stays"
        assert writers(connection) == [("app.daily", 1), ("other", 1)]

    def test_of_one_run_only(self, connection: Connection) -> None:
        one, two = run_of(1), run_of(2)
        commit(one, 1, 1)
        commit(two, 1, 2)
        store(connection, one, two)
        for scope in (LineageScope.DATA, LineageScope.TABLES):
            draft = delete_job(scope, APP, run=one.run, before=at(3))
            assert hidden_by(connection, draft) == 2
            store(connection, [tell(draft, number=10 + len(scope))])
        assert snapshots(connection) == [2]
        assert writers(connection) == [("app.daily", 1)]

    def test_what_comes_late_is_hidden_too(self, connection: Connection) -> None:
        scribe = run_of(1)
        commit(scribe, 1, 1)
        late = commit(scribe, 1.5, 2)
        scribe.told.remove(late)
        store(connection, scribe, [tell(delete_job(LineageScope.DATA, APP, before=at(2)))], [late])
        assert snapshots(connection) == []


class TestPolicies:
    @pytest.mark.parametrize(
        ("policy", "tables", "data"),
        [
            (None, [("app.daily", 2)], [1, 2]),
            (OnJobEnd.KEEP, [("app.daily", 2)], [1, 2]),
            (OnJobEnd.DELETE_TABLE, [("app.daily", 1)], [1, 2]),
            (OnJobEnd.DELETE_ALL, [("app.daily", 1)], [2]),
        ],
    )
    def test_what_another_run_holds_stays(
        self, connection: Connection, policy: OnJobEnd | None, tables: object, data: object
    ) -> None:
        one, two = run_of(1), run_of(2)
        commit(one, 1, 1)
        commit(two, 1, 2)
        end(one, 3, policy)
        store(connection, one, two)
        assert (writers(connection), snapshots(connection)) == (tables, data)
        answer = jobs_of(connection, "sales.daily", now=at(4))
        deleted = [limit.why for limit in answer.limits if limit.why is Why.DELETED]
        assert len(deleted) == {OnJobEnd.DELETE_TABLE: 1, OnJobEnd.DELETE_ALL: 2}.get(policy or OnJobEnd.KEEP, 0)

    def test_a_later_run_holds_it_again(self, connection: Connection) -> None:
        one, two = run_of(1), run_of(2, 10)
        commit(one, 1, 1)
        end(one, 3, OnJobEnd.DELETE_ALL)
        store(connection, one)
        assert (writers(connection), snapshots(connection)) == ([], [])
        commit(two, 11, 2)
        store(connection, two)
        assert (writers(connection), snapshots(connection)) == ([("app.daily", 1)], [2])

    def test_what_comes_after_its_end_but_was_told_before(self, connection: Connection) -> None:
        scribe = run_of(1)
        late = commit(scribe, 1, 1)
        scribe.told.remove(late)
        end(scribe, 3, OnJobEnd.DELETE_ALL)
        store(connection, scribe, [late])
        assert (writers(connection), snapshots(connection)) == ([], [])


class TestExpiry:
    def test_what_is_older_is_gone_and_the_answer_says_so(self, connection: Connection) -> None:
        scribe = run_of(1)
        for minute in (1, 2, 3):
            commit(scribe, minute, minute)
        store(connection, scribe)
        draft = expire_before(at(2))
        assert hidden_by(connection, draft) == 4
        store(connection, [tell(draft)])
        assert snapshots(connection) == [3]
        assert writers(connection) == [("app.daily", 1)], "table lineage stays"
        (limit,) = jobs_of(connection, "sales.daily", now=at(3)).limits
        assert (limit.why, "data lineage up to 2026-03-01T12:02" in limit.detail) == (Why.DELETED, True)

    def test_of_one_catalog_only(self, connection: Connection) -> None:
        scribe = run_of(1)
        catalogs = [CatalogId(type="hadoop", location=place) for place in ("s3://lake/w", "s3://other")]
        for catalog, name in zip(catalogs, ("lake", "other"), strict=True):
            context = CONTEXT.model_copy(update={"name": name, "id": catalog})
            scribe.tell(0, CatalogOptionsDeclared, context=context)
        commit(scribe, 1, 1)
        store(connection, scribe)
        drafts = [expire_before(at(2), catalog=catalog) for catalog in reversed(catalogs)]
        assert [hidden_by(connection, draft) for draft in drafts] == [0, 2]
        for number, (draft, left) in enumerate(zip(drafts, ([1], []), strict=True), 77):
            store(connection, [tell(draft, number)])
            assert snapshots(connection) == left

    def test_by_the_snapshots_that_are_gone(self, connection: Connection) -> None:
        scribe = run_of(1)
        for minute in (1, 2, 3):
            commit(scribe, minute, minute)
        store(connection, scribe)
        store(connection, [tell(expire_snapshots(connection, dataset("daily"), 2, before=at(9)))])
        assert snapshots(connection) == [3]
        assert snapshots(connection, "orders", t.READ) == [10, 20, 30]

    def test_snapshots_without_an_order_go_by_their_time(self, connection: Connection) -> None:
        scribe = run_of(1)
        for minute, snapshot in ((1, 900), (2, 50), (3, 70)):
            output = Output(**place("daily"), snapshot=snapshot, format=Format.ICEBERG)
            commit(scribe, minute, snapshot, outputs=(output,))
        store(connection, scribe)
        draft = expire_snapshots(connection, dataset("daily"), 50, before=at(9))
        assert (draft.up_to_snapshot, draft.before) == (None, at(2))
        store(connection, [tell(draft)])
        assert snapshots(connection) == [70]


class TestPurging:
    def test_only_what_is_hidden_goes(self, connection: Connection) -> None:
        scribe = run_of(1)
        for minute in (1, 2, 3):
            commit(scribe, minute, minute, parent_job=APP)
        store(connection, scribe)
        assert purged(connection) == 0
        store(connection, [tell(expire_before(at(2)))])
        before = (snapshots(connection), writers(connection))
        assert purged(connection) == 2 * 3
        assert (snapshots(connection), writers(connection)) == before
        assert count(connection, t.COMMIT) == count(connection, t.READ) == count(connection, t.WRITE) == 1

    def test_edges_go_with_their_writes(self, connection: Connection) -> None:
        scribe = run_of(1)
        inputs = (Input(**place("orders"), snapshot=1), Input(**place("rates"), snapshot=1))
        output = Output(**place("daily"), snapshot=1, made_from=(1,))
        commit(scribe, 1, 1, inputs=inputs, outputs=(output,))
        store(connection, scribe, [tell(expire_before(at(2)))])
        assert count(connection, t.EDGE) == 1
        assert purged(connection) == 5
        assert count(connection, t.EDGE) == 0

    def test_a_barrier_goes_whole_or_not_at_all(self, connection: Connection) -> None:
        scribe = run_of(1)
        commit(scribe, 1, 1)
        store(connection, scribe)
        store(connection, [tell(expire_snapshots(connection, dataset("daily"), 1, before=at(9)))])
        assert purged(connection) == 0, "what it read is visible"
        store(connection, [tell(expire_snapshots(connection, dataset("orders"), 10, before=at(9)), number=78)])
        assert purged(connection) == 3

    def test_the_last_micro_batch_of_a_stream_may_be_told_again(self, connection: Connection) -> None:
        scribe = run_of(1)
        for batch in range(3):
            commit(scribe, batch, batch + 1, batch_id=batch)
        store(connection, scribe, [tell(expire_before(at(9)))])
        assert purged(connection) == 2 * 3
        assert (count(connection, t.COMMIT), snapshots(connection)) == (1, [])

    def test_a_parent_that_went_is_no_gap(self, connection: Connection) -> None:
        scribe = run_of(1)
        for minute in (1, 2, 3):
            output = Output(**place("daily"), snapshot=minute, parent=minute - 1 or None)
            commit(scribe, minute, minute, outputs=(output,))
        commit(scribe, 5, 5, outputs=(Output(**place("daily"), snapshot=5, parent=4),))
        store(connection, scribe, [tell(expire_before(at(2)))])
        purged(connection)
        parents = [gap for gap in gaps(connection, now=at(60)) if gap.cause is Cause.UNKNOWN_PARENT]
        assert [gap.snapshot for gap in parents] == [4]


def test_others_become_one() -> None:
    draft = unify([dataset("a"), dataset("b"), dataset("a")], dataset("b"), by="ann")
    assert (draft.dataset, draft.others, draft.by) == (dataset("b"), (dataset("a"),), "ann")
    with pytest.raises(Exception, match="only dataset that was named"):
        unify([dataset("b")], DatasetId(namespace="s3://lake", name="w/b"))


def count(connection: Connection, kind: Any) -> int:
    return connection.scalar(select(func.count()).select_from(table_of(kind))) or 0


def tell(draft: Any, number: int = 77) -> Any:
    """By an administrator, an hour later."""
    fields = {name: value for name, value in dict(draft).items() if name not in Event.model_fields}
    return Scribe(number).tell(60, type(draft), **fields)
