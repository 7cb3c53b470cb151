"""What a plan of a correction says, in stories whose answers were found by hand."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import Connection

from headwater.errors import ConfigurationError
from headwater.events import DropTable, Format, Gap, Input, JobStarted, JobStatusChanged, Output
from headwater.events.jobs import (
    CommitEvidence,
    CommitKind,
    Committed,
    JobStatus,
    OverwriteScope,
    ReadMode,
    StreamDetails,
)
from headwater.events.names import JobName
from headwater.lineage.questions.answers import LimitReason
from headwater.testing.examples import CONTEXT
from headwater.versions.correction import (
    CorrectionMode,
    CorrectionPlan,
    JobKind,
    MirrorKind,
    PlannedTable,
    RerunCommand,
    RerunCommands,
    TableVerdict,
    plan_correction,
)
from tests.kit.lineage.scripted_producer import at, store
from tests.kit.lineage.stories import StoryProducer
from tests.kit.stores import on_every_database
from tests.kit.versions.corrections import order_warehouse

ALL, PART, NOTHING = OverwriteScope.ALL, OverwriteScope.PART, OverwriteScope.NOTHING
INCREMENTAL = CorrectionMode.INCREMENTAL


def planned(connection: Connection, story: StoryProducer, source: str = "orders@4", **more: Any) -> CorrectionPlan:
    store(connection, story)
    return plan_correction(connection, source, now=at(story.minute), **more)


def short(name: str) -> str:
    return name.removeprefix("lake.db.")


def wrong(plan: CorrectionPlan) -> dict[str, tuple[int, ...]]:
    return {short(table.table): table.snapshots for table in plan.tables}


def table(plan: CorrectionPlan, name: str) -> PlannedTable:
    return next(each for each in plan.tables if short(each.table) == name)


def limits(plan: CorrectionPlan) -> set[tuple[LimitReason, str]]:
    return {(limit.why, short(limit.about)) for limit in plan.limits}


@on_every_database
def test_everything_downstream_is_found_and_ordered(connection: Connection) -> None:
    plan = planned(connection, order_warehouse())
    assert list(wrong(plan).items()) == [("orders", (4, 5)), ("details", (2, 3)), ("revenue", (2,)), ("top10", (1,))]
    assert [job.job for job in plan.jobs] == ["details", "revenue", "top10"]
    assert [(job.commits, short(job.writes[0])) for job in plan.jobs] == [(2, "details"), (1, "revenue"), (1, "top10")]
    assert plan.jobs[0].reads == ("lake.db.orders", "lake.db.products")
    assert [each.last_right for each in plan.tables] == [3, 1, 1, None]
    assert {each.mirror for each in plan.tables} == {MirrorKind.CLONE}
    assert (plan.limits, plan.uncorrectable, plan.is_whole) == ((), (), False)


def test_mirrors_begin_empty_or_at_the_last_right_snapshot(connection: Connection) -> None:
    """Of a table that batch jobs only add to, what was added before is right, in full, too."""
    story = order_warehouse()
    assert [each.starts_at for each in planned(connection, story).tables] == [4, 1, None, None]
    plan = plan_correction(connection, "orders@4", mode=INCREMENTAL)
    assert [each.starts_at for each in plan.tables] == [4, 1, 1, None]


def test_only_asks_for_a_table_and_what_is_between(connection: Connection) -> None:
    plan = planned(connection, order_warehouse(), only=["revenue"])
    assert list(wrong(plan)) == ["orders", "details", "revenue"]
    assert (plan.left_out, [job.job for job in plan.jobs]) == (("lake.db.top10",), ["details", "revenue"])
    with pytest.raises(ConfigurationError, match=r"products: nothing wrong is known of it.*lake.db.top10"):
        plan_correction(connection, "orders@4", only=["products"])


def test_a_table_that_was_overwritten_from_right_input_is_right(connection: Connection) -> None:
    """And what was made from it while it was wrong still is wrong."""
    story = order_warehouse()
    story.commit("report@1", reads=["revenue@2"], replaced=ALL, job="report")
    story.commit("revenue@3", reads=["products@1"], replaced=ALL, job="revenue")
    plan = planned(connection, story)
    assert table(plan, "revenue").verdict is TableVerdict.RIGHT
    assert (table(plan, "report").verdict, table(plan, "report").is_corrected) == (TableVerdict.WRONG, True)
    assert [short(each.table) for each in plan.already_right] == ["revenue"]
    assert [job.job for job in plan.needed_jobs] == ["details", "top10", "report"]


def test_a_partial_overwrite_makes_no_table_right(connection: Connection) -> None:
    story = order_warehouse()
    story.commit("revenue@3", reads=["products@1"], replaced=PART, kind=CommitKind.OVERWRITE, job="revenue")
    assert table(planned(connection, story), "revenue").snapshots == (2, 3)


@pytest.mark.parametrize(("opaque", "verdict"), [("an RDD", TableVerdict.UNKNOWN), (None, TableVerdict.RIGHT)])
def test_a_table_is_not_called_right_where_its_inputs_are_not_shown(
    connection: Connection, opaque: str | None, verdict: TableVerdict
) -> None:
    story = order_warehouse()
    story.commit("revenue@3", reads=["products@1"], opaque=opaque, replaced=ALL, job="revenue")
    plan = planned(connection, story)
    assert table(plan, "revenue").verdict is verdict
    assert bool(table(plan, "revenue").problems) is (opaque is not None)


def test_a_rollback_makes_a_table_right(connection: Connection) -> None:
    story = StoryProducer()
    story.format = Format.ICEBERG
    story.commit("orders@4", parent=None)
    story.commit("details@70", reads=["products@1"], parent=None)
    story.commit("details@50", reads=["orders@4"], parent=70)
    story.commit("details@70", kind=CommitKind.ROLLBACK, parent=50)
    plan = planned(connection, story)
    assert (table(plan, "details").verdict, table(plan, "details").newest) == (TableVerdict.RIGHT, 70)


def test_who_reads_only_right_changes_is_right(connection: Connection) -> None:
    """A stream that began behind the wrong snapshot has nothing of it; one that read a state has."""
    story = order_warehouse()
    story.commit("late@1", reads=["orders@4..5"], job="late")
    story.commit("all@1", reads=["orders@5"], job="all")
    assert wrong(planned(connection, story)).keys() == {"orders", "details", "revenue", "top10", "all"}


@pytest.mark.parametrize(("kind", "is_wrong"), [(CommitKind.MERGE, True), (CommitKind.COMPACT, False)])
def test_a_commit_that_rewrites_wrong_rows_passes_them_on(
    connection: Connection, kind: CommitKind, is_wrong: bool
) -> None:
    story = order_warehouse()
    story.commit("orders@6", kind=kind, replaced=PART if is_wrong else NOTHING, job="dedupe")
    story.commit("late@1", reads=["orders@5..6"], job="late")
    plan = planned(connection, story)
    assert ("late" in wrong(plan)) is is_wrong
    assert [job.job for job in plan.jobs if job.job == "dedupe"] == ["dedupe"] * is_wrong


def test_all_outputs_of_a_commit_are_told_apart(connection: Connection) -> None:
    """One output is made from what is wrong, one isn't, and of one nobody knows."""
    story = order_warehouse()
    both = ["orders@4", "products@1"]
    story.commit("x@1", "y@1", "z@1", reads=both, made_from=[(0,), (1,), None], job="split")
    plan = planned(connection, story)
    assert wrong(plan)["x"] == (1,)
    assert not {"y", "z"} & wrong(plan).keys()
    assert (LimitReason.UNKNOWN_SOURCES, "z@1") in limits(plan)
    split = next(job for job in plan.jobs if job.job == "split")
    assert split.notes == (
        "it also writes lake.db.y, which isn't known to be wrong",
        "it also writes lake.db.z, which isn't known to be wrong",
    )


def test_what_the_wrong_commit_wrote_beside_is_named(connection: Connection) -> None:
    story = StoryProducer()
    story.commit("orders@4", "audit@9")
    assert limits(planned(connection, story)) == {(LimitReason.UNKNOWN_EFFECT, "audit@9")}


def test_a_cycle_has_an_order(connection: Connection) -> None:
    """a is made from b, and b from a; c is made from both, and each table stands once."""
    story = StoryProducer()
    story.commit("orders@4", parent=None)
    story.commit("a@1", reads=["orders@4"], job="a")
    story.commit("b@1", reads=["a@1"], job="b")
    story.commit("a@2", reads=["b@1"], job="a")
    story.commit("c@1", reads=["b@1"], job="c")
    story.commit("self@1", reads=["c@1"], job="self")
    story.commit("self@2", reads=["self@1"], job="self")
    plan = planned(connection, story)
    assert list(wrong(plan)) == ["orders", "a", "b", "c", "self"]
    assert [short(each.table) for each in plan.tables if each.in_cycle] == ["a", "b", "self"]
    assert plan.uncorrectable == ()


@pytest.mark.parametrize("format_", [Format.PARQUET, Format.JDBC, Format.KAFKA])
def test_a_sink_without_snapshots_cannot_be_corrected(connection: Connection, format_: Format) -> None:
    """And what is made from it may be wrong, which nobody can tell."""
    story = order_warehouse()
    story.format = format_
    story.commit("export", reads=[], also=[], job="none")
    sink = Output(**story.where({"table": "export", "branch": None}), made_from=(0,))
    story.format = Format.DELTA
    read = story.source("details@2", {})
    story.emit(90, Committed, barrier=90, inputs=(read,), outputs=(sink,), job=JobName(name="export"))
    story.commit("behind@1", reads=["export"], minute=91)
    plan = planned(connection, story)
    [export] = plan.uncorrectable
    assert (short(export.table), export.snapshots) == ("export", ())
    assert f"{format_.value} has no snapshots" in export.problems[0]
    assert (LimitReason.UNKNOWN_SNAPSHOT, "behind") in limits(plan)


def test_a_format_without_branches_cannot_be_corrected_nor_what_is_behind(connection: Connection) -> None:
    story = order_warehouse()
    story.format = Format.HUDI
    story.commit("hudi@7", reads=[], parent=None, job="none")
    story.emit(
        90,
        Committed,
        barrier=90,
        inputs=(order_warehouse().source("details@2", {}),),
        outputs=(Output(**story.where({"table": "hudi", "branch": None}), snapshot=8, parent=7, made_from=(0,)),),
        job=JobName(name="hudi"),
    )
    story.commit("behind@1", reads=["hudi@8"], formats={}, minute=91, job="behind")
    plan = planned(connection, story)
    assert "tables of HUDI have no branches or clones" in table(plan, "hudi").problems[0]
    assert table(plan, "behind").is_uncorrectable
    assert not {job.job for job in plan.needed_jobs} & {"hudi", "behind"}


def test_an_opaque_input_cannot_be_read_again(connection: Connection) -> None:
    story = order_warehouse()
    story.commit("mix@1", reads=["orders@4"], opaque="an RDD of a socket", job="mix")
    story.commit("behind@1", reads=["mix@1"], job="behind")
    plan = planned(connection, story)
    assert table(plan, "mix").problems == (
        "mix can't be run again: it read what Spark doesn't show: an RDD of a socket",
    )
    assert table(plan, "behind").problems == ("it is made from lake.db.mix, which can't be corrected",)


def test_a_later_commit_may_have_read_anything(connection: Connection) -> None:
    """What Spark doesn't show may be wrong rows; what was committed before can't be."""
    story = StoryProducer()
    story.commit("before@1", opaque="an RDD")
    story.commit("orders@4", parent=None)
    story.commit("after@1", opaque="an RDD")
    assert limits(planned(connection, story)) == {(LimitReason.OPAQUE, "after@1")}


def test_a_commit_on_an_unknown_one_is_taken_for_wrong(connection: Connection) -> None:
    """orders@5 was reported by nobody, so whether orders@6 contains orders@4 isn't known; that was read."""
    story = StoryProducer()
    story.commit("orders@4", parent=None)
    story.commit("orders@6")
    story.commit("details@1", reads=["orders@6"])
    plan = planned(connection, story)
    assert wrong(plan) == {"orders": (4, 6), "details": (1,)}
    assert (LimitReason.UNKNOWN_WRITER, "orders@6") in limits(plan)


def test_what_nobody_reported_cannot_be_made_again(connection: Connection) -> None:
    """A MERGE that stands in the table's log alone: on rows that were wrong, and nobody knows from what."""
    story = order_warehouse()
    merged = Output(
        **story.where({"table": "details", "branch": None}),
        snapshot=4,
        parent=3,
        commit_kind=CommitKind.MERGE,
        replaced=PART,
    )
    reconciled = {"evidence": CommitEvidence.RECONCILED, "job": JobName(name="reconcile")}
    story.emit(50, Committed, barrier=50, outputs=(merged,), **reconciled)
    plan = planned(connection, story)
    assert table(plan, "details").snapshots == (2, 3, 4)
    assert table(plan, "details").problems == ("nobody reported who made 4, so how that is made again isn't known",)


def test_a_table_that_was_dropped_needs_nothing(connection: Connection) -> None:
    story = order_warehouse()
    where = story.where({"table": "top10", "branch": None})
    story.emit(50, DropTable, context=CONTEXT, identifier=where["table"], dataset=where["dataset"], generation="1")
    plan = planned(connection, story)
    assert table(plan, "top10").verdict is TableVerdict.DROPPED
    assert "top10" not in {job.job for job in plan.needed_jobs}


def test_a_table_that_was_made_again_is_another_one(connection: Connection) -> None:
    """Its snapshots count anew, and the numbers that are wrong in the former generation are right in this."""
    story = order_warehouse()
    story.generations["top10"] = "2"
    story.commit("top10@1", reads=["products@1"], parent=None, replaced=ALL, job="top10")
    assert table(planned(connection, story), "top10").verdict is TableVerdict.RIGHT


def test_a_branch_is_named_and_left(connection: Connection) -> None:
    story = order_warehouse()
    story.format = Format.PAIMON
    story.commit("revenue[audit]@1", reads=["products@1"])
    story.emit(
        90,
        Committed,
        barrier=90,
        inputs=(order_warehouse().source("details@2", {}),),
        outputs=(Output(**story.where({"table": "revenue", "branch": "audit"}), snapshot=2, parent=1, made_from=(0,)),),
        job=JobName(name="audit"),
    )
    plan = planned(connection, story)
    assert table(plan, "revenue").notes == ("its branch audit is wrong, too, and stays so",)
    assert "audit" not in {job.job for job in plan.jobs}


def test_a_stream_goes_on_behind_its_last_right_batch(connection: Connection) -> None:
    story = order_warehouse()
    stream = StreamDetails(query=UUID(int=77), checkpoint="s3://checkpoints/copy")
    job: dict[str, Any] = {"job": JobName(name="copy"), "run": UUID(int=5)}
    story.emit(11, JobStarted, job_type="STREAMING", scope="QUERY", stream=stream, **job)
    for batch, (since, until) in enumerate([(3, 4), (4, 5)], start=7):
        copied = Output(
            **story.where({"table": "copy", "branch": None}),
            snapshot=batch,
            parent=batch - 1,
            commit_kind=CommitKind.APPEND,
            replaced=NOTHING,
            made_from=(0,),
        )
        read = story.source(f"orders@{since}..{until}", {})
        about = {"incarnation": stream.query, "batch_id": batch, "inputs": (read,), "outputs": (copied,)}
        story.emit(20 + batch, Committed, barrier=batch, **about, **job)
    [copy] = [job for job in planned(connection, story).jobs if job.job == "copy"]
    assert (copy.kind, copy.checkpoint, copy.last_right_batch) == (JobKind.STREAM, "s3://checkpoints/copy", 6)
    assert (copy.commits, copy.last_duration) == (2, None)
    assert table(plan_correction(connection, "orders@4"), "copy").starts_at is None
    assert table(plan_correction(connection, "orders@4", mode=INCREMENTAL), "copy").starts_at == 6


def complete_batches(story: StoryProducer, stream: UUID, number: int, *reads: tuple[int, int, int]) -> None:
    """Report batches of a stream, each by number and the snapshots that it read, which replace all of `sums`."""
    job: dict[str, Any] = {"job": JobName(name="sums"), "run": UUID(int=number)}
    details = StreamDetails(query=stream, checkpoint="s3://checkpoints/sums")
    story.emit(11, JobStarted, job_type="STREAMING", scope="QUERY", stream=details, **job)
    for batch, since, until in reads:
        made = Output(
            **story.where({"table": "sums", "branch": None}),
            snapshot=number * 100 + batch,
            parent=number * 100 + batch - 1,
            commit_kind=CommitKind.OVERWRITE,
            replaced=ALL,
            made_from=(0,),
        )
        about = {"incarnation": stream, "batch_id": batch, "outputs": (made,)}
        read = story.source(f"orders@{since}..{until}", {})
        story.emit(20 + number * 10 + batch, Committed, barrier=batch, inputs=(read,), **about, **job)


def test_what_a_streams_state_has_is_wrong_in_later_batches(connection: Connection) -> None:
    """The later batch read right orders alone, and replaced the sums by those of all that the stream has read."""
    story = order_warehouse()
    complete_batches(story, UUID(int=78), 6, (6, 2, 3), (7, 3, 4), (8, 4, 5))
    sums = table(planned(connection, story), "sums")
    assert (sums.verdict, sums.snapshots, sums.last_right) == (TableVerdict.WRONG, (607, 608), 606)


def test_a_stream_that_began_behind_has_nothing_wrong_in_its_state(connection: Connection) -> None:
    story = order_warehouse()
    complete_batches(story, UUID(int=78), 6, (7, 3, 4))
    complete_batches(story, UUID(int=79), 7, (8, 4, 5))
    assert table(planned(connection, story), "sums").verdict is TableVerdict.RIGHT


def test_commands_are_for_the_days_of_the_runs(connection: Connection) -> None:
    """Two runs on two days made wrong snapshots; a step is run by its application's command."""
    story = order_warehouse()
    for number, minute in ((60, 60), (61, 60 + 24 * 60)):
        run = UUID(int=number)
        about: dict[str, Any] = {"job": JobName(name="daily"), "run": run}
        story.emit(minute, JobStarted, job_type="BATCH", **about)
        story.commit(
            f"daily@{number}",
            reads=["details@3"],
            parent=None,
            replaced=ALL,
            job="daily",
            run=number,
            minute=minute + 1,
        )
        story.emit(minute + 4, JobStatusChanged, status=JobStatus.FINISHED, **about)
    commands = RerunCommands({"daily": RerunCommand("daily", "jobs/daily.py {date-1} --to {date}")})
    plan = planned(connection, story, commands=commands)
    [daily] = [job for job in plan.jobs if job.job == "daily"]
    assert daily.commands == (
        "jobs/daily.py 2026-02-28 --to 2026-03-01",
        "jobs/daily.py 2026-03-01 --to 2026-03-02",
    )
    assert (daily.runs, daily.last_duration, daily.lacks_command) == (2, timedelta(minutes=4), False)
    assert [job.job for job in plan.jobs if job.lacks_command] == ["details", "revenue", "top10"]


def test_costs_are_added_up(connection: Connection) -> None:
    story = order_warehouse()
    read = Input(
        **story.where({"table": "orders", "branch": None}), mode=ReadMode.STATE, snapshot=5, rows=70, bytes=700
    )
    where = story.where({"table": "counted", "branch": None})
    made = Output(**where, snapshot=1, made_from=(0,), rows=7, bytes=77, replaced=ALL)
    story.emit(50, Committed, barrier=50, inputs=(read,), outputs=(made,), job=JobName(name="counted"))
    plan = planned(connection, story, only=["counted"])
    assert (plan.read.rows, plan.read.bytes, plan.read.unknown) == (70, 700, 0)
    assert (plan.written.rows, plan.written.bytes, table(plan, "counted").written.rows) == (7, 77, 7)
    assert plan_correction(connection, "orders@4").written.unknown == 4


def test_a_gap_since_the_wrong_snapshot_is_named(connection: Connection) -> None:
    story = order_warehouse()
    story.emit(2, Gap, reason="QUEUE_OVERFLOW", detail="before")
    story.emit(9, Gap, reason="QUEUE_OVERFLOW", detail="meanwhile")
    details = [limit.detail for limit in planned(connection, story).limits if limit.why is LimitReason.GAP]
    assert details == ["QUEUE_OVERFLOW: meanwhile"]


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("orders", "which snapshot of lake.db.orders is wrong"),
        ("orders@99", "no snapshot '99' of lake.db.orders"),
        ("ordres@4", "did you mean lake.db.orders"),
        ("orders@2", "headwater reconcile lake.db.orders"),
        ("orders[audit]@1", "audit"),
    ],
)
def test_what_is_no_snapshot_to_correct_is_refused(connection: Connection, source: str, said: str) -> None:
    story = order_warehouse()
    story.commit("seen@1", reads=["orders@2"], job="seen")
    store(connection, story)
    with pytest.raises(ConfigurationError, match=said):
        plan_correction(connection, source)
