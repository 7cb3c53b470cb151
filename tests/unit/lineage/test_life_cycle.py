"""Lineage is deleted, by a person, a policy or its age: what is gone then, what stays, and what is recorded of it."""

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
    JobStatusChanged,
    Output,
)
from headwater.events.administration import LineageScope
from headwater.events.jobs import JobStatus, LineageRetention
from headwater.lineage.maintenance.deletion import count_hidden, delete_job, expire_before, expire_snapshots, unify
from headwater.lineage.maintenance.purge import erase_commits, find_erasable, last_batches
from headwater.lineage.questions import LimitReason
from headwater.lineage.questions.completeness import gaps
from headwater.lineage.questions.gaps import GapCause
from headwater.lineage.questions.jobs import jobs_of
from headwater.lineage.questions.name_checks import resolve_table
from headwater.lineage.rows import tables as t
from headwater.lineage.rows.tombstones import DATA
from headwater.lineage.sql.accesses import access_of
from headwater.lineage.sql.tables import table_of
from headwater.lineage.sql.tombstones import not_hidden
from headwater.testing.examples import CONTEXT
from tests.kit.lineage.scripted_producer import ScriptedProducer, at, dataset, place, store
from tests.kit.stores import on_every_database

APP = JobName(name="app")
DAILY = JobName(name="app.daily")


def run_of(number: int, minute: float = 0) -> ScriptedProducer:
    producer = ScriptedProducer(number, "app")
    producer.emit(minute, JobStarted, job_type="BATCH")
    return producer


def commit(producer: ScriptedProducer, minute: float, snapshot: int, **more: Any) -> Event:
    fields: dict[str, Any] = {
        "barrier": 1_000_000 + int(minute * 1000),
        "job": DAILY,
        "parent_job": APP,
        "inputs": (Input(**place("orders"), snapshot=snapshot * 10),),
        "outputs": (Output(**place("daily"), snapshot=snapshot, made_from=(0,)),),
        **more,
    }
    return producer.emit(minute, Committed, **fields)


def end(producer: ScriptedProducer, minute: float, policy: LineageRetention | None) -> None:
    producer.emit(minute, JobStatusChanged, status=JobStatus.FINISHED, on_job_end=policy)


def snapshots(connection: Connection, table: str = "daily", kind: Any = t.WRITE) -> list[int]:
    """Those of which data lineage is visible."""
    row, commits = access_of(kind).c, table_of(t.COMMIT).c
    mine = (row.commit_id == commits.id, row.dataset.in_(resolve_table(connection, f"sales.{table}").keys))
    chosen = select(row.snapshot).where(*mine, not_hidden(row, commits, DATA))
    return sorted(connection.scalars(chosen))


def writers(connection: Connection, minute: float = 60) -> list[tuple[str | None, int]]:
    return [(each.job, each.runs) for each in jobs_of(connection, "sales.daily", now=at(minute))]


def purged(connection: Connection) -> int:
    newest = last_batches(connection)
    total = erase_commits(connection, find_erasable(connection, newest).can_go).rows
    assert find_erasable(connection, newest).can_go == [], "nothing is left to purge"
    return total


@on_every_database
class TestDeleting:
    @pytest.mark.slow
    @pytest.mark.parametrize("job", [APP, DAILY], ids=["an application and its steps", "a step"])
    def test_table_lineage_of_a_job(self, connection: Connection, job: JobName) -> None:
        producer = run_of(1)
        commit(producer, 1, 1)
        store(connection, producer)
        draft = delete_job(LineageScope.TABLES, job, before=at(2))
        assert count_hidden(connection, draft) == 2
        store(connection, [tell(draft)])
        assert writers(connection) == []
        assert count_hidden(connection, draft) == 0
        assert snapshots(connection) == [1], "data lineage stays"

    @pytest.mark.slow
    def test_data_lineage_of_a_job(self, connection: Connection) -> None:
        producer = run_of(1)
        commit(producer, 1, 1)
        commit(producer, 5, 2)
        other = ScriptedProducer(2, "other")
        commit(other, 1, 3, job=JobName(name="other"), parent_job=None)
        store(connection, producer, other)
        draft = delete_job(LineageScope.DATA, APP, before=at(2))
        assert count_hidden(connection, draft) == 2
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
            assert count_hidden(connection, draft) == 2
            store(connection, [tell(draft, number=10 + len(scope))])
        assert snapshots(connection) == [2]
        assert writers(connection) == [("app.daily", 1)]

    def test_what_comes_late_is_hidden_too(self, connection: Connection) -> None:
        producer = run_of(1)
        commit(producer, 1, 1)
        late = commit(producer, 1.5, 2)
        producer.events.remove(late)
        store(connection, producer, [tell(delete_job(LineageScope.DATA, APP, before=at(2)))], [late])
        assert snapshots(connection) == []


@on_every_database
class TestPolicies:
    @pytest.mark.slow
    @pytest.mark.parametrize(
        ("policy", "tables", "data"),
        [
            (None, [("app.daily", 2)], [1, 2]),
            (LineageRetention.KEEP, [("app.daily", 2)], [1, 2]),
            (LineageRetention.DELETE_TABLE, [("app.daily", 1)], [1, 2]),
            (LineageRetention.DELETE_ALL, [("app.daily", 1)], [2]),
        ],
    )
    def test_what_another_run_holds_stays(
        self, connection: Connection, policy: LineageRetention | None, tables: object, data: object
    ) -> None:
        one, two = run_of(1), run_of(2)
        commit(one, 1, 1)
        commit(two, 1, 2)
        end(one, 3, policy)
        store(connection, one, two)
        assert (writers(connection), snapshots(connection)) == (tables, data)
        answer = jobs_of(connection, "sales.daily", now=at(4))
        deleted = [limit.why for limit in answer.limits if limit.why is LimitReason.DELETED]
        assert len(deleted) == {LineageRetention.DELETE_TABLE: 1, LineageRetention.DELETE_ALL: 2}.get(
            policy or LineageRetention.KEEP, 0
        )

    def test_a_later_run_holds_it_again(self, connection: Connection) -> None:
        one, two = run_of(1), run_of(2, 10)
        commit(one, 1, 1)
        end(one, 3, LineageRetention.DELETE_ALL)
        store(connection, one)
        assert (writers(connection), snapshots(connection)) == ([], [])
        commit(two, 11, 2)
        store(connection, two)
        assert (writers(connection), snapshots(connection)) == ([("app.daily", 1)], [2])

    def test_what_comes_after_its_end_but_was_reported_before(self, connection: Connection) -> None:
        producer = run_of(1)
        late = commit(producer, 1, 1)
        producer.events.remove(late)
        end(producer, 3, LineageRetention.DELETE_ALL)
        store(connection, producer, [late])
        assert (writers(connection), snapshots(connection)) == ([], [])


@on_every_database
class TestExpiry:
    @pytest.mark.slow
    def test_what_is_older_is_gone_and_the_answer_says_so(self, connection: Connection) -> None:
        producer = run_of(1)
        for minute in (1, 2, 3):
            commit(producer, minute, minute)
        store(connection, producer)
        draft = expire_before(at(2))
        assert count_hidden(connection, draft) == 4
        store(connection, [tell(draft)])
        assert snapshots(connection) == [3]
        assert writers(connection) == [("app.daily", 1)], "table lineage stays"
        (limit,) = jobs_of(connection, "sales.daily", now=at(3)).limits
        assert (limit.why, "data lineage up to 2026-03-01T12:02" in limit.detail) == (LimitReason.DELETED, True)

    def test_of_one_catalog_only(self, connection: Connection) -> None:
        producer = run_of(1)
        catalogs = [CatalogId(type="hadoop", location=place) for place in ("s3://lake/w", "s3://other")]
        for catalog, name in zip(catalogs, ("lake", "other"), strict=True):
            context = CONTEXT.model_copy(update={"name": name, "id": catalog})
            producer.emit(0, CatalogOptionsDeclared, context=context)
        commit(producer, 1, 1)
        store(connection, producer)
        drafts = [expire_before(at(2), catalog=catalog) for catalog in reversed(catalogs)]
        assert [count_hidden(connection, draft) for draft in drafts] == [0, 2]
        for number, (draft, left) in enumerate(zip(drafts, ([1], []), strict=True), 77):
            store(connection, [tell(draft, number)])
            assert snapshots(connection) == left

    def test_by_the_snapshots_that_are_gone(self, connection: Connection) -> None:
        producer = run_of(1)
        for minute in (1, 2, 3):
            commit(producer, minute, minute)
        store(connection, producer)
        store(connection, [tell(expire_snapshots(connection, dataset("daily"), 2, before=at(9)))])
        assert snapshots(connection) == [3]
        assert snapshots(connection, "orders", t.READ) == [10, 20, 30]

    def test_snapshots_without_an_order_go_by_their_time(self, connection: Connection) -> None:
        producer = run_of(1)
        for minute, snapshot in ((1, 900), (2, 50), (3, 70)):
            output = Output(**place("daily"), snapshot=snapshot, format=Format.ICEBERG)
            commit(producer, minute, snapshot, outputs=(output,))
        store(connection, producer)
        draft = expire_snapshots(connection, dataset("daily"), 50, before=at(9))
        assert (draft.up_to_snapshot, draft.before) == (None, at(2))
        store(connection, [tell(draft)])
        assert snapshots(connection) == [70]


@on_every_database
class TestPurging:
    @pytest.mark.slow
    def test_only_what_is_hidden_goes(self, connection: Connection) -> None:
        producer = run_of(1)
        for minute in (1, 2, 3):
            commit(producer, minute, minute, parent_job=APP)
        store(connection, producer)
        assert purged(connection) == 0
        store(connection, [tell(expire_before(at(2)))])
        before = (snapshots(connection), writers(connection))
        assert purged(connection) == 2 * 3
        assert (snapshots(connection), writers(connection)) == before
        assert count(connection, t.COMMIT) == count(connection, t.READ) == count(connection, t.WRITE) == 1

    def test_edges_go_with_their_writes(self, connection: Connection) -> None:
        producer = run_of(1)
        inputs = (Input(**place("orders"), snapshot=1), Input(**place("rates"), snapshot=1))
        output = Output(**place("daily"), snapshot=1, made_from=(1,))
        commit(producer, 1, 1, inputs=inputs, outputs=(output,))
        store(connection, producer, [tell(expire_before(at(2)))])
        assert count(connection, t.COMMIT_EDGE) == 1
        assert purged(connection) == 5
        assert count(connection, t.COMMIT_EDGE) == 0

    def test_a_barrier_goes_whole_or_not_at_all(self, connection: Connection) -> None:
        producer = run_of(1)
        commit(producer, 1, 1)
        store(connection, producer)
        store(connection, [tell(expire_snapshots(connection, dataset("daily"), 1, before=at(9)))])
        assert purged(connection) == 0, "what it read is visible"
        store(connection, [tell(expire_snapshots(connection, dataset("orders"), 10, before=at(9)), number=78)])
        assert purged(connection) == 3

    def test_the_last_micro_batch_of_a_stream_may_be_reported_again(self, connection: Connection) -> None:
        producer = run_of(1)
        for batch in range(3):
            commit(producer, batch, batch + 1, batch_id=batch)
        store(connection, producer, [tell(expire_before(at(9)))])
        assert purged(connection) == 2 * 3
        assert (count(connection, t.COMMIT), snapshots(connection)) == (1, [])

    def test_a_parent_that_went_is_no_gap(self, connection: Connection) -> None:
        producer = run_of(1)
        for minute in (1, 2, 3):
            output = Output(**place("daily"), snapshot=minute, parent=minute - 1 or None)
            commit(producer, minute, minute, outputs=(output,))
        commit(producer, 5, 5, outputs=(Output(**place("daily"), snapshot=5, parent=4),))
        store(connection, producer, [tell(expire_before(at(2)))])
        purged(connection)
        parents = [gap for gap in gaps(connection, now=at(60)) if gap.cause is GapCause.UNKNOWN_PARENT]
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
    return ScriptedProducer(number).emit(60, type(draft), **fields)
