"""What code sees under a lens. The rows tell the version: version n of a table holds the ids from 1 to n."""

from __future__ import annotations

from collections.abc import Callable, Generator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from headwater.events import Committed
from headwater.lens import LensError, TargetEffect, lens
from tests.kit.cases.lens import READS, fill, ids, refuses_frames_of_another_pin
from tests.kit.spark.driver import ICEBERG, Driver, shared_driver_fixture, the
from tests.kit.spark.versions import MAJOR

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.xdist_group("spark-iceberg"), pytest.mark.needs("iceberg")]


driver = shared_driver_fixture(ICEBERG)


class Place:
    """A database with `t`, whose versions are known, and what was made of it before there was a lens."""

    def __init__(self, driver: Driver) -> None:
        self.db = driver.database("ice", "spark_catalog")
        self.table = f"ice.{self.db}.t"
        fill(driver, self.table, "iceberg")
        found = driver.rows(f"SELECT snapshot_id FROM {self.table}.snapshots ORDER BY committed_at")
        self.snapshots = [row[0] for row in found]
        self.path = str(driver.warehouse / "ice" / self.db / "t")


@pytest.fixture(scope="module")
def place(driver: Driver) -> Place:
    return Place(driver)


@pytest.fixture
def spark(driver: Driver) -> Generator[SparkSession, None, None]:
    """Each case leaves the session as it was."""
    yield driver.spark
    driver.spark.catalog.clearCache()
    driver.run("USE spark_catalog.default")


@pytest.mark.smoke
def test_a_pinned_table_is_read_at_its_version_and_what_isnt_named_is_refused(
    spark: SparkSession, place: Place
) -> None:
    """Fails if Spark's rule for relations isn't replaced, stays replaced, or the check of the analysed plan is lost.
    And if a snapshot that isn't there, as one that has expired, is an error without the table's name or its cause."""
    with lens(spark, pins={place.table: place.snapshots[1]}):
        assert ids(spark.table(place.table)) == [1, 2]
        assert ids(spark.sql(f"SELECT id FROM {place.table} WHERE id IN (SELECT id FROM {place.table})")) == [1, 2]
        with pytest.raises(Exception, match=rf"says nothing of {place.table}\.files"):
            spark.table(f"{place.table}.files")
    assert ids(spark.table(place.table)) == [1, 2, 3]
    with lens(spark, pins={place.table: 99}), pytest.raises(Exception, match=r"Pin it to a version that is") as refused:
        spark.sql(f"SELECT * FROM {place.table}")
    error: Any = refused.value
    cause = error._origin.getCause().getMessage()
    assert f"{place.table} at 99 ({cause}); it has the snapshots {place.snapshots[2]} of" in str(error)


@pytest.mark.long
@pytest.mark.parametrize("way", READS)
def test_each_way_to_read(spark: SparkSession, place: Place, way: str) -> None:
    """Fails for a way that goes past the rule; beside the lens each way reads the newest, before and after."""
    assert ids(READS[way](spark, place.table)) == [1, 2, 3]
    with lens(spark, pins={place.table: place.snapshots[1]}):
        assert ids(READS[way](spark, place.table)) == [1, 2]
    assert ids(READS[way](spark, place.table)) == [1, 2, 3]


@pytest.mark.long
def test_a_reader_that_looks_the_table_up_by_itself(spark: SparkSession, place: Place) -> None:
    """Fails if what `load` has resolved is taken as it is."""
    with lens(spark, pins={place.table: place.snapshots[1], place.path: place.snapshots[0]}):
        assert ids(spark.read.format("iceberg").load(place.table)) == [1, 2]
        assert ids(spark.read.format("iceberg").load(place.path)) == [1]
    with (
        lens(spark, pins={place.path: 99}),
        pytest.raises(Exception, match=f"{place.path} at 99 .*Pin it to a version"),
    ):
        spark.read.format("iceberg").load(place.path)


@pytest.mark.long
def test_a_permanent_view_is_read_through_the_lens(spark: SparkSession, place: Place) -> None:
    """Fails if a view's text is resolved without the lens, or its short names in the session's namespace."""
    spark.sql(f"USE ice.{place.db}")
    spark.sql(f"CREATE OR REPLACE VIEW spark_catalog.{place.db}.v AS SELECT * FROM t")
    spark.sql("USE spark_catalog.default")
    with lens(spark, pins={place.table: place.snapshots[1]}):
        assert ids(spark.table(f"spark_catalog.{place.db}.v")) == [1, 2]


@pytest.mark.long
def test_names_of_ctes_and_temporary_views_are_left_alone(spark: SparkSession, place: Place) -> None:
    """Fails if the lens takes every name for a table's."""
    spark.sql(f"USE ice.{place.db}")
    with lens(spark, pins={place.table: place.snapshots[1]}):
        assert ids(spark.sql("WITH t AS (SELECT 7 AS id) SELECT * FROM t")) == [7]
        spark.range(8, 9).createOrReplaceTempView("t")
        assert ids(spark.table("t")) == [8]
        spark.catalog.dropTempView("t")
        assert ids(spark.table("t")) == [1, 2]


@pytest.mark.long
def test_time_travel_of_ones_own_stays_as_written(spark: SparkSession, place: Place) -> None:
    """Fails if the lens pins what is pinned, or trusts an option which Spark 3.5 takes and doesn't heed."""
    with lens(spark, pins={place.table: place.snapshots[1]}):
        assert ids(spark.sql(f"SELECT * FROM {place.table} VERSION AS OF {place.snapshots[0]}")) == [1]
        heeded, ignored = ("snapshot-id", "versionAsOf") if MAJOR == 3 else ("versionAsOf", None)
        assert ids(spark.read.option(heeded, place.snapshots[0]).table(place.table)) == [1]
        if ignored is not None:
            with pytest.raises(Exception, match="as it is now"):
                spark.read.option(ignored, place.snapshots[0]).table(place.table)


@pytest.mark.long
def test_what_was_made_before_the_lens_is_refused(spark: SparkSession, place: Place) -> None:
    """Fails if only what is analysed under the lens is checked: an old DataFrame would be read as it is now."""
    before = spark.table(place.table)
    before.createOrReplaceTempView("before_lens")
    with lens(spark, pins={place.table: place.snapshots[1]}):
        for read in (before.collect, lambda: before.where("id > 0"), lambda: spark.table("before_lens")):
            with pytest.raises(Exception, match="made before the lens"):
                read()


@pytest.mark.smoke
def test_what_another_lens_has_pinned_is_refused(spark: SparkSession, place: Place) -> None:
    """Fails if any fixed version passes: rows of two cuts would come together in one result."""
    refuses_frames_of_another_pin(spark, place.table, place.snapshots[0], place.snapshots[1])
    with lens(spark, pins={place.path: place.snapshots[0]}):
        frame = spark.read.format("iceberg").load(place.path)
    with lens(spark, pins={place.path: place.snapshots[1]}), pytest.raises(Exception, match="and a DataFrame"):
        frame.collect()


@pytest.mark.long
def test_what_has_no_versions_is_refused_by_name_unless_allowed(
    spark: SparkSession, place: Place, tmp_path: Path
) -> None:
    """Fails if files or tables of files are read in silence."""
    files = str(tmp_path / "files")
    spark.range(1).write.parquet(files)
    name = f"spark_catalog.{place.db}.plain"
    spark.sql(f"CREATE TABLE {name} USING parquet AS SELECT 1 AS id")
    with lens(spark, pins={}):
        with pytest.raises(Exception, match=f"says nothing of {files}"):
            spark.read.parquet(files)
        with pytest.raises(Exception, match=f"says nothing of {name}"):
            spark.table(name)
        assert ids(spark.range(2)) == [0, 1]
    with lens(spark, allowed=[files, "*.plain"]):
        assert ids(spark.read.parquet(files)) == [0]
        assert ids(spark.table(name)) == [1]


@pytest.mark.long
def test_a_stream_of_a_pinned_table_is_refused(spark: SparkSession, place: Place) -> None:
    """Fails if a stream goes on from the pinned version to the newest one."""
    with lens(spark, pins={place.table: place.snapshots[1]}):
        with pytest.raises(Exception, match="can't pin a streaming read"):
            spark.readStream.table(place.table)
        with pytest.raises(Exception, match="can't pin a streaming read"):
            spark.readStream.format("iceberg").load(place.table)


@pytest.mark.long
def test_a_stream_sees_what_it_joins_through_the_lens(spark: SparkSession, place: Place, tmp_path: Path) -> None:
    """Fails if a stream's session, which is a clone, has no lens: foreachBatch would read the newest."""
    seen: list[list[Any]] = []

    def batch(frame: Any, _: int) -> None:
        seen.append(ids(frame.sparkSession.table(place.table)))

    with lens(spark, pins={place.table: place.snapshots[1]}, allowed=["stream:*"]):
        rate = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 1).load()
        query = (
            rate.writeStream.foreachBatch(batch).option("checkpointLocation", str(tmp_path)).trigger(availableNow=True)
        )
        running = query.start()
        assert running.awaitTermination(120)
        assert running.exception() is None
    assert seen
    assert all(each == [1, 2] for each in seen)


WRITES: dict[str, Callable[[SparkSession, str, str], object]] = {
    "INSERT": lambda spark, into, t: spark.sql(f"INSERT INTO {into} SELECT * FROM {t}"),
    "insertInto": lambda spark, into, t: spark.table(t).write.insertInto(into),
    "saveAsTable": lambda spark, into, t: spark.table(t).write.mode("append").format("iceberg").saveAsTable(into),
    "writeTo": lambda spark, into, t: spark.table(t).writeTo(into).append(),
    "INSERT OVERWRITE": lambda spark, into, t: spark.sql(f"INSERT OVERWRITE {into} SELECT * FROM {t}"),
    "MERGE": lambda spark, into, t: spark.sql(
        f"MERGE INTO {into} a USING {t} b ON a.id = b.id WHEN NOT MATCHED THEN INSERT *"
    ),
}
EFFECTS: dict[str, tuple[TargetEffect, ...]] = {
    "INSERT OVERWRITE": (TargetEffect.REPLACES_ALL,),
    "MERGE": (TargetEffect.READS, TargetEffect.ADDS),
}
"""What the others do is that they add rows."""


@pytest.mark.long
@pytest.mark.parametrize("way", WRITES)
def test_writes_go_where_the_lens_says(driver: Driver, spark: SparkSession, place: Place, way: str) -> None:
    """Fails for a way that writes the table itself, reads its source as it is now, or is taken for another way."""
    db, scratch = driver.database("ice"), driver.database("ice")
    for each in (db, scratch):
        driver.run(f"CREATE TABLE ice.{each}.out (id INT) USING iceberg")
    with lens(spark, pins={place.table: place.snapshots[1]}, redirects={f"ice.{db}": f"ice.{scratch}"}) as opened:
        WRITES[way](spark, f"ice.{db}.out", place.table)
        assert ids(spark.table(f"ice.{db}.out")) == [1, 2]
        effects = EFFECTS.get(way, (TargetEffect.ADDS,))
        assert opened.uses() == tuple((f"ice.{scratch}.out", each) for each in effects)
    assert ids(spark.table(f"ice.{db}.out")) == []
    assert ids(spark.table(f"ice.{scratch}.out")) == [1, 2]


def test_a_table_that_save_as_table_would_drop_stays(driver: Driver, spark: SparkSession) -> None:
    """Spark drops a table of its own catalog before it analyses what overwrites it. Fails if the table that is named is
    dropped, one that may be dropped isn't, or the lens stays behind."""
    db, other = (f"spark_catalog.{driver.database()}" for _ in range(2))
    for each in (db, other):
        driver.run(f"CREATE TABLE {each}.t USING parquet AS SELECT 1 AS id")
    rows = spark.sql("SELECT 2 AS id").write.format("parquet").mode("overwrite")
    with lens(spark, redirects={db: other}):
        # Spark 4.1 analyses the statement before it drops the table, as the others don't.
        with pytest.raises(Exception, match=rf"doesn't redirect {db}\.t, which (saveAsTable|would be)"):
            rows.saveAsTable(f"{db}.t")
        spark.sql(f"DROP TABLE {db}.t")  # the one that it leads to
    assert ids(spark.table(f"{db}.t")) == [1]
    assert not spark.catalog.tableExists(f"{other}.t")
    rows.saveAsTable(f"{db}.t")
    assert ids(spark.table(f"{db}.t")) == [2]


@pytest.mark.long
def test_rows_are_changed_and_tables_made_where_the_lens_says(
    driver: Driver, spark: SparkSession, place: Place
) -> None:
    """Fails if UPDATE, DELETE, TRUNCATE, ALTER, CTAS or DROP reach the table itself."""
    db, scratch = driver.database("ice"), driver.database("ice")
    driver.run(f"CREATE TABLE ice.{db}.out USING iceberg AS SELECT 5 AS id")
    with lens(spark, pins={place.table: place.snapshots[2]}, redirects={f"ice.{db}": f"ice.{scratch}"}):
        spark.sql(f"CREATE TABLE ice.{db}.out USING iceberg AS SELECT * FROM {place.table}")
        spark.sql(f"UPDATE ice.{db}.out SET id = 9 WHERE id = 3")
        spark.sql(f"DELETE FROM ice.{db}.out WHERE id = 2")
        assert ids(spark.table(f"ice.{db}.out")) == [1, 9]
        spark.sql(f"ALTER TABLE ice.{db}.out ADD COLUMN more INT")
        spark.sql(f"TRUNCATE TABLE ice.{db}.out")
        assert spark.table(f"ice.{db}.out").columns == ["id", "more"]
        spark.sql(f"DROP TABLE ice.{db}.out")
    assert driver.rows(f"SHOW TABLES IN ice.{scratch}") == []
    assert [tuple(row) for row in driver.rows(f"SELECT * FROM ice.{db}.out")] == [(5,)]


ELSEWHERE: dict[str, Callable[[SparkSession, str, Path], object]] = {
    "INSERT": lambda spark, t, _: spark.sql(f"INSERT INTO {t} VALUES (9)"),
    "UPDATE": lambda spark, t, _: spark.sql(f"UPDATE {t} SET id = 9"),
    "DELETE": lambda spark, t, _: spark.sql(f"DELETE FROM {t}"),
    "MERGE": lambda spark, t, _: spark.sql(
        f"MERGE INTO {t} a USING (SELECT 9 AS id) b ON a.id = b.id WHEN NOT MATCHED THEN INSERT *"
    ),
    "CTAS": lambda spark, t, _: spark.sql(f"CREATE TABLE {t}_new USING iceberg AS SELECT 1 AS id"),
    "DROP": lambda spark, t, _: spark.sql(f"DROP TABLE {t}"),
    "TRUNCATE": lambda spark, t, _: spark.sql(f"TRUNCATE TABLE {t}"),
    "ALTER": lambda spark, t, _: spark.sql(f"ALTER TABLE {t} ADD COLUMN more INT"),
    "properties": lambda spark, t, _: spark.sql(f"ALTER TABLE {t} SET TBLPROPERTIES ('a' = 'b')"),
    "no properties": lambda spark, t, _: spark.sql(f"ALTER TABLE {t} UNSET TBLPROPERTIES ('a')"),
    "files": lambda spark, _, path: spark.range(1).write.parquet(str(path / "out")),
    "procedure": lambda spark, t, _: spark.sql(f"CALL ice.system.rollback_to_snapshot('{t.removeprefix('ice.')}', 1)"),
    "DROP DATABASE": lambda spark, t, _: spark.sql(f"DROP DATABASE {t.rpartition('.')[0]} CASCADE"),
}


@pytest.mark.long
def test_what_replaces_a_part_or_reads_what_was_there_is_told_from_what_replaces_all(
    driver: Driver, spark: SparkSession, place: Place
) -> None:
    """Fails if a result that began empty would be compared although the job's write leaves rows of before in place."""
    from pyspark.sql.functions import col

    db, scratch = driver.database("ice"), driver.database("ice")
    driver.run(*(f"CREATE TABLE ice.{each}.out (id INT) USING iceberg PARTITIONED BY (id)" for each in (db, scratch)))
    table, target = f"ice.{db}.out", f"ice.{scratch}.out"
    statements: list[tuple[Callable[[], object], list[TargetEffect]]] = [
        (lambda: spark.sql("SELECT 1 AS id").writeTo(table).overwrite(col("id") == 1), [TargetEffect.CHANGES]),
        (lambda: spark.table(place.table).writeTo(table).overwritePartitions(), [TargetEffect.CHANGES]),
        (lambda: spark.sql(f"DELETE FROM {table} WHERE id = 1"), [TargetEffect.CHANGES]),
        (lambda: spark.sql(f"DELETE FROM {table}"), [TargetEffect.REPLACES_ALL]),
        (lambda: spark.sql(f"TRUNCATE TABLE {table}"), [TargetEffect.REPLACES_ALL]),
        (
            lambda: spark.sql(f"INSERT INTO {table} SELECT id + 1 FROM {table}"),
            [TargetEffect.READS, TargetEffect.ADDS],
        ),
        (lambda: spark.sql(f"ALTER TABLE {table} ADD COLUMN more INT"), [TargetEffect.KEEPS]),
        (lambda: spark.table(table).collect(), []),
    ]
    for run, effects in statements:
        with lens(spark, pins={place.table: place.snapshots[1]}, redirects={f"ice.{db}": f"ice.{scratch}"}) as opened:
            run()
            assert opened.uses() == tuple((target, each) for each in effects), effects


def test_what_a_statement_writes_isnt_read_as_it_is_now_but_to_change_its_rows(
    driver: Driver, spark: SparkSession, place: Place
) -> None:
    """Fails if a table counts as answered for wherever a statement reads it, because the statement also writes it."""
    table = f"ice.{driver.database('ice')}.t2"
    driver.run(f"CREATE TABLE {table} USING iceberg AS SELECT 1 AS id")
    source = f"(SELECT id FROM {place.table})"
    with lens(spark, pins={place.table: place.snapshots[1]}):
        for statement in (
            f"INSERT INTO {table} SELECT id + 1 FROM {table}",
            f"INSERT OVERWRITE {table} SELECT id + 1 FROM {table}",
            f"INSERT INTO {table} SELECT id FROM {place.table} WHERE id IN (SELECT id FROM {table})",
            f"UPDATE {table} SET id = 7 WHERE id IN (SELECT max(id) FROM {table})",
        ):
            with pytest.raises(Exception, match=f"says nothing of {table}"):
                spark.sql(statement)
        spark.sql(f"UPDATE {table} SET id = 2")
        spark.sql(f"MERGE INTO {table} a USING {source} b ON a.id = b.id WHEN NOT MATCHED THEN INSERT *")
        spark.sql(f"DELETE FROM {table} WHERE id > 5")
    assert ids(spark.table(table)) == [1, 2]


def test_a_block_that_redirects_closes_the_ways_around_sql_to_its_thread(
    spark: SparkSession, place: Place, tmp_path: Path
) -> None:
    """Fails if an RDD is saved under redirects, another thread of the driver is stopped, or the way stays closed."""
    from pyspark import InheritableThread

    rdd = spark.sparkContext.parallelize(["a"], 1)
    with lens(spark, redirects={"ice.a": "ice.b"}):
        with pytest.raises(LensError, match="calls saveAsTextFile of RDDs"):
            rdd.saveAsTextFile(str(tmp_path / "refused"))
        thread = InheritableThread(target=lambda: rdd.saveAsTextFile(str(tmp_path / "another")))
        thread.start()
        thread.join()
        assert rdd.count() == 1
    rdd.saveAsTextFile(str(tmp_path / "after"))
    assert sorted(each.name for each in tmp_path.iterdir()) == ["after", "another"]


@pytest.mark.long
@pytest.mark.parametrize("way", ELSEWHERE)
def test_a_lens_with_redirects_refuses_to_write_elsewhere(
    spark: SparkSession, place: Place, tmp_path: Path, way: str
) -> None:
    """Fails for a command that writes what the lens doesn't redirect: a run to try something would harm real tables."""
    snapshots = f"SELECT snapshot_id FROM {place.table}.snapshots ORDER BY committed_at"
    pins, redirects = {place.table: place.snapshots[1]}, {"ice.a": "ice.b"}
    refused = pytest.raises(Exception, match=r"(doesn't redirect|redirects writes)")
    with refused, lens(spark, pins=pins, redirects=redirects):
        ELSEWHERE[way](spark, place.table, tmp_path)
    assert [row[0] for row in spark.sql(snapshots).collect()] == place.snapshots
    assert not (tmp_path / "out").exists()


@pytest.mark.long
def test_data_cached_of_one_version_isnt_taken_for_another(spark: SparkSession, place: Place) -> None:
    """Fails if Spark finds the cached newest version for the pinned one: Iceberg's tables are equal by their name."""
    assert spark.table(place.table).cache().count() == 3
    with lens(spark, pins={place.table: place.snapshots[0]}):
        assert ids(spark.table(place.table)) == [1]
        assert spark.table(place.table).cache().count() == 1
    spark.table(place.table).unpersist()
    assert ids(spark.table(place.table)) == [1, 2, 3]


@pytest.mark.long
def test_what_is_captured_is_what_was_really_read_and_written(driver: Driver, place: Place) -> None:
    """Fails if capture names the newest snapshot, or the table that the statement names."""
    scratch = driver.database("ice")
    driver.run(f"CREATE TABLE ice.{scratch}.out (id INT) USING iceberg")
    redirects = {f"ice.{place.db}.out": f"ice.{scratch}.out"}
    with lens(driver.spark, pins={place.table: place.snapshots[1]}, redirects=redirects):
        events = driver.events_of(f"INSERT INTO ice.{place.db}.out SELECT * FROM {place.table}")
    committed = the(Committed, events)
    assert [each.snapshot for each in committed.inputs] == [place.snapshots[1]]
    written = driver.rows(f"SELECT snapshot_id FROM ice.{scratch}.out.snapshots")
    assert [each.snapshot for each in committed.outputs] == [written[0][0]]


@pytest.mark.long
def test_another_session_is_untouched_and_a_lens_ends_with_its_block(spark: SparkSession, place: Place) -> None:
    """Fails if a lens reaches farther than its session and its block, also where the block ends with an error."""
    inside: Any = spark
    rule = inside._jsparkSession.sessionState().analyzer().ResolveRelations()

    def fail() -> None:
        with lens(spark, pins={place.table: place.snapshots[0]}):
            assert ids(spark.newSession().table(place.table)) == [1, 2, 3]
            with pytest.raises(LensError, match="has a lens already"):
                lens(spark, pins={}).begin()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert inside._jsparkSession.sessionState().analyzer().ResolveRelations().equals(rule)
    assert ids(spark.table(place.table)) == [1, 2, 3]


@pytest.mark.long
@pytest.mark.parametrize("location", ["CREATE TABLE", "CREATE OR REPLACE TABLE"])
def test_a_redirected_table_isnt_made_at_a_place_of_its_own(
    driver: Driver, spark: SparkSession, place: Place, tmp_path: Path, location: str
) -> None:
    """Fails if a redirect leads to another name and the rows go to the real table's directory."""
    scratch = driver.database("ice", "spark_catalog")
    redirects = {f"ice.{place.db}.made": f"ice.{scratch}.made", f"spark_catalog.{place.db}": f"spark_catalog.{scratch}"}
    for name, using in ((f"ice.{place.db}.made", "iceberg"), (f"spark_catalog.{place.db}.files", "parquet")):
        if using == "parquet" and "REPLACE" in location:
            continue
        statement = f"{location} {name} USING {using} LOCATION '{tmp_path}/{using}' AS SELECT 1 AS id"
        with lens(spark, redirects=redirects), pytest.raises(Exception, match=f"put at {tmp_path}/{using}"):
            spark.sql(statement)
        assert not (tmp_path / using).exists()
    with lens(spark, redirects=redirects):
        spark.sql(f"CREATE TABLE spark_catalog.{place.db}.files USING parquet AS SELECT 1 AS id")
    assert ids(spark.table(f"spark_catalog.{scratch}.files")) == [1]
