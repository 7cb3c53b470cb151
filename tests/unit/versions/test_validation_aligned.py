"""How a barrier of an aligned job is found by the job's name, and played again, without Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from sqlalchemy import Connection

from headwater.errors import ConfigurationError
from headwater.lineage.store import Store
from headwater.versions.aligned import AlignedBatch, AlignedQuery, Cut, GroupClaims, TableSnapshot, aligned_query
from headwater.versions.aligned.checkpoints import Barrier, Checkpoint, JobStart
from headwater.versions.aligned.repetition import BarrierRepetition, CommittedBarrier
from headwater.versions.validation import UnvalidatableError, aligned_plans, plan_repetition
from headwater.versions.validation.model import (
    RepeatedBarrier,
    ResultStart,
    ValidationRequest,
    dump_request,
    load_request,
)
from tests.kit.stores import open_new_store
from tests.kit.versions.delta_story import DeltaStory, add

ORDERS, SINK, OTHER = "lake.db.orders", "lake.db.revenue", "lake.db.top10"


def cut(snapshot: int) -> Cut:
    return Cut({ORDERS: TableSnapshot(snapshot, "1")})


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_new_store(str(tmp_path / "store.db")) as opened:
        yield opened


@pytest.fixture
def connection(store: Store) -> Iterator[Connection]:
    with store.engine.connect() as connection:
        yield connection


@pytest.fixture
def checkpoint(store: Store, tmp_path: Path) -> Checkpoint:
    """The job `revenue` of the group `shop` has committed 1 and 2, and works on 3."""
    found = Checkpoint(str(tmp_path / "revenue"))
    found.write_start(JobStart("revenue", "shop", {"orders": ORDERS}, 1, None, "newest", "me"))
    found.write(
        Barrier(1, cut(1), None, is_committed=True, sinks={f"{SINK} 1": None, f"{OTHER} 1": 3, f"{OTHER} 2": 4})
    )
    found.write(Barrier(2, cut(2), cut(1), is_committed=True, sinks={f"{SINK} 1": 7}))
    found.write(Barrier(3, cut(3), cut(2), is_committed=False, sinks={}))
    claims = GroupClaims(store, "shop")
    claims.enter([ORDERS])
    claims.take_over("revenue", found.location)
    return found


@pytest.mark.usefixtures("checkpoint")
def test_a_barrier_is_found_by_the_name_of_its_job(connection: Connection) -> None:
    """It finds the barrier that the job works on where the newest committed one is asked for."""
    newest = plan_repetition(connection, "revenue")
    assert (newest.label, newest.sink, newest.committed.barrier.cut) == ("revenue@2", SINK, cut(2))
    first = plan_repetition(connection, "revenue", 1, sink=OTHER, group="shop", allowed=["x"])
    assert (first.label, first.sink, first.sinks) == ("revenue@1", OTHER, (SINK, OTHER))
    request = ValidationRequest(plan=first, command=("a",), scratch="s", outcome_file="o", configuration={})
    assert load_request(dump_request(request)) == request


def test_what_stands_in_the_way_of_a_barrier_is_said(
    connection: Connection, store: Store, checkpoint: Checkpoint, tmp_path: Path
) -> None:
    for job, group, sink, message in (
        ("nobody", None, None, "knows no aligned job 'nobody'"),
        ("revenue", "other", None, "of the group other"),
        ("revenue", None, "lake.db.x", "didn't write lake.db.x"),
    ):
        with pytest.raises(ConfigurationError, match=message):
            plan_repetition(connection, job, group=group, sink=sink)
    for number, message in ((1, "by --sink"), (3, "hasn't committed it"), (9, "hasn't committed it")):
        with pytest.raises(UnvalidatableError, match=message):
            plan_repetition(connection, "revenue", number)
    claims = GroupClaims(store, "elsewhere")
    claims.enter([ORDERS])
    claims.take_over("revenue", str(tmp_path / "not here"))
    connection.rollback()  # what comes behind sees the other group
    with pytest.raises(ConfigurationError, match="--group"):
        plan_repetition(connection, "revenue")
    with pytest.raises(UnvalidatableError, match="isn't on this machine"):
        plan_repetition(connection, "revenue", group="elsewhere")
    assert checkpoint.barrier(1) is not None


class _Sinks:
    """The sink, with a history."""

    def __init__(self, story: DeltaStory) -> None:
        self._story = story

    def sink(self, _: str) -> DeltaStory:
        return self._story.now()


@pytest.fixture
def delta() -> DeltaStory:
    found = DeltaStory()
    mark = {"txn": {"appId": "headwater/shop/revenue/me/1", "version": 2}}
    found.log = {number: [add()] for number in range(8)} | {8: [add(), mark], 9: [add()]}
    found.name = SINK  # type: ignore[misc]
    return found


@pytest.fixture
def plan(monkeypatch: pytest.MonkeyPatch, delta: DeltaStory, connection: Connection, checkpoint: Checkpoint) -> Any:
    monkeypatch.setattr(aligned_plans, "TableLooker", lambda _: _Sinks(delta))
    monkeypatch.setattr(aligned_plans, "problems_of_table", lambda *_: ())
    names = SimpleNamespace(name=lambda: "revenue", namespace=lambda: ["db"])
    monkeypatch.setattr(aligned_plans, "identify", lambda *_: (SimpleNamespace(name=lambda: "lake"), names))
    assert checkpoint.start() is not None

    def found(repeated: RepeatedBarrier | None = None) -> Any:
        spark: Any = None
        return aligned_plans.plan_in_session(spark, repeated or plan_repetition(connection, "revenue"))

    return found


def test_what_a_barrier_wrote_is_found_by_its_mark(plan: Callable[[], Any]) -> None:
    found = plan()
    assert (found.label, found.sink.commits, found.sink.start) == (f"{SINK}@8", ((7, 8),), ResultStart.COPY)


def test_a_sink_that_others_wrote_in_between_isnt_compared(plan: Callable[[], Any], delta: DeltaStory) -> None:
    """It finds rows of others that would count as missing in the result."""
    delta.log[9], delta.log[8] = delta.log[8], [add()]
    with pytest.raises(UnvalidatableError, match=r"another job wrote lake\.db\.revenue@8, between 7 and 9"):
        plan()
    delta.log[8] = [add(dataChange=False)]
    delta.now("other").now()
    assert plan().label == f"{SINK}@9"


def test_a_sink_without_the_mark_isnt_compared(plan: Callable[[], Any], delta: DeltaStory) -> None:
    delta.log[8] = [add()]
    with pytest.raises(UnvalidatableError, match="has no snapshot of this barrier"):
        plan()


def test_a_query_plays_the_barrier_alone(
    checkpoint: Checkpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It finds a query that goes on with other data versions, asks a store, or leaves out what was written before."""
    start, barrier = checkpoint.start(), checkpoint.barrier(2)
    assert start is not None
    assert barrier is not None
    repetition = BarrierRepetition(CommittedBarrier(start, barrier))
    monkeypatch.setattr(AlignedQuery, "stand_in", repetition)
    written: list[str] = []

    def step(batch: AlignedBatch) -> None:
        assert batch.write(SINK, lambda: written.append(f"{batch.number} {batch.cut}"))

    def run(name: str, source: str = ORDERS) -> int:
        spark: Any = SimpleNamespace(_jvm=None)
        query = aligned_query(
            "shop", {"o": source}, name=name, checkpoint=str(tmp_path / "x"), store="none", spark=spark
        )
        return query.run(step, trigger="continuous")

    assert (run("other"), repetition.count) == (0, 0)
    assert (run("revenue"), repetition.count) == (1, 1)
    assert written == [f"2 {ORDERS}@2"]
    with pytest.raises(ConfigurationError, match=r"has no snapshot of lake\.db\.new"):
        run("revenue", "lake.db.new")
    assert not (tmp_path / "x").exists()
