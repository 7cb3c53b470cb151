"""Jobs, runs, histories, names, lateness and users: each story's truth by hand."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import Connection

from headwater.events import (
    AlterTable,
    Closed,
    Committed,
    CreateTable,
    DatasetsUnified,
    DropTable,
    Gap,
    Heartbeat,
    Input,
    JobName,
    JobStarted,
    JobStatusChanged,
    LineageDeleted,
    Output,
    StatementFailed,
    Table,
    TableName,
)
from headwater.events.base import StringMap
from headwater.events.changes import AddColumn, DropColumn, RenameTable, RetypeColumn, SetProperty
from headwater.events.jobs import ErrorDetails, JobStatus, ReadMode, Sink
from headwater.events.tables import Column
from headwater.lineage.questions import LimitReason
from headwater.lineage.questions.generations import aliases, generations
from headwater.lineage.questions.history import ColumnChange, ColumnChangeKind, history, schema_changes
from headwater.lineage.questions.hop_times import HopTimes, TriggerCost
from headwater.lineage.questions.jobs import TableAccess, jobs_of, tables_of
from headwater.lineage.questions.lateness import LateHop, lateness
from headwater.lineage.questions.names import UnknownNameError
from headwater.lineage.questions.runs import runs
from headwater.lineage.questions.traversal import identities
from headwater.lineage.questions.uses import uses
from headwater.testing.examples import CONTEXT
from tests.kit.lineage.scripted_producer import ScriptedProducer, at, dataset, place, store
from tests.kit.stores import on_every_database

MINUTE = timedelta(minutes=1)
MIB = 1024 * 1024


def commit(
    producer: ScriptedProducer, minute: float, source: str | None, target: str, snapshot: int, **more: Any
) -> None:
    inputs = () if source is None else (Input(**place(source), snapshot=1),)
    made_from = tuple(range(len(inputs)))
    output = Output(**place(target), snapshot=snapshot, made_from=made_from)
    barrier = 1_000_000 + int(minute * 1000)
    producer.emit(minute, Committed, barrier=barrier, inputs=inputs, outputs=(output,), **more)


def started(number: int, job: str = "etl", minute: float = 0, **more: Any) -> ScriptedProducer:
    producer = ScriptedProducer(number, job)
    producer.emit(minute, JobStarted, job_type="BATCH", **{"user": "ann", **more})
    producer.emit(minute, JobStatusChanged, status=JobStatus.RUNNING)
    return producer


def named(table: str, **more: Any) -> dict[str, Any]:
    names = place(table)
    return {"context": CONTEXT, "identifier": names.pop("table"), **names, **more}


@on_every_database
class TestJobsAndTables:
    def test_who_reads_and_writes_a_table(self, connection: Connection) -> None:
        one, two = started(1), started(2, minute=5)
        commit(one, 1, "orders", "daily", 1)
        commit(one, 2, "orders", "daily", 2)
        commit(two, 6, "orders", "daily", 3)
        other = started(3, "report")
        commit(other, 7, "daily", "weekly", 1)
        for producer in (one, two, other):
            producer.emit(8, Closed)
        store(connection, one, two, other)
        answer = jobs_of(connection, "lake.sales.daily", now=at(8))
        writer, reader = answer
        assert (writer.job, writer.does, writer.runs, writer.last_run) == ("etl", TableAccess.WRITES, 2, two.run)
        assert (writer.first, writer.last) == (at(1), at(6))
        assert (reader.job, reader.does, reader.runs) == ("report", TableAccess.READS, 1)
        assert not answer.is_partial

    @pytest.mark.slow
    def test_the_tables_of_a_job_and_of_what_its_steps_do(self, connection: Connection) -> None:
        producer = started(1, "app")
        commit(producer, 1, "orders", "daily", 1, job=JobName(name="app.daily"), parent_job=JobName(name="app"))
        store(connection, producer)
        written, read = tables_of(connection, "app", now=at(2))
        assert (written.table, written.does, written.job) == ("lake.sales.daily", TableAccess.WRITES, "app.daily")
        assert (read.table, read.does, read.first) == ("lake.sales.orders", TableAccess.READS, at(1))
        assert len(tables_of(connection, "app.daily", now=at(2))) == 2
        with pytest.raises(UnknownNameError, match=r"no job 'other/app'; one of that name is in the namespace default"):
            tables_of(connection, JobName(namespace="other", name="app"), now=at(2))

    def test_what_was_deleted_is_gone_and_the_answer_says_so(self, connection: Connection) -> None:
        producer = started(1)
        commit(producer, 1, "orders", "daily", 1)
        producer.emit(2, LineageDeleted, scope="TABLES", of_job=JobName(name="etl"), before=at(2))
        store(connection, producer)
        answer = jobs_of(connection, "sales.daily", now=at(3))
        assert len(answer) == 0
        (limit,) = answer.limits
        assert (limit.why, limit.about) == (LimitReason.DELETED, "lake.sales.daily")
        assert "table lineage up to 2026-03-01T12:02:00+00:00" in limit.detail

    def test_a_gap_of_the_application_limits_the_answer(self, connection: Connection) -> None:
        producer = started(1)
        commit(producer, 1, "orders", "daily", 1)
        store(connection, producer)
        assert jobs_of(connection, "sales.daily", now=at(2)).limits == ()
        (limit,) = jobs_of(connection, "sales.daily", now=at(20)).limits
        assert (limit.why, limit.detail) == (LimitReason.GAP, "SILENCE (1)")


@on_every_database
class TestRuns:
    def test_how_they_stand(self, connection: Connection) -> None:
        good, bad, live, dead = (started(n, minute=n, user=f"user {n}") for n in range(1, 5))
        good.emit(10, JobStatusChanged, status=JobStatus.FINISHED, exit_code=0)
        good.emit(10, Closed)
        error = ErrorDetails(type="AnalysisException", message="no such table\nand more")
        bad.emit(11, JobStatusChanged, status=JobStatus.FAILED, error=error)
        live.emit(19, Heartbeat, interval=60)
        store(connection, good, bad, live, dead)
        answer = runs(connection, "etl", now=at(20))
        assert [run.run for run in answer] == [dead.run, live.run, bad.run, good.run]
        gone, alive, failed, finished = answer
        assert (finished.status, finished.ended, finished.duration) == (JobStatus.FINISHED, at(10), 9 * MINUTE)
        assert (finished.alive, finished.exit_code, finished.user) == (False, 0, "user 1")
        assert (failed.status, failed.error) == (JobStatus.FAILED, "AnalysisException: no such table")
        assert (alive.status, alive.alive, alive.heard) == (JobStatus.RUNNING, True, at(19))
        assert (gone.status, gone.alive, gone.heard) == (JobStatus.RUNNING, False, at(4))

    def test_what_a_run_reported_itself_beats_what_others_inferred(self, connection: Connection) -> None:
        producer = started(1)
        lateness = producer.emit(5, JobStatusChanged, status=JobStatus.FINISHED)
        inferred = producer.emit(9, JobStatusChanged, status=JobStatus.KILLED, inferred=True)
        producer.events.remove(lateness)
        store(connection, producer)
        (run,) = runs(connection, "etl", now=at(10))
        assert (run.status, run.inferred) == (JobStatus.KILLED, True)
        store(connection, [lateness, inferred])
        (run,) = runs(connection, "etl", now=at(10))
        assert (run.status, run.inferred, run.ended) == (JobStatus.FINISHED, False, at(5))

    def test_what_failed_in_them(self, connection: Connection) -> None:
        producer = started(1)
        filled = StringMap({"config": "spark.x.max", "table": "`daily`", "value": "?"})
        message = "`daily` is full"
        error = ErrorDetails(type="SparkException", message=message, condition="TABLE_FULL", parameters=filled)
        producer.emit(1, StatementFailed, error=error, statement=7, outputs=(Sink(**place("daily")),))
        producer.emit(2, StatementFailed, error=ErrorDetails(type="KeyError"), batch_id=3)
        store(connection, producer)
        (run,) = runs(connection, run=producer.run, now=at(3))
        one, two = run.failures
        assert (one.at, one.condition, one.statement) == (at(1), "TABLE_FULL", 7)
        assert one.error == "SparkException: `daily` is full (config=spark.x.max)"
        assert one.outputs == ("lake.sales.daily",)
        assert (two.error, two.batch, two.outputs) == ("KeyError", 3, ())

    def test_those_of_a_table_and_of_a_step(self, connection: Connection) -> None:
        one, two = started(1, "app"), started(2, "app")
        commit(one, 1, "orders", "daily", 1, job=JobName(name="app.daily"), parent_job=JobName(name="app"))
        commit(two, 1, "orders", "weekly", 1, job=JobName(name="app.weekly"), parent_job=JobName(name="app"))
        store(connection, one, two)
        assert [run.run for run in runs(connection, table="sales.daily", now=at(2))] == [one.run]
        assert [run.run for run in runs(connection, "app.weekly", now=at(2))] == [two.run]
        assert len(runs(connection, "app", now=at(2))) == 2

    def test_no_more_than_were_asked_for(self, connection: Connection) -> None:
        one, two = started(1), started(2, minute=1)
        store(connection, one, two)
        answer = runs(connection, at_most=1, now=at(2))
        assert [run.run for run in answer] == [two.run]
        assert [limit.why for limit in answer.limits] == [LimitReason.CUT]


@on_every_database
class TestHistory:
    def test_in_words_and_in_the_formats_own_order(self, connection: Connection) -> None:
        producer = ScriptedProducer(1)
        producer.emit(
            0, CreateTable, table=Table(columns=(Column(name="id", type='"long"'),)), **named("t", schema_id=0)
        )
        second = (AddColumn(path=("b",), type='{"type":"array","elementType":"string","containsNull":true}'),)
        producer.emit(3, AlterTable, changes=second, **named("t", schema_id=2))  # by a clock that is ahead
        lateness = ScriptedProducer(2)
        lateness.emit(5, AlterTable, changes=(AddColumn(path=("a", "x"), type='"int"'),), **named("t", schema_id=1))
        lateness.emit(6, AlterTable, changes=(SetProperty(key="k", value="v"),), **named("t", effect="UNKNOWN"))
        store(connection, producer, lateness)
        answer = history(connection, "lake.sales.t", now=at(7))
        assert [each.changes for each in answer] == [
            ("made with (id long)",),
            ("added column a.x int",),
            ("added column b array<string>",),
            ("set k = v",),
        ]
        assert [each.is_known for each in answer] == [True, True, True, False]
        assert LimitReason.UNKNOWN_EFFECT in {limit.why for limit in answer.limits}
        assert [each.schema_id for each in history(connection, "sales.t", since=at(4), until=at(5), now=at(7))] == [1]

    def test_a_schema_that_is_taken_up_again_says_nothing_of_an_order(self, connection: Connection) -> None:
        producer = ScriptedProducer(1)
        for minute, schema in enumerate([0, 1, 0]):
            changes = (SetProperty(key="k", value=str(minute)),)
            producer.emit(minute, AlterTable, changes=changes, **named("t", schema_id=schema))
        store(connection, producer)
        assert [each.schema_id for each in history(connection, "sales.t", now=at(7))] == [0, 1, 0]

    def test_what_changed_between_two_snapshots(self, connection: Connection) -> None:
        producer = ScriptedProducer(1)
        found = [
            {"id": '"int"', "a": '"string"', "b": '"string"'},
            {"id": '"long"', "a": '"string"', "b": '"string"'},
            {"id": '"long"', "a": '"string"', "c": '"date"'},
        ]
        tables = [Table(columns=tuple(Column(name=n, type=kind) for n, kind in each.items())) for each in found]
        producer.emit(0, CreateTable, table=tables[0], **named("t", schema_id=0))
        self.write(producer, 1, snapshot=100, schema_id=0)
        producer.emit(2, AlterTable, changes=(RetypeColumn(path=("id",), type='"long"'),), **altered(tables[1], 1))
        drop = (DropColumn(path=("b",)), AddColumn(path=("c",), type='"date"'))
        producer.emit(3, AlterTable, changes=drop, **altered(tables[2], 2))
        self.write(producer, 4, snapshot=50, schema_id=1)  # its write began before the last change
        self.write(producer, 5, snapshot=70, schema_id=2)
        store(connection, producer)
        assert schema_changes(connection, "sales.t", 100, 50, now=at(6)).rows == (
            ColumnChange("id", ColumnChangeKind.RETYPED, "int", "long"),
        )
        assert schema_changes(connection, "sales.t", 50, 70, now=at(6)).rows == (
            ColumnChange("b", ColumnChangeKind.DROPPED, "string", None),
            ColumnChange("c", ColumnChangeKind.ADDED, None, "date"),
        )
        assert schema_changes(connection, "sales.t", 70, 70, now=at(6)).rows == ()
        with pytest.raises(UnknownNameError, match=r"knows no snapshot '999' of lake\.sales\.t"):
            schema_changes(connection, "sales.t", 100, 999, now=at(6))

    def test_where_every_change_is_a_version(self, connection: Connection) -> None:
        producer = ScriptedProducer(1)
        one, two = (Table(columns=(Column(name=name, type='"int"'),)) for name in ("a", "b"))
        producer.emit(0, CreateTable, table=one, **named("t", produced=0))
        self.write(producer, 1, snapshot=1)
        producer.emit(2, AlterTable, new_table=two, changes=(DropColumn(path=("a",)),), **named("t", produced=2))
        self.write(producer, 3, snapshot=3)
        store(connection, producer)
        did = [(each.column, each.did) for each in schema_changes(connection, "sales.t", 1, 3, now=at(6))]
        assert did == [("a", ColumnChangeKind.DROPPED), ("b", ColumnChangeKind.ADDED)]

    def test_a_change_whose_outcome_was_not_reported_leaves_columns_unknown(self, connection: Connection) -> None:
        producer = ScriptedProducer(1)
        producer.emit(0, CreateTable, table=Table(columns=(Column(name="a", type='"int"'),)), **named("t"))
        self.write(producer, 1, snapshot=1)
        producer.emit(2, AlterTable, changes=(DropColumn(path=("a",)),), **named("t"))
        self.write(producer, 3, snapshot=2)
        store(connection, producer)
        answer = schema_changes(connection, "sales.t", 1, 2, now=at(6))
        assert (answer.rows, [limit.why for limit in answer.limits]) == ((), [LimitReason.UNKNOWN_COLUMNS])

    @staticmethod
    def write(producer: ScriptedProducer, minute: int, **output: int) -> None:
        producer.emit(minute, Committed, barrier=minute, outputs=(Output(**place("t", **output)),))


def altered(table: Table, schema: int) -> dict[str, Any]:
    return {"new_table": table, **named("t", schema_id=schema)}


@on_every_database
class TestNamesAndGenerations:
    def test_over_a_rename_that_moves_the_data(self, connection: Connection) -> None:
        producer = ScriptedProducer(1)
        new = TableName(catalog="lake", database="sales", table="t2")
        producer.emit(0, CreateTable, table=Table(), **named("t"))
        renamed = (RenameTable(table=new, dataset=dataset("t2")),)
        producer.emit(1, AlterTable, changes=renamed, **named("t"))
        store(connection, producer)
        old, fresh = aliases(connection, "lake.sales.t2", now=at(3))
        assert (old.name, old.place, old.first, old.ended) == ("lake.sales.t", "s3://lake/w/t", at(0), at(1))
        assert (fresh.name, fresh.place, fresh.first, fresh.ended) == ("lake.sales.t2", "s3://lake/w/t2", at(1), None)

    def test_a_table_that_was_made_again(self, connection: Connection) -> None:
        producer = ScriptedProducer(1)
        producer.emit(0, CreateTable, table=Table(), **named("t"))
        producer.emit(1, DropTable, **named("t"))
        producer.emit(2, CreateTable, table=Table(), **{**named("t"), "generation": "2", "format": "ICEBERG"})
        store(connection, producer)
        one, two = generations(connection, "lake.sales.t", now=at(3))
        assert (one.generation, one.first, one.ended) == ("1", at(0), at(1))
        assert (two.generation, two.format, two.ended) == ("2", "ICEBERG", None)
        (name,) = aliases(connection, "lake.sales.t", now=at(3))
        assert (name.first, name.ended) == (at(0), None)

    def test_of_two_that_were_found_to_be_one(self, connection: Connection) -> None:
        producer = started(1)
        commit(producer, 1, "orders", "daily", 1)
        store(connection, producer)
        assert len(jobs_of(connection, "sales.orders", now=at(2))) == 1
        unified = ScriptedProducer(9)
        unified.emit(1, DatasetsUnified, dataset=dataset("orders"), others=(dataset("daily"),))
        store(connection, unified)
        assert [each.does for each in jobs_of(connection, "sales.orders", now=at(2))] == [
            TableAccess.WRITES,
            TableAccess.READS,
        ]


@on_every_database
class TestLate:
    def test_the_oldest_hop_is_marked(self, connection: Connection) -> None:
        a, b, c = started(1, "load"), started(2, "daily"), started(3, "weekly")
        for minute in (0, 10, 20):
            commit(a, minute, None, "orders", 1 + minute)
        commit(b, 55, "orders", "daily", 1)
        commit(b, 56, "rates", "daily", 2)
        commit(c, 58, "daily", "weekly", 7)
        a.emit(21, JobStatusChanged, status=JobStatus.FAILED, error=ErrorDetails(type="IOError", message="gone"))
        for producer in (b, c):
            producer.emit(59, Heartbeat, interval=60)
        store(connection, a, b, c)
        answer = lateness(connection, "lake.sales.weekly", now=at(60))
        assert [(hop.table.rpartition(".")[2], hop.depth) for hop in answer] == [
            ("weekly", 0),
            ("daily", 1),
            ("orders", 2),
            ("rates", 2),
        ]
        weekly, daily, orders, rates = answer
        assert (weekly.job, weekly.snapshot, weekly.age, weekly.status) == ("weekly", 7, 2 * MINUTE, JobStatus.RUNNING)
        assert (daily.snapshot, daily.barrier, daily.alive, daily.feeds) == (2, 1_056_000, True, ("lake.sales.weekly",))
        assert (orders.age, orders.usual, orders.is_overdue) == (40 * MINUTE, 10 * MINUTE, True)
        assert (orders.status, orders.error) == (JobStatus.FAILED, "IOError: gone")
        assert (rates.job, rates.age) == (None, None)
        assert [hop.is_oldest for hop in answer] == [False, False, True, False]
        assert (LimitReason.UNKNOWN_WRITER, "lake.sales.rates") in {(limit.why, limit.about) for limit in answer.limits}

    def test_where_the_time_of_each_hop_went(self, connection: Connection) -> None:
        """It finds a span that is measured from the wrong event: `daily` reads orders@7 and @8, which were there 12:10
        and 12:20, with a trigger every ten minutes; and spans that are told though one of their ends isn't known."""
        load, roll = started(1, "load"), started(2, "daily")

        def write(producer: ScriptedProducer, end: float, **fields: Any) -> None:
            barrier = len(producer.events)
            producer.emit(end + 0.25, Committed, barrier=barrier, ended=at(end), **fields)

        for snapshot, end in ((7, 10), (8, 20), (9, 21)):
            made = Output(**place("orders"), snapshot=snapshot, made_from=())
            write(load, end, started=at(end - 3), inputs=(), outputs=(made,))
        for snapshot, end in ((7, 12), (8, 22), (8, 32)):
            read = Input(**place("orders"), snapshot=snapshot, mode=ReadMode.STATE)
            counts: dict[str, Any] = {"files": 4, "bytes": 4 * MIB, "snapshot_time": at(end - 0.5)}
            made = Output(**place("daily"), snapshot=end, made_from=(0,), **counts)
            write(roll, end, started=at(end - 1.5), inputs=(read,), outputs=(made,))
        store(connection, load, roll)
        daily, orders = lateness(connection, "sales.daily", now=at(60))
        assert daily.times == HopTimes(
            source=timedelta(0), trigger=10.5 * MINUTE, run=MINUTE, commit=MINUTE / 2, statement=1.5 * MINUTE
        )
        assert daily.cost == TriggerCost(144, files_per_day=576, file_bytes=MIB, recommended=160 * MINUTE)
        assert orders.times == HopTimes(statement=3 * MINUTE)
        assert orders.cost == TriggerCost(1440 / 5.5)

        def next_commit(end: float, *reads: Input) -> LateHop:
            made = Output(**place("daily"), snapshot=int(end), made_from=tuple(range(len(reads))))
            write(roll, end, started=at(end - 1), inputs=reads, outputs=(made,))
            store(connection, load, roll)
            return next(iter(lateness(connection, "sales.daily", now=at(60))))

        daily = next_commit(35, Input(**place("orders"), snapshot=9, mode=ReadMode.STATE))
        assert daily.times == HopTimes(source=timedelta(0), trigger=13 * MINUTE, statement=MINUTE)
        assert daily.cost is not None
        assert (daily.cost.files_per_day, daily.cost.recommended) == (None, None)
        write(load, 38, inputs=(), outputs=(Output(**place("orders"), snapshot=10, made_from=()),))
        read = Input(**place("orders"), snapshot=10, mode=ReadMode.STATE)
        daily = next_commit(40, read)
        assert (daily.times.source, daily.times.trigger) == (3 * MINUTE, MINUTE)
        daily = next_commit(45, read, Input(**place("rates"), snapshot=1, mode=ReadMode.STATE))
        assert (daily.times.source, daily.times.trigger) == (None, None), "the newer of two, of which one isn't known"
        load.emit(46, LineageDeleted, scope="DATA", of_job=JobName(name="load"), before=at(46))
        daily = next_commit(50, read)
        assert (daily.times.source, daily.times.trigger) == (None, None), "what was deleted isn't shown"

    def test_the_commit_before_is_one_of_the_run_before(self, connection: Connection) -> None:
        """It finds a job that is started for each commit, whose waits for a source are counted from nothing, or from
        when a driver reported the commit."""
        runs = [started(1, "load"), started(2, "daily", minute=9), started(3, "daily", minute=39)]
        ends: dict[int, tuple[float, Output, tuple[Input, ...]]] = {
            0: (30, Output(**place("orders"), snapshot=1, made_from=()), ()),
            1: (11, Output(**place("daily"), snapshot=1, made_from=()), ()),
            2: (41, Output(**place("daily"), snapshot=2, made_from=(0,)), (Input(**place("orders"), snapshot=1),)),
        }
        for number, (end, made, read) in ends.items():
            runs[number].emit(
                end + 5, Committed, barrier=number, inputs=read, outputs=(made,), started=at(end - 1), ended=at(end)
            )
        store(connection, *runs)
        (daily, _) = lateness(connection, "sales.daily", now=at(60))
        assert (daily.times.source, daily.times.trigger) == (19 * MINUTE, 10 * MINUTE)

    def test_an_attempt_that_failed_is_the_answer(self, connection: Connection) -> None:
        """A statement that names the table; a run of its application that ended before; and one that is no attempt: a
        job of another application."""
        good, bad = started(1, "report"), started(2, "report", minute=10)
        steps: dict[str, Any] = {"parent_job": JobName(name="report")}
        for table in ("top", "sums"):
            commit(good, 1, "orders", table, 1, job=JobName(name=f"report.{table}"), **steps)
        commit(bad, 11, "orders", "sums", 2, job=JobName(name="report.sums"), **steps)
        error = ErrorDetails(type="AnalysisException", message="no column category\nat line 3")
        bad.emit(12, JobStatusChanged, status=JobStatus.FAILED, error=error)
        other, hand = started(3, "other", minute=20), started(4, "repair", minute=30)
        other.emit(21, JobStatusChanged, status=JobStatus.FAILED, error=error)
        store(connection, good, bad, other)
        (top, *_), (sums, *_) = (lateness(connection, f"sales.{each}", now=at(60)) for each in ("top", "sums"))
        assert (top.job, top.at, top.age) == ("report.top", at(1), 59 * MINUTE)
        assert (top.status, top.error, top.attempted) == (
            JobStatus.FAILED,
            "AnalysisException: no column category",
            at(12),
        )
        assert (top.run, sums.attempted) == (bad.run, None)
        hand.emit(
            31, StatementFailed, error=ErrorDetails(type="IOError", message="full"), outputs=(Sink(**place("top")),)
        )
        hand.emit(32, JobStatusChanged, status=JobStatus.FINISHED)
        store(connection, hand)
        (top, *_) = lateness(connection, "sales.top", now=at(60))
        assert (top.status, top.error, top.attempted) == (JobStatus.FAILED, "IOError: full", at(31))

    def test_tables_that_feed_each_other(self, connection: Connection) -> None:
        producer = started(1)
        commit(producer, 1, "a", "b", 1)
        commit(producer, 2, "b", "a", 1)
        store(connection, producer)
        assert [(hop.table, hop.depth) for hop in lateness(connection, "sales.a", now=at(3))] == [
            ("lake.sales.a", 0),
            ("lake.sales.b", 1),
        ]

    def test_no_further_than_was_asked_for(self, connection: Connection) -> None:
        producer = started(1)
        commit(producer, 1, "a", "b", 1)
        commit(producer, 2, "b", "c", 1)
        store(connection, producer)
        answer = lateness(connection, "sales.c", depth=1, now=at(3))
        assert ([hop.depth for hop in answer], [limit.why for limit in answer.limits]) == (
            [0, 1],
            [LimitReason.UNKNOWN_WRITER, LimitReason.CUT][1:],
        )

    def test_a_table_that_is_read_under_an_older_name(self, connection: Connection) -> None:
        producer = started(1)
        commit(producer, 1, "x", "old", 1)
        commit(producer, 2, "new", "b", 1)
        producer.emit(2, DatasetsUnified, dataset=dataset("new"), others=(dataset("old"),), run=None)
        store(connection, producer)
        hops = lateness(connection, "sales.b", now=at(3))
        assert [(hop.depth, hop.job) for hop in hops] == [(0, "etl"), (1, "etl"), (2, None)]

    def test_what_was_only_read_beside_it_isnt_what_it_is_made_from(self, connection: Connection) -> None:
        producer = started(1)
        inputs = (Input(**place("orders"), snapshot=1), Input(**place("clicks"), snapshot=1))
        producer.emit(1, Committed, barrier=1, inputs=inputs, outputs=(Output(**place("daily"), snapshot=1),))
        store(connection, producer)
        answer = lateness(connection, "sales.daily", now=at(3))
        assert [hop.table for hop in answer] == ["lake.sales.daily"]
        assert LimitReason.UNKNOWN_SOURCES in {limit.why for limit in answer.limits}

    def test_deleted_data_lineage_isnt_shown(self, connection: Connection) -> None:
        producer = started(1)
        commit(producer, 1, "orders", "daily", 7)
        producer.emit(2, LineageDeleted, scope="DATA", of_job=JobName(name="etl"), before=at(2))
        store(connection, producer)
        hop = next(iter(lateness(connection, "sales.daily", now=at(3))))
        assert (hop.job, hop.barrier, hop.snapshot, hop.at) == ("etl", None, None, at(1))


@pytest.mark.slow
class TestPlacesThatAreUsedAgain:
    """`daily` is made from orders by `old`, renamed to `archive`, and made again from clicks by `new`."""

    @pytest.fixture(params=[500, 0], ids=["few links", "many links"])
    def again(
        self, connection: Connection, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
    ) -> Connection:
        """Few links are loaded at once; of many those of a table are looked up."""
        monkeypatch.setattr(identities, "_FEW", request.param)
        old, new, reader = started(1, "old"), started(2, "new", minute=6), started(3, "report", minute=8)
        old.emit(0.5, CreateTable, table=Table(), **named("daily"))
        commit(old, 1, "orders", "daily", 1)
        commit(reader, 2, "daily", "weekly", 1)
        renamed = (RenameTable(table=place("archive")["table"], dataset=dataset("archive")),)
        old.emit(5, AlterTable, changes=renamed, **named("daily"))
        new.emit(6, CreateTable, table=Table(), **{**named("daily"), "generation": "2"})
        commit(new, 7, "clicks", "daily", 1)
        commit(reader, 8, "daily", "monthly", 1)
        store(connection, old, new, reader)
        return connection

    def test_what_it_is_late_for(self, again: Connection) -> None:
        hops = {name: lateness(again, f"lake.sales.{name}", now=at(9)) for name in ("daily", "archive")}
        assert [(hop.table, hop.job) for hop in hops["daily"]] == [
            ("lake.sales.daily", "new"),
            ("lake.sales.clicks", None),
        ]
        assert [(hop.table, hop.job) for hop in hops["archive"]] == [
            ("lake.sales.archive", "old"),
            ("lake.sales.orders", None),
        ]

    def test_who_uses_what(self, again: Connection) -> None:
        found = {name: [(use.job, use.downstream) for use in uses(again, name, now=at(9))] for name in TABLES_OF_AGAIN}
        assert found == {
            "lake.sales.orders": [("old", 2)],  # archive, weekly
            "lake.sales.clicks": [("new", 2)],  # daily, monthly
            "lake.sales.daily": [("report", 1)],
            "lake.sales.archive": [("report", 1)],
        }

    def test_what_else_is_asked(self, again: Connection) -> None:
        """Each of these questions had resolved identities in a way of its own."""
        jobs = {name: {each.job for each in jobs_of(again, name, now=at(9))} for name in TABLES_OF_AGAIN[2:]}
        assert jobs == {"lake.sales.daily": {"new", "report"}, "lake.sales.archive": {"old", "report"}}
        kinds = {name: [each.kind for each in history(again, name, now=at(9))] for name in TABLES_OF_AGAIN[2:]}
        assert kinds == {"lake.sales.daily": ["CreateTable"], "lake.sales.archive": ["CreateTable", "AlterTable"]}
        ran = {name: {each.job for each in runs(again, table=name, now=at(9))} for name in TABLES_OF_AGAIN[2:]}
        assert ran == {"lake.sales.daily": {"new", "report"}, "lake.sales.archive": {"old", "report"}}


TABLES_OF_AGAIN = ("lake.sales.orders", "lake.sales.clicks", "lake.sales.daily", "lake.sales.archive")


@on_every_database
class TestUses:
    def test_jobs_users_and_what_is_behind_them(self, connection: Connection) -> None:
        one, two = started(1, "daily", user="ann"), started(2, "daily", user="bob")
        commit(one, 1, "orders", "daily", 1)
        commit(two, 2, "orders", "daily", 2)
        three = started(3, "report", user="eve")
        commit(three, 3, "daily", "weekly", 1)
        commit(three, 4, "orders", "dashboard", 1)
        commit(three, 5, "weekly", "yearly", 1)
        store(connection, one, two, three)
        report, daily = uses(connection, "sales.orders", now=at(6))
        assert (daily.job, daily.users, daily.runs, daily.last, daily.last_run) == (
            "daily",
            ("ann", "bob"),
            2,
            at(2),
            two.run,
        )
        assert (daily.writes, daily.downstream) == (1, 3)
        assert (report.job, report.users, report.writes, report.downstream) == ("report", ("eve",), 1, 1)

    def test_nobody(self, connection: Connection) -> None:
        producer = started(1)
        commit(producer, 1, None, "orders", 1)
        store(connection, producer)
        assert len(uses(connection, "sales.orders", now=at(6))) == 0


def test_of_an_untold_run_nothing_is_said(connection: Connection) -> None:
    producer = ScriptedProducer(1)
    producer.emit(0, Gap, reason="OTHER")
    store(connection, producer)
    with pytest.raises(UnknownNameError, match="knows no run '00000000-0000-0000-0000-00000000004d'"):
        runs(connection, run=UUID(int=77), now=at(1))
