"""Structured Streaming from and to Delta: ranges by the versions that were committed, and what each batch made.

Truth: versions are counted by hand (each statement of a case commits one), barriers and query ids come from the
checkpoints.
"""

from __future__ import annotations

import json
from collections.abc import Generator
from functools import partial
from threading import Event, Thread
from typing import TYPE_CHECKING

import pytest

from headwater import events
from headwater.events import Committed, CreateTable, Gap, JobStarted, JobStatusChanged, StatementFailed
from headwater.events.jobs import CommitKind, JobStatus, OverwriteScope, RangeStart, ReadMode, StartReason
from headwater.versions import NoAlignmentError, align, check
from tests.kit.formats.delta_racer import QUICK
from tests.kit.spark.driver import DELTA, Driver, edges, of, shared_driver_fixture, the
from tests.kit.spark.streams import Case, Start, barriers, commits, query_id, ranges, run_fed, running, statuses, stored

pytestmark = [
    pytest.mark.xdist_group("spark-delta"),
    pytest.mark.sample(1, keep=("test_three_batches_and_a_restart",)),
    pytest.mark.needs("delta"),
]

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery


driver = shared_driver_fixture(DELTA, **QUICK)


@pytest.fixture
def case(driver: Driver) -> Generator[Case, None, None]:
    case = Case(driver)
    driver.run(
        f"CREATE TABLE {case.db}.source (id BIGINT, v STRING) USING delta",  # version 0
        f"CREATE TABLE {case.db}.sink (id BIGINT, v STRING) USING delta",
        f"INSERT INTO {case.db}.source VALUES (1, 'a')",  # version 1
    )
    yield case
    for query in driver.spark.streams.active:
        query.stop()


def stream(case: Case, **options: str) -> DataFrame:
    return case.spark.readStream.options(**options).table(f"{case.db}.source")


def copy(case: Case, checkpoint: str = "checkpoint", **options: str) -> Start:
    return lambda: case.writer(stream(case, **options), checkpoint).format("delta").toTable(f"{case.db}.sink")


def feed(case: Case, number: int) -> None:
    case.driver.run(f"INSERT INTO {case.db}.source VALUES ({number}, 'b')")


def ids(case: Case, table: str) -> list[int]:
    return sorted(row.id for row in case.driver.rows(f"SELECT id FROM {case.db}.{table}"))


def made(found: list[Committed]) -> list[int | None]:
    return [each.outputs[0].snapshot for each in found]


@pytest.mark.smoke
def test_three_batches_and_a_restart(case: Case) -> None:
    events = case.events_of_steps(lambda: run_fed(copy(case), *(partial(feed, case, number) for number in (2, 3))))
    found, checkpoint = commits(events), case.checkpoint()
    assert [each.batch_id for each in found] == [0, 1, 2]
    assert [each.barrier for each in found] == barriers(checkpoint, [0, 1, 2])
    assert {each.incarnation for each in found} == {query_id(checkpoint)}
    assert ranges(found) == [(None, 1), (1, 2), (2, 3)]
    assert [each.inputs[0].mode for each in found] == [ReadMode.STATE, ReadMode.CHANGES, ReadMode.CHANGES]
    assert [(each.outputs[0].snapshot, each.outputs[0].parent) for each in found] == [(1, 0), (2, 1), (3, 2)]
    assert all(each.outputs[0].made_from == (0,) for each in found)
    assert len({each.fingerprint for each in found}) == 1
    started = the(JobStarted, events)
    assert started.stream is not None
    assert (started.starts_at[0].reason, started.stream.query) == (StartReason.EARLIEST, query_id(checkpoint))
    assert statuses(events) == [JobStatus.RUNNING, JobStatus.FINISHED]

    feed(case, 4)
    again = case.events_of(copy(case))
    restarted = the(JobStarted, again)
    assert restarted.run != started.run
    assert (restarted.starts_at[0].snapshot, restarted.starts_at[0].reason) == (3, StartReason.CHECKPOINT)
    assert [(each.batch_id, each.barrier) for each in commits(again)] == [(3, barriers(checkpoint, [3])[0])]
    assert commits(again)[0].inputs[0].since == RangeStart(snapshot=3)
    assert edges(case.driver.lineage(commits(again)[0])) == {"id <- source.id", "v <- source.v"}
    assert of(Gap, events) == of(Gap, again) == []


@pytest.mark.long
def test_a_fresh_checkpoint_is_a_new_incarnation(case: Case) -> None:
    case.events_of(copy(case))
    found = commits(case.events_of(copy(case, "other")))
    other = case.checkpoint("other")
    assert [(each.batch_id, each.incarnation) for each in found] == [(0, query_id(other))]
    assert [each.barrier for each in found] == barriers(other, [0])
    assert (ranges(found), made(found)) == ([(None, 1)], [2])


def test_a_batch_that_is_run_again_and_skipped_by_the_sink(case: Case) -> None:
    """The crash after the sink's commit, before the checkpoint's."""
    first = commits(case.events_of(copy(case)))
    feed(case, 2)
    second = commits(case.events_of(copy(case)))
    (case.checkpoint() / "commits" / "1").unlink()
    (case.checkpoint() / "commits" / ".1.crc").unlink(missing_ok=True)
    case.driver.run(f"INSERT INTO {case.db}.sink VALUES (9, 'other')")  # somebody else's version
    again = commits(case.events_of(copy(case)))
    assert made(first) + made(second) == [1, 2]
    assert [(each.barrier, each.batch_id) for each in again] == [(second[0].barrier, 1)]
    assert (ranges(again), made(again)) == ([(1, 2)], [2])


@pytest.mark.long
def test_others_commit_to_source_and_sink(case: Case) -> None:
    def both(number: int) -> None:
        case.driver.run(f"INSERT INTO {case.db}.sink VALUES ({number}, 'foreign')")
        feed(case, number)
        feed(case, number)

    found = commits(
        case.events_of_steps(lambda: run_fed(copy(case), *(partial(both, number) for number in range(2, 5))))
    )
    reached = ranges(found)
    assert reached[0] == (None, 1)
    assert [since for since, _ in reached[1:]] == [at for _, at in reached[:-1]]
    assert reached[-1][1] == 7
    history = {
        row["version"]: json.loads(row["operationParameters"]["epochId"])
        for row in case.driver.rows(f"DESCRIBE HISTORY {case.db}.sink")
        if row["operation"] == "STREAMING UPDATE"
    }
    assert dict(zip(made(found), [each.batch_id for each in found], strict=True)) == history


@pytest.mark.long
def test_a_version_that_is_read_in_pieces(case: Case) -> None:
    case.driver.run(f"INSERT INTO {case.db}.source SELECT id, 'x' FROM range(2, 4, 1, 2)")
    found = commits(case.events_of(copy(case, startingVersion="2", maxFilesPerTrigger="1")))
    assert [each.inputs[0].snapshot for each in found] == [2, 2]
    assert [each.inputs[0].version for each in found] == ["2:0", None]
    assert [each.inputs[0].since for each in found] == [RangeStart(snapshot=1), RangeStart(snapshot=2, version="2:0")]


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("options", "reason", "read"),
    [
        ({"startingVersion": "1"}, StartReason.REQUESTED, [(0, 2)]),
        ({"startingVersion": "2"}, StartReason.REQUESTED, [(1, 2)]),
    ],
)
def test_where_a_query_asks_to_start(
    case: Case, options: dict[str, str], reason: StartReason, read: list[tuple[int | None, int]]
) -> None:
    feed(case, 2)
    events = case.events_of(copy(case, **options))
    assert the(JobStarted, events).starts_at[0].reason is reason
    assert ranges(commits(events)) == read
    assert commits(events)[0].inputs[0].mode is ReadMode.CHANGES


@pytest.mark.long
@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, (ReadMode.STATE, 3, None)),
        ({"startingVersion": "0", "skipChangeCommits": "true"}, (ReadMode.CHANGES, 3, RangeStart(snapshot=-1))),
    ],
)
def test_what_a_new_stream_reads_of_a_history_with_a_delete(
    case: Case, options: dict[str, str], expected: tuple[ReadMode, int, RangeStart | None]
) -> None:
    """It finds changes that pass for a state although a commit was passed over. Truth: the sink's rows beside the
    table's."""
    feed(case, 2)
    case.driver.run(f"DELETE FROM {case.db}.source WHERE id = 1")
    read = commits(case.events_of(copy(case, **options)))[0].inputs[0]
    assert (read.mode, read.snapshot, read.since) == expected
    assert (ids(case, "sink") == ids(case, "source")) is (read.mode is ReadMode.STATE)


def test_streams_that_begin_with_a_first_version_or_a_state_align(case: Case) -> None:
    """A stream from version 0 on reads the table's state, as one that begins anew does. It finds a beginning that is
    taken for unknown; where it is unknown, the Gap says what would help."""
    feed(case, 2)
    names = ("first", "second", "third")
    told = case.driver.events_of(
        *(f"CREATE TABLE {case.db}.{each} (id BIGINT, v STRING) USING delta" for each in names)
    )

    def into(table: str, **options: str) -> list[events.Event]:
        start = lambda: case.writer(stream(case, **options), table).format("delta").toTable(f"{case.db}.{table}")  # noqa: E731
        return case.events_of(start)

    told += [*into("first"), *into("second", startingVersion="0")]
    read = [each.inputs[0] for each in commits(told)]
    assert [(each.mode, each.snapshot, each.since) for each in read] == [(ReadMode.STATE, 2, None)] * 2
    assert ids(case, "first") == ids(case, "second") == ids(case, "source")
    unknown = into("third", startingTimestamp="2020-01-01")
    [read_third] = commits(unknown)[0].inputs
    assert (read_third.mode, read_third.since) == (ReadMode.CHANGES, None)
    assert "startingVersion" in the(Gap, unknown).detail
    with stored(case.root, [*told, *unknown]) as connection:
        assert check(connection, [f"{case.db}.first@1", f"{case.db}.second@1"]).is_consistent is True
        assert check(connection, [f"{case.db}.first@1", f"{case.db}.third@1"]).is_consistent is None
        with pytest.raises(NoAlignmentError, match=r"new checkpoint.*no job has to catch up"):
            align(connection, [f"{case.db}.first", f"{case.db}.third"])


@pytest.mark.long
def test_two_streams_of_which_one_gives_nothing(case: Case) -> None:
    case.driver.run(
        f"CREATE TABLE {case.db}.other (id BIGINT, v STRING) USING delta",
        f"INSERT INTO {case.db}.other VALUES (5, 'o')",
    )

    def both() -> None:
        frame = stream(case).union(case.spark.readStream.table(f"{case.db}.other"))
        with running(lambda: case.writer(frame).format("delta").toTable(f"{case.db}.sink")) as query:
            query.processAllAvailable()
            feed(case, 2)
            query.processAllAvailable()

    found = commits(case.events_of_steps(both))
    names = [[each.table.table for each in commit.inputs if each.table] for commit in found]
    assert names == [["source", "other"], ["source"]]
    assert [commit.outputs[0].made_from for commit in found] == [(0, 1), (0,)]
    assert len({each.fingerprint for each in found}) == 1


@pytest.mark.long
def test_one_stream_read_twice(case: Case) -> None:
    frame = stream(case)
    events = case.events_of(lambda: case.writer(frame.union(frame)).format("delta").toTable(f"{case.db}.sink"))
    found = commits(events)
    assert [(len(each.inputs), each.inputs[0].snapshot) for each in found] == [(1, 1)]


@pytest.mark.long
def test_a_table_is_looked_up(case: Case) -> None:
    case.driver.run(
        f"CREATE TABLE {case.db}.names (id BIGINT, name STRING) USING delta",
        f"INSERT INTO {case.db}.names VALUES (1, 'one')",
        f"INSERT INTO {case.db}.names VALUES (2, 'two')",
    )

    def joined() -> None:
        frame = stream(case).join(case.spark.table(f"{case.db}.names"), "id").selectExpr("id", "name AS v")
        with running(lambda: case.writer(frame).format("delta").toTable(f"{case.db}.sink")) as query:
            query.processAllAvailable()
            case.driver.run(f"INSERT INTO {case.db}.names VALUES (3, 'three')")
            feed(case, 3)
            query.processAllAvailable()

    found = commits(case.events_of_steps(joined))
    read = [{each.table.table: (each.mode, each.snapshot) for each in commit.inputs if each.table} for commit in found]
    assert [each["names"] for each in read] == [(ReadMode.STATE, 2), (ReadMode.STATE, 3)]
    assert [each["source"] for each in read] == [(ReadMode.STATE, 1), (ReadMode.CHANGES, 2)]
    lineage = edges(case.driver.lineage(found[0]))
    assert {"id <- source.id", "v <- names.name"} <= lineage


@pytest.mark.long
def test_complete_mode_replaces_all(case: Case) -> None:
    frame = stream(case).groupBy("v").count().selectExpr("count AS id", "v")
    start = lambda: case.writer(frame).format("delta").outputMode("complete").toTable(f"{case.db}.sink")  # noqa: E731
    found = commits(case.events_of(start))
    assert [(each.outputs[0].snapshot, each.outputs[0].replaced) for each in found] == [(1, OverwriteScope.ALL)]
    assert "v <- source.v" in edges(case.driver.lineage(found[0]))


def test_a_watermark_and_batches_without_data(case: Case) -> None:
    """What has no data but makes a version is reported: somebody has to know where it comes from."""
    frame = (
        stream(case)
        .selectExpr("CAST(id AS TIMESTAMP) AS at", "id")
        .withWatermark("at", "10 seconds")
        .groupBy("at")
        .count()
        .selectExpr("count AS id", "CAST(at AS STRING) AS v")
    )

    def windowed() -> None:
        with running(lambda: case.writer(frame).format("delta").toTable(f"{case.db}.sink")) as query:
            query.processAllAvailable()
            feed(case, 1000)
            query.processAllAvailable()

    found = commits(case.events_of_steps(windowed))
    versions = {row["version"] for row in case.driver.rows(f"DESCRIBE HISTORY {case.db}.sink")} - {0}
    assert set(made(found)) == versions
    assert [each.inputs == () for each in found] == [not each.inputs for each in found]
    assert [at for _, at in ranges([each for each in found if each.inputs])] == [1, 2]


@pytest.mark.long
def test_a_watermark_on_a_column_as_it_is(case: Case) -> None:
    case.driver.run(
        f"CREATE TABLE {case.db}.events (at TIMESTAMP, id BIGINT) USING delta",
        f"INSERT INTO {case.db}.events VALUES (TIMESTAMP '2026-01-01 00:00:00', 1)",
    )
    frame = (
        case.spark.readStream.table(f"{case.db}.events").withWatermark("at", "2 minutes").dropDuplicates(["at", "id"])
    )
    start = lambda: case.writer(frame.selectExpr("id", "'x' AS v")).format("delta").toTable(f"{case.db}.sink")  # noqa: E731
    found = commits(case.events_of(start))
    marks = case.driver.lineage(found[0]).inputs[0].watermarks
    assert [(each.column, each.delay) for each in marks] == [(("at",), "2 minutes")]


@pytest.mark.sample(1)
@pytest.mark.parametrize("trigger", [{"availableNow": True}, {"once": True}, {"processingTime": "0 seconds"}])
def test_triggers(case: Case, trigger: dict[str, str | bool]) -> None:
    def triggered() -> None:
        query = case.writer(stream(case)).format("delta").trigger(**trigger).toTable(f"{case.db}.sink")  # type: ignore[arg-type]
        if "processingTime" in trigger:
            query.processAllAvailable()
            query.stop()
        assert query.awaitTermination(120)

    events = case.events_of_steps(triggered)
    assert (ranges(commits(events)), made(commits(events))) == ([(None, 1)], [1])
    assert statuses(events) == [JobStatus.RUNNING, JobStatus.FINISHED]


def test_a_function_with_several_sinks(case: Case) -> None:
    case.driver.run(f"CREATE TABLE {case.db}.names (id BIGINT, name STRING) USING delta")

    def both(frame: DataFrame, number: int) -> None:
        frame.persist()
        frame.write.format("delta").mode("append").saveAsTable(f"{case.db}.made")
        names = frame.sparkSession.table(f"{case.db}.names")
        frame.join(names, "id", "left").selectExpr("id", "name AS v").write.insertInto(f"{case.db}.sink")
        frame.count()
        frame.unpersist()

    start = lambda: case.writer(stream(case)).foreachBatch(both).start()  # noqa: E731
    events = case.events_of_steps(lambda: run_fed(start, partial(feed, case, 2)))
    found = commits(events)
    assert [each.barrier for each in found] == barriers(case.checkpoint(), [0, 1])
    first, second = found
    assert [(o.table and o.table.table, o.snapshot) for o in first.outputs] == [("made", 0), ("sink", 1)]
    assert [(o.table and o.table.table, o.snapshot) for o in second.outputs] == [("made", 1), ("sink", 2)]
    sources = [[second.inputs[n].table.table for n in o.made_from or ()] for o in second.outputs]  # type: ignore[union-attr]
    assert [sorted(each) for each in sources] == [["source"], ["names", "source"]]
    assert the(CreateTable, events).identifier.table == "made"
    lineage = case.driver.lineage(second)
    names = [each.table.table if each.table else None for each in lineage.outputs]
    direct = {
        (names[edge.output], edge.target, lineage.inputs[edge.input].table.table)  # type: ignore[union-attr]
        for edge in lineage.columns
        if edge.target is not None
    }
    assert direct == {
        ("made", ("id",), "source"),
        ("made", ("v",), "source"),
        ("sink", ("id",), "source"),
        ("sink", ("v",), "names"),
    }


def test_a_function_that_writes_from_threads_of_its_own(case: Case) -> None:
    """What each batch read is its own range, also of rows that are written when their batch is over."""
    go, late = Event(), list[Thread]()

    def write(frame: DataFrame, name: str) -> None:
        frame.write.format("delta").mode("append").save(case.path(name))

    def write_later(frame: DataFrame, name: str) -> None:
        assert go.wait(60)
        write(frame, name)

    def function(frame: DataFrame, number: int) -> None:
        pooled = Thread(target=write, args=(frame, "made"))
        pooled.start()
        pooled.join(60)
        late.append(Thread(target=write_later, args=(frame, f"late{number}")))
        late[-1].start()

    def finish() -> None:
        go.set()
        for thread in late:
            thread.join(60)

    start = lambda: case.writer(stream(case)).foreachBatch(function).start()  # noqa: E731
    events = case.events_of_steps(lambda: run_fed(start, partial(feed, case, 2)))
    found = commits(events)
    assert [each.barrier for each in found] == barriers(case.checkpoint(), [0, 1])
    assert made(found) == [0, 1]
    assert ranges(found) == [(None, 1), (1, 2)]
    after = {each.outputs[0].dataset: each.inputs for each in of(Committed, case.events_of_steps(finish))}
    assert {each.name: inputs for each, inputs in after.items() if each is not None} == {
        case.path(f"late{number}"): each.inputs for number, each in enumerate(found)
    }


@pytest.mark.long
def test_a_function_that_merges(case: Case) -> None:
    def merge(frame: DataFrame, number: int) -> None:
        frame.createOrReplaceTempView("changes")
        frame.sparkSession.sql(
            f"MERGE INTO {case.db}.sink t USING changes s ON t.id = s.id "
            "WHEN MATCHED THEN UPDATE SET v = s.v WHEN NOT MATCHED THEN INSERT *"
        )

    found = commits(case.events_of(lambda: case.writer(stream(case)).foreachBatch(merge).start()))
    assert [(each.outputs[0].snapshot, each.outputs[0].commit_kind) for each in found] == [(1, CommitKind.MERGE)]
    tables = {each.table.table: each.mode for each in found[0].inputs if each.table}
    assert tables["source"] is ReadMode.STATE
    assert "v <- source.v" in edges(case.driver.lineage(found[0]))


def test_a_function_that_fails_after_a_commit_and_runs_again(case: Case) -> None:
    broken = [True]

    def both(frame: DataFrame, number: int) -> None:
        writer = frame.write.format("delta").mode("append")
        writer.option("txnAppId", case.db).option("txnVersion", str(number)).saveAsTable(f"{case.db}.sink")
        if broken:
            raise ValueError("the second sink is down")
        frame.write.format("delta").mode("append").save(case.path("second"))

    def start() -> object:
        return case.writer(stream(case)).foreachBatch(both).start()

    def failing() -> None:
        query = start()
        with pytest.raises(Exception, match="second sink is down"):
            query.processAllAvailable()  # type: ignore[attr-defined]

    events = case.events_of_steps(failing)
    assert statuses(events) == [JobStatus.RUNNING, JobStatus.FAILED]
    failed = the(StatementFailed, events)
    assert (failed.batch_id, "ValueError" in failed.error.message) == (0, True)
    assert "second sink is down" not in failed.error.message  # what a program says may hold data
    assert [(each.batch_id, made([each])) for each in commits(events)] == [(0, [1])]
    broken.clear()
    again = commits(case.events_of(start))  # type: ignore[arg-type]
    assert [each.barrier for each in again] == [each.barrier for each in commits(events)]
    assert [o.snapshot for o in again[0].outputs] == [1, 0]


@pytest.mark.long
def test_offsets_that_nobody_has_any_more(case: Case) -> None:
    """A restarted query whose checkpoint loses them while its batch runs: a Gap, and no guess of a state."""
    events = case.events_of(copy(case))
    feed(case, 2)

    def lose(frame: DataFrame, number: int) -> None:
        for file in (case.checkpoint() / "offsets").iterdir():
            file.unlink()
        frame.write.insertInto(f"{case.db}.sink")

    again = case.events_of(lambda: case.writer(stream(case)).foreachBatch(lose).start())
    found = commits(again)
    assert made(commits(events)) + made(found) == [1, 2]
    known = [each.inputs[0].since for each in found if each.inputs[0].snapshot is not None]
    assert known == [RangeStart(snapshot=1)] or (known == [] and len(of(Gap, again)) == 1)


@pytest.mark.long
def test_a_query_that_fails(case: Case) -> None:
    frame = stream(case).selectExpr("CAST(raise_error('broken row') AS BIGINT) AS id", "v")

    def failing() -> None:
        query = case.writer(frame).format("delta").toTable(f"{case.db}.sink")
        with pytest.raises(Exception, match="broken row"):
            query.processAllAvailable()

    events = case.events_of_steps(failing)
    assert commits(events) == []
    assert the(StatementFailed, events).incarnation == query_id(case.checkpoint())
    ended = of(JobStatusChanged, events)[-1]
    assert (ended.status, ended.error is not None and "RuntimeException" in ended.error.message) == (
        JobStatus.FAILED,
        True,
    )
    assert ended.error is not None
    assert "broken row" not in ended.error.message  # a literal of the statement
    assert "\tat " not in ended.error.message


@pytest.mark.long
def test_names_of_queries(case: Case) -> None:
    def start(name: str) -> StreamingQuery:
        return case.writer(stream(case), name).queryName(name).format("delta").toTable(f"{case.db}.sink")

    def both() -> None:
        queries = [start("first"), start("second")]
        for query in queries:
            query.processAllAvailable()
            query.stop()

    events = case.events_of_steps(both)
    assert {each.job.name for each in of(JobStarted, events) if each.job} == {"first", "second"}
    found = {each.job.name: each.incarnation for each in commits(events) if each.job}
    assert found == {name: query_id(case.checkpoint(name)) for name in ("first", "second")}
    unnamed = the(JobStarted, case.events_of(copy(case, "third")))
    assert unnamed.job is not None
    assert unnamed.job.name == f"app.{query_id(case.checkpoint('third'))}"


@pytest.mark.long
def test_what_only_shows_is_silent(case: Case) -> None:
    events = case.events_of(lambda: case.writer(stream(case)).format("memory").queryName(f"m_{case.db}").start())
    assert commits(events) == []
    assert statuses(events) == [JobStatus.RUNNING, JobStatus.FINISHED]
    assert of(Gap, events) == []


@pytest.mark.long
def test_each_row_to_a_function_is_opaque(case: Case) -> None:
    writer = case.writer(stream(case))
    found = commits(case.events_of(lambda: writer.foreach(print).start()))
    assert [(each.outputs[0].dataset, each.outputs[0].opaque) for each in found] == [(None, "foreach")]
    assert ranges(found) == [(None, 1)]


@pytest.mark.long
def test_by_path_and_change_feed(case: Case) -> None:
    case.driver.run(f"ALTER TABLE {case.db}.source SET TBLPROPERTIES (delta.enableChangeDataFeed = true)")  # version 2
    feed(case, 2)  # version 3
    case.driver.run(f"UPDATE {case.db}.source SET v = 'z' WHERE id = 2")  # version 4
    location = case.driver.rows(f"DESCRIBE DETAIL {case.db}.source")[0]["location"]
    read = case.spark.readStream.format("delta").option("readChangeFeed", "true").option("startingVersion", "3")
    frame = read.load(location).select("id", "v")
    found = commits(case.events_of(lambda: case.writer(frame).format("delta").start(case.path("feed"))))
    assert (ranges(found), made(found)) == ([(2, 4)], [0])
    assert found[0].inputs[0].dataset is not None
    assert found[0].inputs[0].dataset.name == location.removeprefix("file:")
    assert found[0].outputs[0].dataset is not None
    assert found[0].outputs[0].dataset.name == case.path("feed")
