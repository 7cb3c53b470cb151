"""What holds in the end, by hand: reported twice, late, by clocks that differ, taken away and made again."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import UUID

from headwater.events import (
    AlterTable,
    Committed,
    CreateTable,
    DatasetsUnified,
    DropTable,
    Event,
    Input,
    JobLineage,
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
from headwater.events.jobs import JobStatus, LineageRetention
from headwater.lineage.mapping import map_event
from headwater.lineage.rows import RowSet
from headwater.testing.examples import EXAMPLES
from tests.kit.lineage.mapped_rows import DAILY, JOB, MINUTE, NAME, NOON, ORDERS, RUN, P, Q, at, columns, of_table, rows


def test_a_table_that_was_dropped_is_gone_and_one_made_after_that_is_there() -> None:
    made, dropped = (
        of_table(CreateTable, 0, 1, generation="a", table=Table()),
        of_table(DropTable, 1, 2, generation="a"),
    )
    again = of_table(CreateTable, 2, 3, generation="b", table=Table())
    assert [row.is_visible for row in rows("aliases", made, dropped)] == [False]
    assert [row.is_visible for row in rows("aliases", made, dropped, again)] == [True]
    generations = {columns(row)["generation"]: row.is_visible for row in rows("generations", made, dropped, again)}
    assert generations == {"a": False, "b": True}


def test_what_is_reported_late_of_a_table_that_is_gone_does_not_bring_it_back() -> None:
    dropped = of_table(DropTable, 5, 2, generation="a")
    late = Committed(barrier=1, inputs=(Input(dataset=ORDERS, table=NAME, generation="a", snapshot=3),), **at(1, 1, Q))
    assert [row.is_visible for row in rows("aliases", dropped, late)] == [False]
    assert [row.is_visible for row in rows("reads", dropped, late)] == [True], "it was read all the same"


def test_a_drop_that_perhaps_was_none_changes_nothing() -> None:
    made = of_table(CreateTable, 0, 1, table=Table())
    dropped = of_table(DropTable, 1, 2, effect="UNKNOWN", ignore_if_not_exists=True)
    assert [row.is_visible for row in rows("aliases", made, dropped)] == [True]
    assert len(rows("modifications", made, dropped)) == 2, "it is kept, and mentioned"


def test_a_rename_that_moves_the_data_links_two_identities() -> None:
    new = TableName(catalog="lake", database="sales", table="orders_2")
    made = of_table(CreateTable, 0, 1, generation="a", table=Table())
    renamed = of_table(AlterTable, 1, 2, generation="a", changes=(RenameTable(table=new, dataset=DAILY),))
    names = {columns(row)["table_name"]: row.is_visible for row in rows("aliases", made, renamed)}
    assert names == {"orders": False, "orders_2": True}
    (link,) = rows("dataset_links", made, renamed)
    assert columns(link)["reason"] == "RENAMED"


def status(minutes: float, sequence: int, word: JobStatus, producer: UUID = P, **more: Any) -> JobStatusChanged:
    return JobStatusChanged(status=word, **at(minutes, sequence, producer), **more)


def status_of(*reported: Event) -> Any:
    (row,) = rows("runs", *reported)
    return columns(row)["status"]


def test_a_status_that_was_reported_beats_one_that_was_inferred_whenever_they_come() -> None:
    began, ended = status(0, 1, JobStatus.RUNNING), status(1, 2, JobStatus.FINISHED)
    inferred = status(9, 3, JobStatus.KILLED, Q, inferred=True)
    assert status_of(began) == "RUNNING"
    assert status_of(began, inferred) == "KILLED"
    assert status_of(began, inferred, ended) == "FINISHED"
    assert status_of(ended, status(5, 4, JobStatus.RUNNING, Q)) == "FINISHED", "a late RUNNING ends nothing"


def test_a_clock_in_2099_does_not_win_for_ever() -> None:
    wrong = status(0, 1, JobStatus.FAILED, Q).model_copy(
        update={"time": datetime.fromisoformat("2099-01-01T00:00+00:00")}
    )
    right = status(10, 1, JobStatus.FINISHED)
    state = RowSet()
    for event in (wrong, right):
        state.merge(map_event(event, micros_of(NOON) if event is wrong else micros_of(NOON + 10 * MINUTE)))
    (row,) = state.rows(next(row.kind for row in state.rows() if row.kind.name == "runs"))
    assert columns(row)["status"] == "FINISHED"


def commit(*inputs: Input, made_from: tuple[int, ...] | None, sequence: int = 1) -> Committed:
    output = Output(dataset=DAILY, snapshot=9, made_from=made_from)
    return Committed(barrier=5, inputs=inputs, outputs=(output,), **at(0, sequence))


def test_edges_are_told_where_the_commit_alone_does_not_tell_them() -> None:
    two = (Input(dataset=ORDERS, snapshot=1), Input(dataset=DAILY, snapshot=8))
    for made_from, word, edges in (((0, 1), "ALL", 0), ((1,), "SOME", 1), ((), "SOME", 0), (None, "UNKNOWN", 0)):
        reported = commit(*two, made_from=made_from)
        (write,) = rows("writes", reported)
        (place,) = (row for row in rows("places", reported) if row.id == columns(write)["place_id"])
        assert (columns(place)["made_from"], len(rows("commit_edges", reported))) == (word, edges)


def test_a_micro_batch_that_is_reported_again_is_one_barrier() -> None:
    incarnation = UUID(int=99)
    first = commit(made_from=()).model_copy(update={"incarnation": incarnation})
    again = first.model_copy(update=at(3, 1, Q))
    (row,) = rows("commits", first, again)
    assert (row.times.first, row.times.last) == (micros_of(NOON), micros_of(NOON + 3 * MINUTE))
    assert len(rows("writes", first, again)) == 1


def test_deleted_lineage_stays_deleted_for_what_comes_late() -> None:
    deleted = LineageDeleted(scope=LineageScope.TABLES, of_job=JOB, before=NOON + MINUTE, **at(5, 1, Q))
    (tombstone,) = rows("tombstones", deleted, commit(made_from=()))
    assert tombstone.times.deleted == micros_of(NOON + MINUTE)
    assert columns(tombstone)["job"] == "etl"


def test_the_end_of_a_run_takes_the_lineage_that_its_policy_says() -> None:
    for policy, scopes in (
        (LineageRetention.KEEP, []),
        (LineageRetention.DELETE_TABLE, ["TABLES"]),
        (LineageRetention.DELETE_ALL, ["DATA", "TABLES"]),
    ):
        reported = status(1, 1, JobStatus.FINISHED, on_job_end=policy)
        found = [columns(row) for row in rows("tombstones", reported)]
        assert sorted(each["scope"] for each in found) == scopes
        assert all(each["run"] == RUN.bytes and each["job"] is None for each in found), "only what this run reported"


def test_the_shape_of_a_write_that_is_reported_again_is_no_news() -> None:
    (lineage,) = [event for event in EXAMPLES if isinstance(event, JobLineage)]
    again = lineage.model_copy(update=at(60, 50, Q))
    assert len(rows("job_lineage", lineage, again)) == 1
    assert len(rows("job_lineage_tables", lineage, again)) == len(lineage.inputs) + len(lineage.outputs)
    outputs = tuple(each.model_copy(update={"options": StringMap({"limit": "2"})}) for each in lineage.outputs)
    other = again.model_copy(update={"outputs": outputs})
    assert len(rows("job_lineage", lineage, other)) == 2, "another variant of one fingerprint is kept beside it"


def test_datasets_that_were_found_to_be_one_are_linked() -> None:
    reported = DatasetsUnified(dataset=ORDERS, others=(DAILY, ORDERS), **at(0, 1))
    assert len(rows("dataset_links", reported)) == 1
    assert len(rows("datasets", reported)) == 2


def test_holes_can_be_found_by_what_arrived() -> None:
    reported = [status(number, number, JobStatus.RUNNING) for number in (1, 2, 63, 64)]
    blocks = {columns(row)["block"]: row.bits for row in rows("arrivals", *reported)}
    assert blocks == {0: 1 | 2 | 1 << 62, 1: 1}
