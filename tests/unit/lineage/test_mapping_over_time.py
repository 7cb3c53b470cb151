"""What holds in the end, by hand: what comes late, in parts, twice, or by clocks that differ."""

from __future__ import annotations

from uuid import UUID

from headwater.events import (
    AlterTable,
    Closed,
    Committed,
    CreateTable,
    DropTable,
    Gap,
    Heartbeat,
    Input,
    JobLineage,
    JobName,
    JobStarted,
    JobStatusChanged,
    LineageDeleted,
    Output,
    Table,
    TableName,
)
from headwater.events.administration import LineageScope
from headwater.events.base import StringMap
from headwater.events.changes import RenameTable
from headwater.events.clock import micros_of
from headwater.events.health import GapReason
from headwater.events.jobs import JobStatus, JobType, RunScope, Source
from headwater.lineage.mapping import map_event
from headwater.lineage.mapping.keys import dataset_hash
from headwater.lineage.rows import RowSet
from headwater.lineage.rows.tombstones import DATA, CatalogNames, TombstoneIndex, deletion_subject
from headwater.testing.examples import EXAMPLES
from tests.kit.lineage.mapped_rows import (
    DAILY,
    JOB,
    MINUTE,
    NAME,
    NOON,
    ORDERS,
    Q,
    at,
    columns,
    of_table,
    rows,
    state_of,
)


def test_a_table_that_was_replaced_is_another_generation_of_the_same_dataset() -> None:
    made = of_table(CreateTable, 0, 1, generation="a", table=Table())
    replaced = of_table(CreateTable, 1, 2, generation="b", replaced=True, replaced_generation="a", table=Table())
    late = Committed(
        barrier=1, outputs=(Output(dataset=ORDERS, table=NAME, generation="a", snapshot=1),), **at(0.5, 1, Q)
    )
    generations = {columns(row)["generation"]: row.is_visible for row in rows("generations", made, replaced, late)}
    assert generations == {"a": False, "b": True}
    assert [row.is_visible for row in rows("aliases", made, replaced, late)] == [True]


def test_a_name_that_was_given_away_and_taken_by_another_table() -> None:
    new = TableName(catalog="lake", database="sales", table="orders_2")
    made = of_table(CreateTable, 0, 1, generation="a", table=Table())
    renamed = of_table(AlterTable, 1, 2, generation="a", changes=(RenameTable(table=new),))
    again = of_table(CreateTable, 2, 3, dataset=DAILY, generation="b", table=Table())
    names = {
        (columns(row)["table_name"], columns(row)["dataset"]): row.is_visible
        for row in rows("aliases", made, renamed, again)
    }
    one, other = dataset_hash(ORDERS), dataset_hash(DAILY)
    assert names == {("orders", one): False, ("orders_2", one): True, ("orders", other): True}


def test_a_rename_there_and_back() -> None:
    new = TableName(catalog="lake", database="sales", table="orders_2")
    there = of_table(AlterTable, 1, 2, generation="a", changes=(RenameTable(table=new, dataset=DAILY),))
    moved = {"identifier": new, "dataset": DAILY}
    back = of_table(AlterTable, 2, 3, generation="a", changes=(RenameTable(table=NAME, dataset=ORDERS),), **moved)
    names = {columns(row)["table_name"]: row.is_visible for row in rows("aliases", there, back)}
    assert names == {"orders": True, "orders_2": False}
    assert len(rows("dataset_links", there, back)) == 2


def test_one_number_in_two_incarnations_is_two_barriers_and_a_batch_run_again_is_one() -> None:
    first = Committed(barrier=7, batch_id=0, incarnation=UUID(int=5), **at(0, 1))
    again = Committed(barrier=7, batch_id=0, incarnation=UUID(int=5), **at(60, 1, Q)).model_copy(
        update={"run": UUID(int=8)}
    )
    other = Committed(barrier=7, batch_id=0, incarnation=UUID(int=6), **at(1, 2))
    commits = {columns(row)["incarnation"]: row for row in rows("commits", first, again, other)}
    assert len(commits) == 2
    twice = commits[UUID(int=5).bytes]
    assert (columns(twice)["run"], twice.times.first) == (UUID(int=8).bytes, micros_of(NOON))


def test_a_shape_that_comes_late_or_never_is_missed_by_columns_only() -> None:
    lineage = next(event for event in EXAMPLES if isinstance(event, JobLineage))
    committed = next(event for event in EXAMPLES if isinstance(event, Committed) and event.fingerprint is not None)
    late = lineage.model_copy(update={"sequence": 900, "family_sequence": 900, "time": committed.time + MINUTE})
    never, in_the_end = state_of([committed]), state_of([committed, late])
    for kind in ("commits", "reads", "writes", "commit_edges", "table_edges"):
        alone = sorted(row.id for row in never.rows() if row.kind.name == kind)
        assert alone == sorted(row.id for row in in_the_end.rows() if row.kind.name == kind)
    assert state_of([late, committed]).digest() == in_the_end.digest()
    assert not [row for row in never.rows() if row.kind.name == "job_lineage"]
    assert [row for row in in_the_end.rows() if row.kind.name == "job_lineage"]


def test_what_tells_a_part_of_a_run_erases_nothing_of_the_rest() -> None:
    started = JobStarted(job_type=JobType.BATCH, user="ann", configuration=StringMap({"a": "b"}), **at(0, 1))
    ended = JobStatusChanged(status=JobStatus.FINISHED, **at(1, 2))
    (run,) = rows("runs", started, ended)
    assert (columns(run)["user_name"], columns(run)["status"]) == ("ann", "FINISHED")
    (run,) = rows("runs", ended)
    assert "user_name" not in columns(run), "nobody told how it began"


def test_what_is_named_in_passing_erases_nothing_that_is_known_of_it() -> None:
    started = JobStarted(job_type=JobType.STREAMING, parent_job=JobName(name="app"), scope=RunScope.QUERY, **at(0, 1))
    gap = Gap(reason=GapReason.OTHER, source=Source(dataset=ORDERS, table=NAME, generation="a"), **at(1, 2))
    (job,) = rows("jobs", started, gap)
    assert (columns(job)["job_type"], columns(job)["parent_job"]) == ("STREAMING", "app")
    made = of_table(CreateTable, 0, 3, generation="a", format="ICEBERG", table=Table())
    (generation,) = rows("generations", made, gap)
    assert columns(generation)["format"] == "ICEBERG"


def test_a_heartbeat_that_comes_after_the_end_takes_nothing_of_it_back() -> None:
    beat, closed = Heartbeat(interval=60, **at(0, 1)), Closed(**at(1, 2))
    (producer,) = rows("producers", beat, closed)
    named = columns(producer)
    assert (named["closed_at"], named["sequence"], named["complete"]) == (micros_of(NOON + MINUTE), 2, 1)
    assert named["heartbeat_seconds"] is None
    assert (producer.times.first, producer.times.last) == (micros_of(NOON), micros_of(NOON + MINUTE))


def test_clocks_that_differ_by_a_day_decide_who_was_last_and_the_bus_how_far_ahead_one_may_be() -> None:
    dropped = of_table(DropTable, 24 * 60, 2, generation="a")
    again = of_table(CreateTable, 30, 1, generation="b", table=Table(), producer=Q)
    (by_clock,) = [row for row in state_of([dropped, again]).rows() if row.kind.name == "aliases"]
    assert not by_clock.is_visible, "as its own clock has it, the table was dropped tomorrow"
    appended = micros_of(NOON)
    state = RowSet()
    state.merge(map_event(dropped, appended))
    state.merge(map_event(again, micros_of(again.time)))
    (by_bus,) = [row for row in state.rows() if row.kind.name == "aliases"]
    assert by_bus.is_visible, "it can't have been dropped more than five minutes after the bus had it"


def test_what_is_deleted_twice_is_deleted_up_to_the_later_time() -> None:
    read = Committed(barrier=1, inputs=(Input(dataset=ORDERS, table=NAME, snapshot=3),), **at(3, 3))
    deletions = [
        LineageDeleted(of_job=JOB, scope=LineageScope.DATA, before=NOON + minutes * MINUTE, **at(10, number, Q))
        for number, minutes in enumerate((5, 2), 1)
    ]
    (stone,) = rows("tombstones", read, *deletions)
    assert stone.times.deleted == micros_of(NOON + 5 * MINUTE)
    catalogs = CatalogNames((), (), {})
    (seen,), (commit,), (place,) = (rows(kind, read, *deletions) for kind in ("reads", "commits", "places"))
    assert TombstoneIndex([stone]).hide(deletion_subject(seen, DATA, commit.as_dict, place), catalogs)


def test_a_deletion_never_reaches_into_the_future() -> None:
    """Its own time bounds it, or one with `before` in 2099 would hide all that is ever told."""
    deletion = LineageDeleted(of_job=JOB, scope=LineageScope.ALL, before=NOON + 60 * MINUTE, **at(10, 1, Q))
    (stone,) = rows("tombstones", deletion)
    assert stone.times.deleted == micros_of(NOON + 10 * MINUTE)
