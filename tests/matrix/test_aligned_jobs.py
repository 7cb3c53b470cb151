"""Aligned jobs on real tables of Iceberg and Delta, in one Spark session."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from headwater.errors import ConfigurationError
from headwater.lineage.store import open_store
from headwater.versions.aligned import (
    AlignedBatch,
    Cut,
    GroupClaims,
    OverwrittenSourceError,
    TableSnapshot,
    UnalignableTableError,
    UncertainWriteError,
    UnmarkedWriteError,
    aligned_query,
    start_options,
)
from headwater.versions.aligned.checkpoints import Checkpoint
from tests.kit.versions.aligned import (
    GROUP,
    ORDERS,
    PRODUCTS,
    add_snapshots,
    create_sinks,
    create_sources,
    query_of,
    results_of,
    step_of,
    warehouse_session,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.needs("iceberg", "delta"),
    pytest.mark.xdist_group("aligned jobs"),
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),  # pyspark's, of `collect`
]
TABLES = {"iceberg": "ice.db.{}", "delta": "default.{}"}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("aligned")


@pytest.fixture(scope="module")
def spark(java_home: Path, place: Path) -> Iterator[SparkSession]:
    with warehouse_session(java_home, place) as session:
        create_sources(session)
        yield session


@pytest.fixture(params=["iceberg", "delta"])
def table(request: pytest.FixtureRequest, spark: SparkSession) -> str:
    """A source with one snapshot of one row."""
    name = TABLES[request.param].format(f"t{abs(hash(request.node.name)) % 10**9}")
    spark.sql(f"CREATE TABLE {name} (id INT) USING {request.param}")
    spark.sql(f"INSERT INTO {name} VALUES (1)")
    return name


class Seen:
    """A step that notes what it gets."""

    def __init__(self) -> None:
        self.changes: list[list[int]] = []
        self.states: list[list[int]] = []
        self.full: list[bool] = []

    def __call__(self, batch: AlignedBatch) -> None:
        self.changes.append(sorted(row.id for row in batch.changes("t").collect()))
        self.states.append(sorted(row.id for row in batch.state("t").collect()))
        self.full.append(batch.is_full("t"))


def query(spark: SparkSession, place: Path, table: str, job: str = "job", **more: Any) -> Any:
    checkpoint = str(place / "checkpoints" / f"{table} {job}")
    store = str(place / "store.db")
    return aligned_query(table, {"t": table}, name=job, checkpoint=checkpoint, store=store, spark=spark, **more)


def append(spark: SparkSession, table: str, *ids: int) -> None:
    for each in ids:
        spark.sql(f"INSERT INTO {table} VALUES ({each})")


def begin_again(place: Path, table: str, job: str = "job") -> None:
    """Make the newest barrier one that was not committed, as a kill before the checkpoint leaves it."""
    checkpoint = Checkpoint(str(place / "checkpoints" / f"{table} {job}"))
    found = checkpoint.newest()
    assert found is not None
    checkpoint.write(type(found)(found.number, found.cut, found.before, is_committed=False, sinks=found.sinks))


@pytest.mark.long
def test_a_barrier_that_runs_again_writes_nothing_twice(spark: SparkSession, place: Path) -> None:
    """Two formats, a job that is begun again, and one that comes later."""
    for job in ("early", "late"):
        create_sinks(spark, job)
    assert query_of(spark, "early", place).run(step_of("early")) == 1
    add_snapshots(spark, 1)
    add_snapshots(spark, 2)
    assert query_of(spark, "early", place).run(step_of("early")) == 2
    written = results_of(spark, "early")
    checkpoint = Checkpoint(str(place / "checkpoints" / "early"))
    newest = checkpoint.newest()
    assert newest is not None
    checkpoint.write(type(newest)(newest.number, newest.cut, newest.before, is_committed=False, sinks=newest.sinks))
    assert query_of(spark, "early", place).run(step_of("early")) == 1
    assert results_of(spark, "early") == written
    assert query_of(spark, "late", place, 1).run(step_of("late")) == 3
    assert results_of(spark, "late") == written
    assert written["ice.db.job_total"] == [(0, 2 + 4 + 6)]
    assert written["default.job_total"] == [(0, 1 + 2 + 3)]
    for sink, source in (("ice.db.job_rows", ORDERS), ("default.job_rows", PRODUCTS)):
        assert sorted(row[:2] for row in written[sink]) == sorted(tuple(row) for row in spark.table(source).collect())
    with open_store(str(place / "store.db"), readonly=True) as store, store.engine.connect() as connection:
        starts = set(connection.exec_driver_sql("SELECT reason, table_name FROM run_starts").all())
        jobs = {each.job: each.done for each in GroupClaims(store, GROUP).jobs()}
    assert starts >= {("ALIGNED", "orders"), ("ALIGNED", "products")}
    assert {reason for reason, _ in starts} == {"ALIGNED"}
    assert jobs == {"early": 3, "late": 3}


@pytest.mark.long
def test_changes_and_states_are_those_of_the_data_version(spark: SparkSession, place: Path, table: str) -> None:
    """It finds reads at the newest snapshot, and changes that a compaction repeats or swallows."""
    seen = Seen()
    assert query(spark, place, table).run(seen) == 1
    append(spark, table, 2, 3)
    if table.startswith("ice"):
        spark.sql(f"CALL ice.system.rewrite_data_files(table => '{table}', options => map('min-input-files', '2'))")
    else:
        spark.sql(f"OPTIMIZE {table}")
    append(spark, table, 4)
    assert query(spark, place, table).run(seen) == 3
    assert seen.changes == [[1], [2], [3], [4]]
    assert seen.states == [[1], [1, 2], [1, 2, 3], [1, 2, 3, 4]]
    assert seen.full == [True, False, False, False]
    wide = Seen()
    query(spark, place, table, "first", start=1).run(wide)
    assert wide.states == seen.states


@pytest.mark.long
def test_several_snapshots_in_one_barrier(spark: SparkSession, place: Path, table: str) -> None:
    """It finds changes of which only the last snapshot's are given."""
    seen = Seen()
    query(spark, place, table).run(seen)
    append(spark, table, 2, 3, 4)
    query(spark, place, table, snapshots_per_barrier=2).run(seen)
    assert seen.changes == [[1], [2, 3], [4]]


@pytest.mark.long
def test_additions_have_the_columns_of_their_data_version(spark: SparkSession, place: Path) -> None:
    """It finds rows of Delta that are read with the columns of a later version, or of an earlier one: a column comes
    after the first, and goes after the third of three data versions that are read at the end. It has a change feed,
    which makes no difference."""
    table, found = "default.with_columns", list[list[dict[str, object]]]()
    properties = "delta.enableChangeDataFeed = true, delta.columnMapping.mode = 'name'"
    spark.sql(f"CREATE TABLE {table} (id INT) USING delta TBLPROPERTIES ({properties})")
    append(spark, table, 1)
    query(spark, place, table).run(Seen())
    append(spark, table, 2)
    spark.sql(f"ALTER TABLE {table} ADD COLUMN v STRING")
    spark.sql(f"INSERT INTO {table} VALUES (3, 'c')")
    spark.sql(f"ALTER TABLE {table} DROP COLUMN v")
    append(spark, table, 4)

    def step(batch: AlignedBatch) -> None:
        found.append([row.asDict() for row in batch.changes("t").collect()])

    query(spark, place, table).run(step)
    assert found == [[{"id": 2, "v": None}], [{"id": 3}], [{"id": 4}]]


@pytest.mark.long
@pytest.mark.parametrize(("policy", "changes"), [("full", [2, 3]), ("ignore", [3])])
def test_overwritten_rows_follow_the_policy(
    spark: SparkSession, place: Path, table: str, policy: str, changes: list[int]
) -> None:
    """It finds a deletion that passes as if nothing had happened."""
    append(spark, table, 2)
    query(spark, place, table).run(Seen())
    spark.sql(f"DELETE FROM {table} WHERE id = 1")
    append(spark, table, 3)
    with pytest.raises(OverwrittenSourceError, match="changed or removed rows"):
        query(spark, place, table, snapshots_per_barrier=2).run(Seen())
    seen = Seen()
    query(spark, place, table, overwrites=policy).run(seen)
    assert seen.changes == [changes]
    assert seen.full == [policy == "full"]


def roll_back(spark: SparkSession, table: str) -> None:
    first = spark.sql(f"SELECT snapshot_id FROM {table}.snapshots").collect()[0][0]
    spark.sql(f"CALL ice.system.rollback_to_snapshot('{table}', {first})")


def make_again(spark: SparkSession, table: str) -> None:
    """Drop a table and make it with as many snapshots, and more."""
    spark.sql(f"DROP TABLE {table}")
    spark.sql(f"CREATE TABLE {table} (id INT) USING {'iceberg' if table.startswith('ice') else 'delta'}")
    append(spark, table, 7, 8, 9)


def become_parquet(spark: SparkSession, table: str) -> None:
    """The same name becomes a table without snapshots."""
    spark.sql(f"DROP TABLE {table}")
    spark.sql(f"CREATE TABLE {table} (id INT) USING parquet")


def went_back(table: str) -> list[Callable[[SparkSession, str], None]]:
    return [make_again, roll_back] if table.startswith("ice") else [make_again, become_parquet]


@pytest.mark.long
@pytest.mark.parametrize("which", [0, 1])
def test_a_table_that_went_back_stops_the_group(spark: SparkSession, place: Path, table: str, which: int) -> None:
    """It finds a cut that goes back, between two runs of a job."""
    append(spark, table, 2)
    query(spark, place, table).run(Seen())
    went_back(table)[which](spark, table)
    with pytest.raises(UnalignableTableError, match=r"group of another name|no table of"):
        query(spark, place, table).run(Seen())


@pytest.mark.long
@pytest.mark.parametrize("which", [0, 1])
def test_a_table_that_goes_back_between_two_barriers_stops_the_job(
    spark: SparkSession, place: Path, table: str, which: int
) -> None:
    """It finds what a job remembers of a table though it is another one: the function's own session changes it, after
    the job has read its history."""
    job, seen = query(spark, place, table), Seen()

    def step(batch: AlignedBatch) -> None:
        seen(batch)
        append(spark, table, 20 + batch.number)
        if batch.number == 3:
            went_back(table)[which](spark, table)

    with pytest.raises(UnalignableTableError, match=r"group of another name|no table of"):
        job.run(step, trigger="continuous", poll_seconds=0.05)
    assert seen.changes == [[1], [21], [22]]


@pytest.mark.long
def test_a_table_that_is_made_again_within_a_barrier_isnt_read(spark: SparkSession, place: Path, table: str) -> None:
    """It finds rows of another table at the number of the snapshot that was to be read."""
    append(spark, table, 2)

    def step(batch: AlignedBatch) -> None:
        make_again(spark, table)
        batch.state("t").collect()

    with pytest.raises(UnalignableTableError, match=r"dropped and made again|has expired"):
        query(spark, place, table).run(step)


@pytest.mark.long
def test_a_write_that_cant_be_looked_for_stops_the_job(spark: SparkSession, place: Path) -> None:
    """It finds a barrier that is written again because its snapshot has expired."""
    source, sink = "ice.db.expiring_source", "ice.db.expiring_sink"
    for each in (source, sink):
        spark.sql(f"CREATE TABLE {each} (id INT) USING iceberg")
        append(spark, each, 1)

    def step(batch: AlignedBatch) -> None:
        batch.write(sink, batch.changes("t").writeTo(sink).append)

    query(spark, place, source).run(step)
    append(spark, sink, 5)
    spark.sql(
        f"CALL ice.system.expire_snapshots(table => '{sink}', older_than => TIMESTAMP '2999-01-01', retain_last => 1)"
    )
    begin_again(place, source)
    with pytest.raises(UncertainWriteError, match="have expired"):
        query(spark, place, source).run(step)


def newest_is_lost(place: Path, table: str, job: str = "job") -> None:
    """Take the newest barrier out of a checkpoint, as one has it that is restored from an older copy."""
    files = sorted((place / "checkpoints" / f"{table} {job}" / "barriers").glob("*.json"))
    files[-1].unlink()


def sink_of(spark: SparkSession, table: str) -> str:
    sink = f"{table}_sink"
    spark.sql(f"CREATE TABLE {sink} (id INT) USING {'iceberg' if table.startswith('ice') else 'delta'}")
    append(spark, sink, 0)
    return sink


def rows_of(spark: SparkSession, table: str) -> list[int]:
    return sorted(row.id for row in spark.sql(f"SELECT id FROM {table}").collect())


@pytest.mark.long
def test_a_checkpoint_that_is_restored_from_an_older_copy_writes_nothing_twice(
    spark: SparkSession, place: Path, table: str
) -> None:
    """It finds a barrier that the checkpoint hasn't, and the sink has. Where its snapshot has expired, and only the
    store knows that the barrier was committed, the job stops."""
    sink, calls = sink_of(spark, table), list[int]()

    def write(batch: AlignedBatch) -> None:
        calls.append(batch.number)
        batch.changes("t").writeTo(sink).append()

    step = lambda batch: batch.write(sink, lambda: write(batch))  # noqa: E731
    for number in (2, 3, 4):
        query(spark, place, table).run(step)
        append(spark, table, number)
    assert query(spark, place, table).run(step) == 1
    for _ in range(3):
        newest_is_lost(place, table)
    append(spark, sink, 99)
    assert query(spark, place, table).run(step) == 3
    assert calls == [1, 2, 3, 4]
    assert rows_of(spark, sink) == [0, 1, 2, 3, 4, 99]
    if table.startswith("ice"):
        newest_is_lost(place, table)
        spark.sql(f"CALL ice.system.expire_snapshots(table => '{sink}', older_than => TIMESTAMP '2999-01-01')")
        with pytest.raises(UncertainWriteError, match="have expired"):
            query(spark, place, table).run(step)
        assert calls == [1, 2, 3, 4]


@pytest.mark.long
@pytest.mark.parametrize("way", ["named", "spark.wap.branch", "spark.wap.id"])
def test_a_sink_that_is_a_branch_is_written_once(spark: SparkSession, place: Path, way: str) -> None:
    """It finds marks that are looked for on main only. Truth: the rows of the branch, or of the staged snapshot."""
    table = f"ice.db.onto_{way.replace('.', '_')}"
    spark.sql(f"CREATE TABLE {table} (id INT) USING iceberg")
    append(spark, table, 1)
    main = sink_of(spark, table)
    spark.sql(f"ALTER TABLE {main} SET TBLPROPERTIES ('write.wap.enabled' = 'true')")
    spark.sql(f"ALTER TABLE {main} CREATE BRANCH named")
    sink = f"{main}.branch_named" if way == "named" else main
    if way != "named":
        spark.conf.set(way, "audit")
    try:
        step = lambda batch: batch.write(sink, batch.changes("t").writeTo(sink).append)  # noqa: E731
        query(spark, place, table).run(step)
        begin_again(place, table)
        query(spark, place, table).run(step)
        newest_is_lost(place, table)
        query(spark, place, table).run(step)
    finally:
        spark.conf.unset("spark.wap.branch")
        spark.conf.unset("spark.wap.id")
    added = spark.sql(f"SELECT summary['headwater.barrier'] AS mark FROM {main}.snapshots WHERE operation = 'append'")
    assert [row.mark is None for row in added.collect()].count(False) == 1
    assert rows_of(spark, main) == [0]
    if way != "spark.wap.id":
        assert rows_of(spark, f"{main}.branch_{'named' if way == 'named' else 'audit'}") == [0, 1]


@pytest.mark.long
@pytest.mark.parametrize("name", ["branch_test", "branch_main"])
def test_a_source_that_is_a_branch_is_read_there(spark: SparkSession, place: Path, name: str) -> None:
    """It finds a branch that is looked at on main, or read by a name that Iceberg takes no version behind. Truth: the
    rows that were written to it."""
    main = f"ice.db.from_{name}"
    spark.sql(f"CREATE TABLE {main} (id INT) USING iceberg")
    append(spark, main, 1)
    spark.sql(f"ALTER TABLE {main} CREATE BRANCH test")
    source, seen = f"{main}.{name}", Seen()
    append(spark, source, 2)
    query(spark, place, source).run(seen)
    append(spark, main if name == "branch_test" else f"{main}.branch_test", 100)
    append(spark, source, 3)
    append(spark, source, 4)
    assert query(spark, place, source).run(seen) == 2
    assert seen.states == [[1, 2], [1, 2, 3], [1, 2, 3, 4]]
    assert seen.changes == [[1, 2], [3], [4]]
    if name == "branch_test":
        with pytest.raises(UnalignableTableError, match="looks for what is new on main"):
            start_options(source, Cut({source: TableSnapshot(1)}), spark)


@pytest.mark.long
def test_two_commits_in_one_write_are_refused(spark: SparkSession, place: Path, table: str) -> None:
    """It finds a second commit that is lost in silence: by Delta, which takes it for the first one, and after a kill
    between the two on every format. The job doesn't go on past that barrier later either."""
    sink = sink_of(spark, table)

    def both(batch: AlignedBatch) -> None:
        spark.sql(f"DELETE FROM {sink} WHERE id = 0")
        batch.changes("t").writeTo(sink).append()

    step = lambda batch: batch.write(sink, lambda: both(batch))  # noqa: E731
    for _ in range(2):
        with pytest.raises(UnmarkedWriteError, match=r"more than one commit.*by one write"):
            query(spark, place, table).run(step)


@pytest.mark.long
@pytest.mark.parametrize("table", ["delta"], indirect=True)
def test_a_write_of_another_table_is_noticed(spark: SparkSession, place: Path, table: str) -> None:
    """It finds a barrier whose mark is on a table where nobody looks for it. A write that changes nothing is fine."""
    sink, other = sink_of(spark, table), f"{table}_other"
    spark.sql(f"CREATE TABLE {other} LIKE {sink}")
    query(spark, place, table).run(
        lambda batch: batch.write(sink, partial(spark.sql, f"DELETE FROM {sink} WHERE id = 7"))
    )
    append(spark, table, 2)
    with pytest.raises(UnmarkedWriteError, match="carries no barrier"):
        query(spark, place, table).run(lambda batch: batch.write(sink, batch.changes("t").writeTo(other).append))


@pytest.mark.long
def test_a_sink_that_cant_carry_a_barrier_is_refused(spark: SparkSession, place: Path, table: str) -> None:
    """It finds sinks that would be written twice without anybody having said so."""
    calls: list[str] = []

    def refused(batch: AlignedBatch) -> None:
        batch.write("nowhere", lambda: calls.append("refused"))

    def declared(batch: AlignedBatch) -> None:
        batch.write("nowhere", lambda: calls.append("declared"), at_least_once=True)

    with pytest.raises(ConfigurationError, match="at_least_once=True"):
        query(spark, place, table).run(refused)
    query(spark, place, table).run(declared)
    assert calls == ["declared"]


@pytest.mark.long
def test_a_catalog_that_the_session_lacks_is_named(spark: SparkSession, place: Path) -> None:
    """Spark's own words are of a namespace that has to have a single part."""
    with pytest.raises(ConfigurationError, match=r"no catalog 'nowhere' .*spark\.sql\.catalog\.nowhere"):
        query(spark, place, "nowhere.db.t").run(Seen())


@pytest.mark.long
def test_a_write_from_another_thread_is_noticed(spark: SparkSession, place: Path) -> None:
    """It finds a commit without the barrier, which a second run wouldn't find."""
    source, sink = "ice.db.thread_source", "ice.db.thread_sink"
    for each in (source, sink):
        spark.sql(f"CREATE TABLE {each} (id INT) USING iceberg")
    append(spark, source, 1)

    def elsewhere() -> None:
        thread = threading.Thread(target=append, args=(spark, sink, 7))
        thread.start()
        thread.join()

    with pytest.raises(UnmarkedWriteError, match="doesn't carry the barrier"):
        query(spark, place, source).run(lambda batch: batch.write(sink, elsewhere))


@pytest.mark.long
def test_an_error_of_the_function_is_the_users_own(spark: SparkSession, place: Path) -> None:
    """It finds an error that comes back through Java as a text."""
    source, sink = "ice.db.error_source", "ice.db.error_sink"
    for each in (source, sink):
        spark.sql(f"CREATE TABLE {each} (id INT) USING iceberg")
    append(spark, source, 1)

    class OwnError(Exception):
        pass

    def fail() -> None:
        raise OwnError("mine")

    with pytest.raises(OwnError, match="mine"):
        query(spark, place, source).run(lambda batch: batch.write(sink, fail))


@pytest.mark.long
def test_a_plain_stream_begins_after_a_cut(spark: SparkSession, place: Path, table: str) -> None:
    """It finds options with which a stream repeats or leaves out a snapshot."""
    append(spark, table, 2)
    query(spark, place, table).run(Seen())
    append(spark, table, 3)
    with open_store(str(place / "store.db"), readonly=True) as store:
        version = GroupClaims(store, table).version(1)
    assert version is not None
    stream = spark.readStream.options(**start_options(table, version.cut, spark)).table(table)
    name = f"memory_{abs(hash(table)) % 10**6}"
    started = stream.writeStream.format("memory").queryName(name).trigger(availableNow=True).start()
    started.awaitTermination(60)
    assert [row.id for row in spark.table(name).collect()] == [3]


@pytest.mark.long
def test_a_continuous_job_goes_on_with_what_comes(spark: SparkSession, place: Path, table: str) -> None:
    """It finds a loop that ends with what was there, or can't be stopped."""
    job, seen = query(spark, place, table), Seen()

    def step(batch: AlignedBatch) -> None:
        seen(batch)
        if batch.number < 3:
            append(spark, table, batch.number + 1)
        else:
            job.stop()

    assert job.run(step, trigger="continuous", poll_seconds=0.05) == 3
    assert seen.changes == [[1], [2], [3]]


def test_a_cut_is_written_in_full() -> None:
    cut = Cut({"a": TableSnapshot(1, "x"), "b": TableSnapshot(2)})
    assert Cut.from_json(cut.to_json()) == cut
    assert str(cut) == "a@1, b@2"
