"""What a plan of a roll-back says, in stories whose answers were found by hand."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import Connection

from headwater.errors import ConfigurationError
from headwater.events import Format, Output
from headwater.events.jobs import CommitKind, Committed, OverwriteScope
from headwater.events.names import JobName
from headwater.versions import check
from headwater.versions.correction.model import JobKind
from headwater.versions.rollback import RollbackPlan, RollbackVerdict, plan_rollback
from tests.kit.lineage.scripted_producer import at, store
from tests.kit.lineage.stories import StoryProducer
from tests.kit.stores import on_every_database
from tests.kit.versions.corrections import counted, order_warehouse

ALL, PART = OverwriteScope.ALL, OverwriteScope.PART
BACK, STAYS, LEFT, STUCK = RollbackVerdict.BACK, RollbackVerdict.STAYS, RollbackVerdict.LEFT, RollbackVerdict.STUCK


def planned(connection: Connection, story: StoryProducer, asked: str = "orders@3", **more: Any) -> RollbackPlan:
    store(connection, story)
    return plan_rollback(connection, asked, now=at(story.minute), **{"is_chain": True, **more})


def short(name: str) -> str:
    return name.removeprefix("lake.db.")


def targets(plan: RollbackPlan) -> dict[str, tuple[RollbackVerdict, int | None]]:
    return {short(table.table): (table.verdict, table.target) for table in plan.tables}


def problems(plan: RollbackPlan, name: str) -> str:
    return " ".join(next(table for table in plan.tables if short(table.table) == name).problems)


@on_every_database
def test_a_chain_goes_back_to_what_belongs_together(connection: Connection) -> None:
    """orders@3 is in details@1, and that in revenue@1; top10 was made after it, from what is lost alone."""
    story = order_warehouse()
    story.commit("top10@2", reads=["details@1"], replaced=ALL, job="top10", run=4)
    plan = planned(connection, story)
    assert targets(plan) == {
        "orders": (BACK, 3),
        "details": (BACK, 1),
        "revenue": (BACK, 1),
        "top10": (STAYS, 2),
    }
    assert [(short(table.table), table.newest, table.commits) for table in plan.going_back] == [
        ("orders", 5, 2),
        ("details", 3, 2),
        ("revenue", 2, 1),
    ]
    assert (plan.belong_together, plan.differences, plan.is_whole, plan.limits) == (True, (), True, ())


def test_what_was_made_from_what_is_lost_alone_cannot_go_back(connection: Connection) -> None:
    plan = planned(connection, order_warehouse())
    assert targets(plan)["top10"] == (STUCK, None)
    assert "none of its 1 known snapshots is without what is rolled back" in problems(plan, "top10")
    assert not plan.is_whole


def test_without_the_chain_only_the_table_goes_back(connection: Connection) -> None:
    """What no longer belongs to it is named."""
    plan = planned(connection, order_warehouse(), is_chain=False)
    assert targets(plan) == {"orders": (BACK, 3), "details": (LEFT, 1), "revenue": (LEFT, 1), "top10": (LEFT, None)}
    assert [short(table.table) for table in plan.going_back] == ["orders"]
    assert not plan.is_whole


def test_what_is_lost_is_counted(connection: Connection) -> None:
    story = StoryProducer()
    story.events = counted(order_warehouse().events)
    store(connection, story)
    plan = plan_rollback(connection, "orders@3", is_chain=True, now=at(30))
    assert [(short(table.table), table.lost.rows) for table in plan.going_back] == [
        ("orders", 160),
        ("details", 160),
        ("revenue", 80),
    ]
    assert plan.lost.rows == 400


def test_a_table_that_is_behind_stays_so_and_the_plan_says_it(connection: Connection) -> None:
    """revenue has only read details@1, and so orders@3: orders@4 isn't in it. It loses nothing more than that."""
    story = order_warehouse()
    story.commit("orders@6", job="ingest", run=1)
    story.commit("details@4", reads=["orders@5..6", "products@1"], job="details", run=2)
    plan = planned(connection, story, "orders@5")
    assert targets(plan) == {
        "orders": (BACK, 5),
        "details": (BACK, 3),
        "revenue": (STAYS, 2),
        "top10": (STAYS, 1),
    }
    assert plan.belong_together is False
    assert any("lake.db.revenue@2 contains" in each for each in plan.differences)


def test_of_versions_without_what_is_lost_those_go_that_belong_together(connection: Connection) -> None:
    """details@2 has nothing of orders@2, but products@2, which revenue hasn't read: both go back to products@1."""
    story = StoryProducer()
    for write, reads in (
        ("orders@1", ()),
        ("products@1", ()),
        ("details@1", ("orders@1", "products@1")),
        ("revenue@1", ("details@1",)),
        ("products@2", ()),
        ("details@2", ("orders@1", "products@2")),
        ("orders@2", ()),
        ("details@3", ("orders@2", "products@2")),
        ("revenue@2", ("details@3",)),
    ):
        story.commit(write, reads=reads, replaced=ALL, job=write.partition("@")[0])
    plan = planned(connection, story, "orders@1")
    assert targets(plan) == {"orders": (BACK, 1), "details": (BACK, 1), "revenue": (BACK, 1)}
    assert plan.belong_together is True


def test_a_table_that_was_made_anew_since_stays(connection: Connection) -> None:
    """Nothing is lost of it for the sake of versions that belong together."""
    story = order_warehouse()
    story.commit("revenue@3", reads=["products@1"], replaced=ALL, job="revenue")
    assert targets(planned(connection, story))["revenue"] == (STAYS, 3)


def test_a_table_without_snapshots_is_named(connection: Connection) -> None:
    story = order_warehouse()
    where: dict[str, Any] = {**story.where({"table": "export", "branch": None}), "format": Format.PARQUET}
    story.emit(
        20,
        Committed,
        barrier=90,
        inputs=(story.source("top10@1", {}),),
        outputs=(Output(**where, made_from=(0,)),),
        job=JobName(name="export"),
    )
    plan = planned(connection, story)
    assert "has no snapshots" in problems(plan, "export")


def test_a_format_that_has_no_roll_back_is_named(connection: Connection) -> None:
    story = order_warehouse()
    story.format = Format.HUDI
    story.commit("late@100", reads=[], parent=None, job="late")
    story.commit(
        "late@200", reads=[], parent=100, job="late", also=[story.source("orders@5", {"orders": Format.DELTA})]
    )
    plan = planned(connection, story)
    assert targets(plan)["late"] == (STUCK, None)
    assert "tables of HUDI" in problems(plan, "late")


def test_a_table_of_unknown_sources_may_have_what_is_lost(connection: Connection) -> None:
    story = order_warehouse()
    story.commit("revenue@3", reads=["details@1"], opaque="an RDD", replaced=ALL, job="revenue")
    plan = planned(connection, story)
    assert targets(plan)["revenue"] == (STUCK, None)
    assert "an RDD" in problems(plan, "revenue")


def test_a_commit_that_nobody_reported_breaks_the_line(connection: Connection) -> None:
    """Iceberg's numbers have no order, so whether 10 is behind 30 isn't known; Delta's have one."""
    story = StoryProducer()
    story.format = Format.ICEBERG
    story.commit("orders@10", parent=None)
    story.commit("orders@30", parent=20)
    with pytest.raises(ConfigurationError, match=r"30 isn't known to be made from 10: 20 was made by nobody"):
        planned(connection, story, "orders@10")


def test_unreported_commits_of_a_format_with_an_order_are_lost_too(connection: Connection) -> None:
    story = StoryProducer()
    story.commit("orders@1")
    story.commit("orders@4")
    story.commit("details@1", reads=["orders@1"])
    story.commit("details@2", reads=["orders@3"])
    plan = planned(connection, story, "orders@1")
    assert (plan.tables[0].commits, plan.tables[0].unreported) == (3, 2)
    assert targets(plan)["details"] == (BACK, 1)


def test_streams_and_scripts_are_named_with_where_they_go_on(connection: Connection) -> None:
    story = order_warehouse()
    plan = planned(connection, story)
    assert [(each.job, each.kind, each.commits) for each in plan.jobs] == [
        ("details", JobKind.BATCH, 2),
        ("ingest", JobKind.BATCH, 2),
        ("revenue", JobKind.BATCH, 1),
    ]


def test_what_was_restored_is_the_snapshot_that_was_restored(connection: Connection) -> None:
    """After a roll-back that makes snapshots of its own, tables belong together, and a second one loses nothing twice.
    Without that `version check` says that they don't, and so do consistent reads."""
    story = order_warehouse()
    store(connection, story)
    assert check(connection, ["orders", "details"]).is_consistent is True
    for before, restored, to in (
        ("orders@5", "orders@6", 3),
        ("details@3", "details@4", 1),
        ("revenue@2", "revenue@3", 1),
    ):
        name = before.partition("@")[0]
        story.commit(restored, reads=[f"{name}@{to}"], replaced=ALL, kind=CommitKind.RESTORE, job="headwater rollback")
    store(connection, story)
    assert check(connection, {"orders": 6, "details": 4, "revenue": 3}).is_consistent is True
    assert check(connection, {"orders": 3, "details": 4, "revenue": 1}).is_consistent is True
    assert check(connection, {"orders": 5, "details": 4}).is_consistent is False
    story.commit("orders@7", job="ingest", run=1)
    story.commit("details@5", reads=["orders@6..7", "products@1"], job="details", run=2)
    store(connection, story)
    assert check(connection, ["orders", "details"]).is_consistent is True
    plan = planned(connection, story, "orders@6")
    assert targets(plan) == {"orders": (BACK, 6), "details": (BACK, 1), "revenue": (STAYS, 3), "top10": (STAYS, 1)}
    again = plan_rollback(connection, "orders@3", is_chain=True)
    assert (again.tables[0].commits, targets(again)["details"]) == (2, (BACK, 1))


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ("orders", "to which snapshot does lake.db.orders go back"),
        ("orders@3.id", "names a column"),
        ("orders@9", "no snapshot"),
        ("nothing@1", "nothing"),
    ],
)
def test_what_cannot_be_planned_says_what_to_do(connection: Connection, asked: str, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        planned(connection, order_warehouse(), asked)
