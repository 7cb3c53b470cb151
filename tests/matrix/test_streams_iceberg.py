"""Structured Streaming from and to Iceberg: ranges by snapshots, and what each micro-batch made.

Truth: the tables' own metadata, in which Iceberg names query and micro-batch of each snapshot that a stream made.
"""

from __future__ import annotations

from collections.abc import Generator
from functools import partial
from typing import TYPE_CHECKING, Final

import pytest

from headwater.events import Committed, Gap, JobStarted
from headwater.events.jobs import JobStatus, RangeStart, ReadMode, StartReason
from headwater.versions import align, check
from tests.kit.spark.driver import ICEBERG, Driver, driver_fixture, edges, of, the
from tests.kit.spark.streams import Case, Start, barriers, commits, query_id, ranges, run_fed, statuses, stored

pytestmark = pytest.mark.needs("iceberg")
if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_EPOCH: Final = "spark.sql.streaming.epochId"
_QUERY: Final = "spark.sql.streaming.queryId"


# A query has a session of its own, and so has the case: no cache of one may hide what the other commits.
driver = driver_fixture(
    ICEBERG, spark__sql__shuffle__partitions="2", **{"spark__sql__catalog__ice__cache-enabled": "false"}
)


@pytest.fixture
def case(driver: Driver) -> Generator[Case, None, None]:
    case = Case(driver, "ice")
    driver.run(
        f"CREATE TABLE ice.{case.db}.source (id BIGINT, v STRING) USING iceberg",
        f"CREATE TABLE ice.{case.db}.sink (id BIGINT, v STRING) USING iceberg",
        f"INSERT INTO ice.{case.db}.source VALUES (1, 'a')",
    )
    yield case
    for query in driver.spark.streams.active:
        query.stop()


def snapshots(case: Case, table: str) -> list[int]:
    """In the order in which they were made."""
    rows = case.driver.rows(f"SELECT snapshot_id FROM ice.{case.db}.{table}.snapshots ORDER BY committed_at")
    return [row[0] for row in rows]


def snapshots_parents(case: Case, table: str) -> list[int | None]:
    rows = case.driver.rows(f"SELECT parent_id FROM ice.{case.db}.{table}.snapshots ORDER BY committed_at")
    return [row[0] for row in rows]


def by_batch(case: Case, table: str) -> dict[int, tuple[int, int | None]]:
    """What a stream made, as the table tells it: by the batch, the snapshot and its parent."""
    rows = case.driver.rows(f"SELECT snapshot_id, parent_id, summary FROM ice.{case.db}.{table}.snapshots")
    wanted = str(query_id(case.checkpoint()))
    return {int(row[2][_EPOCH]): (row[0], row[1]) for row in rows if row[2].get(_QUERY) == wanted}


def stream(case: Case, **options: str) -> DataFrame:
    return case.spark.readStream.options(**options).table(f"ice.{case.db}.source")


def copy(case: Case, **options: str) -> Start:
    return lambda: case.writer(stream(case, **options)).format("iceberg").toTable(f"ice.{case.db}.sink")


def feed(case: Case, number: int) -> None:
    case.driver.run(f"INSERT INTO ice.{case.db}.source VALUES ({number}, 'b')")


def ids(case: Case, table: str, at: int | None = None) -> list[int]:
    version = "" if at is None else f" VERSION AS OF {at}"
    return sorted(row.id for row in case.driver.rows(f"SELECT id FROM ice.{case.db}.{table}{version}"))


def made(found: list[Committed]) -> dict[int | None, tuple[int | None, int | None]]:
    return {each.batch_id: (each.outputs[0].snapshot, each.outputs[0].parent) for each in found}


@pytest.mark.smoke
def test_three_batches_and_a_restart(case: Case) -> None:
    events = case.events_of_steps(lambda: run_fed(copy(case), *(partial(feed, case, number) for number in (2, 3))))
    found = commits(events)
    first, second, third = snapshots(case, "source")
    assert ranges(found) == [(None, first), (first, second), (second, third)]
    assert all(each.inputs[0].version is None for each in found)
    assert [each.inputs[0].mode for each in found] == [ReadMode.STATE, ReadMode.CHANGES, ReadMode.CHANGES]
    assert [each.barrier for each in found] == barriers(case.checkpoint(), [0, 1, 2])
    started = the(JobStarted, events).starts_at[0]
    assert (started.snapshot, started.reason) == (first, StartReason.EARLIEST)
    feed(case, 4)
    again = case.events_of(copy(case))
    started = the(JobStarted, again).starts_at[0]
    assert (started.snapshot, started.reason) == (third, StartReason.CHECKPOINT)
    assert ranges(commits(again)) == [(third, snapshots(case, "source")[-1])]
    assert made([*found, *commits(again)]) == by_batch(case, "sink")
    assert statuses(again) == [JobStatus.RUNNING, JobStatus.FINISHED]
    assert edges(case.driver.lineage(commits(again)[0])) == {"id <- source.id", "v <- source.v"}
    assert of(Gap, events) == of(Gap, again) == []


@pytest.mark.long
def test_a_batch_that_is_run_again_and_skipped_by_the_sink(case: Case) -> None:
    case.events_of(copy(case))
    feed(case, 2)
    second = commits(case.events_of(copy(case)))
    (case.checkpoint() / "commits" / "1").unlink()
    (case.checkpoint() / "commits" / ".1.crc").unlink(missing_ok=True)
    case.driver.run(f"INSERT INTO ice.{case.db}.sink VALUES (9, 'other')")
    again = commits(case.events_of(copy(case)))
    assert [each.barrier for each in again] == [each.barrier for each in second]
    assert made(again) == made(second)
    assert made(again)[1] == by_batch(case, "sink")[1]


@pytest.mark.long
def test_others_commit_to_source_and_sink(case: Case) -> None:
    def both(number: int) -> None:
        case.driver.run(f"INSERT INTO ice.{case.db}.sink VALUES ({number}, 'foreign')")
        feed(case, number)
        feed(case, number)

    found = commits(
        case.events_of_steps(lambda: run_fed(copy(case), *(partial(both, number) for number in range(2, 5))))
    )
    reached = ranges(found)
    assert [since for since, _ in reached[1:]] == [at for _, at in reached[:-1]]
    assert reached[-1][1] == snapshots(case, "source")[-1]
    assert made(found) == by_batch(case, "sink")


@pytest.mark.smoke
def test_streams_that_begin_on_several_snapshots_align(case: Case) -> None:
    """Iceberg tells what a new stream reads as additions since a table's first snapshot. It finds a beginning that is
    taken for unknown, which stays in a sink that is only appended to, so that nothing ever goes with it."""
    feed(case, 2)
    name = f"ice.{case.db}"
    case.driver.run(f"CREATE TABLE {name}.pieces (id BIGINT, v STRING) USING iceberg")
    slow = {"streaming-max-files-per-micro-batch": "1"}
    piecewise = lambda: case.writer(stream(case, **slow), "slow").format("iceberg").toTable(f"{name}.pieces")  # noqa: E731
    whole, pieces = case.events_of(copy(case)), case.events_of(piecewise)
    _, second = snapshots(case, "source")
    read = commits(whole)[0].inputs[0]
    assert (read.mode, read.snapshot, read.version, read.since) == (ReadMode.STATE, second, None, None)
    assert ids(case, "sink") == ids(case, "source", second) == ids(case, "pieces")
    feed(case, 3)
    later = case.events_of(copy(case))
    tables = [f"{name}.sink", f"{name}.pieces"]
    *_, at = snapshots(case, "pieces")
    with stored(case.root, [*whole, *pieces, *later]) as connection:
        one, other = snapshots(case, "sink")
        assert check(connection, {tables[0]: one, tables[1]: at}).is_consistent is True
        assert check(connection, {tables[0]: other, tables[1]: at}).is_consistent is False
        assert [row.table.snapshot for row in align(connection, tables).rows] == [one, at]


@pytest.mark.long
def test_what_a_new_stream_reads_of_a_history(case: Case) -> None:
    """It finds a state that is told although commits were passed over, or although the oldest snapshots had expired;
    and a compaction that is taken for a change. Truth: the rows of the sink beside those of the table."""
    feed(case, 2)
    case.driver.run(f"CALL ice.system.rewrite_data_files('{case.db}.source')")
    feed(case, 3)
    read = commits(case.events_of(copy(case)))[0].inputs[0]
    assert (read.mode, read.snapshot, read.since) == (ReadMode.STATE, snapshots(case, "source")[-1], None)
    assert ids(case, "sink") == ids(case, "source")

    case.driver.run(f"DELETE FROM ice.{case.db}.source WHERE id = 2", f"DELETE FROM ice.{case.db}.sink")
    feed(case, 4)
    skip = {"streaming-skip-delete-snapshots": "true", "streaming-skip-overwrite-snapshots": "true"}
    start = lambda: case.writer(stream(case, **skip), "skips").format("iceberg").toTable(f"ice.{case.db}.sink")  # noqa: E731
    read = commits(case.events_of(start))[0].inputs[0]
    assert (read.mode, read.snapshot, read.since) == (
        ReadMode.CHANGES,
        snapshots(case, "source")[-1],
        RangeStart(snapshot=-1),
    )
    assert ids(case, "sink") == [1, 2, 3, 4] != ids(case, "source")

    case.driver.run(
        f"CALL ice.system.expire_snapshots(table => '{case.db}.source', older_than => TIMESTAMP '2100-01-01 00:00:00')",
        f"DELETE FROM ice.{case.db}.sink",
    )
    parent = snapshots_parents(case, "source")[-1]
    start = lambda: case.writer(stream(case), "late").format("iceberg").toTable(f"ice.{case.db}.sink")  # noqa: E731
    read = commits(case.events_of(start))[0].inputs[0]
    assert (read.mode, read.since) == (ReadMode.CHANGES, RangeStart(snapshot=parent))
    assert ids(case, "sink") == [4]


@pytest.mark.long
def test_a_snapshot_that_is_read_in_pieces(case: Case) -> None:
    case.driver.run(f"INSERT INTO ice.{case.db}.source SELECT id, 'x' FROM range(2, 4, 1, 2)")
    first, second = snapshots(case, "source")
    options = {"streaming-max-files-per-micro-batch": "1"}
    found = commits(case.events_of(copy(case, **options)))
    read = [each.inputs[0] for each in found]
    assert [each.snapshot for each in read] == [first, second, second]
    assert [each.version for each in read] == [None, f"{second}:1", None]
    assert [each.since.snapshot if each.since else None for each in read] == [None, first, second]
    assert read[2].since is not None
    assert read[2].since.version == f"{second}:1"


@pytest.mark.long
def test_a_function_that_writes_two_tables(case: Case) -> None:
    case.driver.run(f"CREATE TABLE ice.{case.db}.second (id BIGINT) USING iceberg")

    def both(frame: DataFrame, number: int) -> None:
        frame.writeTo(f"ice.{case.db}.sink").append()
        frame.select("id").writeTo(f"ice.{case.db}.second").append()

    found = commits(case.events_of(lambda: case.writer(stream(case)).foreachBatch(both).start()))
    events = [(o.table.table if o.table else None, o.snapshot, o.made_from) for o in found[0].outputs]
    assert events == [
        ("sink", snapshots(case, "sink")[0], (0,)),
        ("second", snapshots(case, "second")[0], (0,)),
    ]
    assert ranges(found) == [(None, snapshots(case, "source")[0])]


@pytest.mark.long
def test_by_path(case: Case) -> None:
    location = case.driver.warehouse / "ice" / case.db / "sink"
    start = lambda: case.writer(stream(case)).format("iceberg").option("path", str(location)).start()  # noqa: E731
    found = commits(case.events_of(start))
    assert found[0].outputs[0].dataset is not None
    assert found[0].outputs[0].dataset.name == str(location)
    assert made(found) == by_batch(case, "sink")
