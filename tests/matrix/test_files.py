"""Files in Spark's own catalog and by path: what is recorded of every way to write them, with the truth written by
hand."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import DataFrame
from pyspark.sql.functions import expr

from headwater.events import Committed, DatasetId, Gap, JobLineage, StatementFailed, TableName
from headwater.events.jobs import CommitKind, OverwriteScope, ReadMode
from tests.kit.spark.driver import HOST, PLAIN, Driver, edges, of, shared_driver_fixture, the
from tests.kit.spark.java_lint import complaints_of_javac
from tests.kit.spark.versions import MAJOR, MINOR

pytestmark = [
    pytest.mark.xdist_group("spark-plain"),
    pytest.mark.sample(20, keep=("test_javac_agrees",)),
]

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

APPEND, OVERWRITE, CREATE = CommitKind.APPEND, CommitKind.OVERWRITE, CommitKind.CREATE
FORMATS = (pytest.param("parquet", marks=pytest.mark.smoke), "orc", "csv", "json")


driver = shared_driver_fixture(PLAIN)


class Place:
    """A case's own database with two tables: a(id, s), and b(id, s) partitioned by s; each has rows."""

    def __init__(self, driver: Driver, fmt: str) -> None:
        self.db = driver.database()
        self.format = fmt
        self.home = driver.warehouse / "spark" / f"{self.db}.db"
        self.path = str(driver.warehouse / self.db)
        driver.run(
            f"CREATE TABLE {self.db}.a (id INT, s STRING) USING {fmt}",
            f"CREATE TABLE {self.db}.b (id INT, s STRING) USING {fmt} PARTITIONED BY (s)",
            f"INSERT INTO {self.db}.a VALUES (1, 'x'), (2, 'y')",
            f"INSERT INTO {self.db}.b VALUES (1, 'x'), (2, 'y')",
        )

    def dataset(self, table: str) -> DatasetId:
        return DatasetId(namespace=f"file://{HOST}", name=str(self.home / table))

    def at(self, path: str) -> DatasetId:
        return DatasetId(namespace=f"file://{HOST}", name=path)


@dataclass(frozen=True)
class Case:
    """What one statement has to tell. `{db}`, `{path}` and `{format}` in it are the case's own."""

    name: str
    statement: str | Callable[[SparkSession, Place], object]
    sink: str
    """The table, or `path` for the case's path."""
    kind: CommitKind
    replaced: OverwriteScope
    inputs: tuple[str, ...] = ()
    edges: tuple[str, ...] = ()
    rows: int | None = None


def save(mode: str, **options: str) -> Callable[[SparkSession, Place], object]:
    def run(spark: SparkSession, place: Place) -> None:
        writer = spark.table(f"{place.db}.a").write.mode(mode).options(**options).format(place.format)
        writer.save(place.path)

    return run


def as_table(mode: str, table: str, *partitions: str) -> Callable[[SparkSession, Place], object]:
    def run(spark: SparkSession, place: Place) -> None:
        writer = spark.table(f"{place.db}.a").write.mode(mode).format(place.format)
        (writer.partitionBy(*partitions) if partitions else writer).saveAsTable(f"{place.db}.{table}")

    return run


def into(overwrite: bool) -> Callable[[SparkSession, Place], object]:
    def run(spark: SparkSession, place: Place) -> None:
        spark.table(f"{place.db}.a").write.insertInto(f"{place.db}.b", overwrite=overwrite)

    return run


def dynamically(statement: str) -> Callable[[SparkSession, Place], object]:
    def run(spark: SparkSession, place: Place) -> None:
        spark.conf.set("spark.sql.sources.partitionOverwriteMode", "dynamic")
        try:
            spark.sql(statement.format(db=place.db))
        finally:
            spark.conf.unset("spark.sql.sources.partitionOverwriteMode")

    return run


def path_to_path(spark: SparkSession, place: Place) -> None:
    frame: Any = spark.read.schema("id INT, s STRING").format(place.format).load(str(place.home / "a"))
    frame.where("id > 0").write.format(place.format).save(place.path)


SAME = ("id <- a.id", "s <- a.s")
CASES = (
    Case("values", "INSERT INTO {db}.a VALUES (3, 'z')", "a", APPEND, OverwriteScope.NOTHING, rows=1),
    Case("select", "INSERT INTO {db}.b SELECT id, s FROM {db}.a", "b", APPEND, OverwriteScope.NOTHING, ("a",), SAME, 2),
    Case(
        "by name",
        "INSERT INTO {db}.b (s, id) SELECT s, id FROM {db}.a",
        "b",
        APPEND,
        OverwriteScope.NOTHING,
        ("a",),
        SAME,
        2,
    ),
    Case(
        "one partition",
        "INSERT INTO {db}.b PARTITION (s = 'q') SELECT id FROM {db}.a",
        "b",
        APPEND,
        OverwriteScope.NOTHING,
        ("a",),
        ("id <- a.id",),
        2,
    ),
    Case(
        "filtered",
        "INSERT INTO {db}.b SELECT id, s FROM {db}.a WHERE id > 1",
        "b",
        APPEND,
        OverwriteScope.NOTHING,
        ("a",),
        (*SAME, "~FILTER a.id"),
        1,
    ),
    Case("overwrite", "INSERT OVERWRITE {db}.a SELECT id, s FROM {db}.b", "a", OVERWRITE, OverwriteScope.ALL, ("b",)),
    Case(
        "overwrite all partitions",
        "INSERT OVERWRITE {db}.b SELECT id, s FROM {db}.a",
        "b",
        OVERWRITE,
        OverwriteScope.ALL,
        ("a",),
        SAME,
        2,
    ),
    Case(
        "overwrite one partition",
        "INSERT OVERWRITE {db}.b PARTITION (s = 'x') SELECT id FROM {db}.a",
        "b",
        OVERWRITE,
        OverwriteScope.PART,
        ("a",),
    ),
    Case(
        "overwrite dynamically",
        dynamically("INSERT OVERWRITE {db}.b SELECT id, s FROM {db}.a WHERE s = 'x'"),
        "b",
        OVERWRITE,
        OverwriteScope.PART,
        ("a",),
        rows=1,
    ),
    Case(
        "overwrite dynamically, by a query that is optimized",
        dynamically("INSERT OVERWRITE {db}.b SELECT id + 0, s FROM {db}.a WHERE s = 'x' AND 1 = 1"),
        "b",
        OVERWRITE,
        OverwriteScope.PART,
        ("a",),
        rows=1,
    ),
    Case(
        "ctas",
        "CREATE TABLE {db}.c USING {format} AS SELECT id, s FROM {db}.a",
        "c",
        CREATE,
        OverwriteScope.ALL,
        ("a",),
        SAME,
        2,
    ),
    Case("save as new table", as_table("errorifexists", "c"), "c", CREATE, OverwriteScope.ALL, ("a",), SAME, 2),
    Case(
        "save as partitioned table",
        as_table("errorifexists", "c", "s"),
        "c",
        CREATE,
        OverwriteScope.ALL,
        ("a",),
        SAME,
        2,
    ),
    Case("append to table", as_table("append", "a2"), "a2", CREATE, OverwriteScope.ALL, ("a",), SAME, 2),
    Case("append to table there", as_table("append", "b", "s"), "b", APPEND, OverwriteScope.NOTHING, ("a",), SAME, 2),
    Case("insertInto", into(overwrite=False), "b", APPEND, OverwriteScope.NOTHING, ("a",), SAME, 2),
    Case("insertInto over", into(overwrite=True), "b", OVERWRITE, OverwriteScope.ALL, ("a",), SAME, 2),
    Case("save path", save("errorifexists"), "path", APPEND, OverwriteScope.NOTHING, ("a",), SAME, 2),
    Case("save over path", save("overwrite"), "path", OVERWRITE, OverwriteScope.ALL, ("a",), SAME, 2),
    Case("path to path", path_to_path, "path", APPEND, OverwriteScope.NOTHING, ("a",), (*SAME, "~FILTER a.id"), 2),
    Case(
        "directory",
        "INSERT OVERWRITE DIRECTORY '{path}' USING {format} SELECT id, s FROM {db}.a",
        "path",
        OVERWRITE,
        OverwriteScope.ALL,
        ("a",),
        SAME,
    ),
    Case(
        "with a CTE",
        "WITH q AS (SELECT id, s FROM {db}.a) INSERT INTO {db}.b SELECT id, s FROM q",
        "b",
        APPEND,
        OverwriteScope.NOTHING,
        ("a",),
        SAME,
        2,
    ),
    Case(
        "from itself",
        "INSERT INTO {db}.a SELECT id + 10, s FROM {db}.a",
        "a",
        APPEND,
        OverwriteScope.NOTHING,
        ("a",),
        ("id <- TRANSFORMATION a.id", "s <- a.s"),
        2,
    ),
)


@pytest.mark.sample(24)
@pytest.mark.parametrize("fmt", FORMATS)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_write(driver: Driver, case: Case, fmt: str) -> None:
    place = Place(driver, fmt)
    events = driver.events_of(_bound(case.statement, place))

    committed = the(Committed, events)
    lineage = driver.lineage(committed)
    (output,) = committed.outputs
    sink = place.at(place.path) if case.sink == "path" else place.dataset(case.sink)
    assert output.dataset == lineage.outputs[0].dataset == sink
    by_path = case.sink == "path"
    name = None if by_path else TableName(catalog="spark_catalog", database=place.db, table=case.sink)
    assert output.table == lineage.outputs[0].table == name
    assert (output.commit_kind, output.replaced) == (case.kind, case.replaced)
    assert (output.snapshot, output.version, output.candidates) == (None, None, ())
    assert [each.dataset for each in committed.inputs] == [place.dataset(table) for table in case.inputs]
    assert output.made_from == tuple(range(len(case.inputs)))
    assert all(each.mode is ReadMode.STATE and each.snapshot is None for each in committed.inputs)
    assert output.format.value == fmt.upper()
    assert [c.name for c in lineage.outputs[0].columns] == ["id", "s"]
    assert committed.fingerprint == lineage.fingerprint
    if case.edges:
        assert _named(lineage, place) == set(case.edges)
    if case.rows is not None:
        assert output.rows == case.rows
    assert not of(Gap, events)


def test_two_targets_of_one_from_are_two_statements(driver: Driver) -> None:
    place = Place(driver, "parquet")
    db = place.db
    events = driver.events_of(
        f"FROM {db}.a INSERT INTO {db}.b SELECT id, s INSERT INTO {db}.b SELECT id + 1, s WHERE id > 1"
    )
    if (MAJOR, MINOR) >= (4, 1):  # as one execution, which is a Gap
        assert "several INSERTs of one FROM" in the(Gap, events).detail
        assert not of(Committed, events)
        return
    first, second = of(Committed, events)
    assert (first.outputs[0].rows, second.outputs[0].rows) == (2, 1)
    assert first.statement != second.statement
    assert first.barrier < second.barrier


def test_a_shape_is_reported_once_and_each_commit_names_it(driver: Driver) -> None:
    place = Place(driver, "parquet")
    insert = f"INSERT INTO {place.db}.b SELECT id, s FROM {place.db}.a"
    events = driver.events_of(insert, insert, insert)
    lineage = the(JobLineage, events)
    assert [each.fingerprint for each in of(Committed, events)] == [lineage.fingerprint] * 3


def test_appending_nothing_is_no_commit(driver: Driver) -> None:
    place = Place(driver, "parquet")
    statement = f"INSERT INTO {place.db}.b SELECT id, s FROM {place.db}.a WHERE id > 100"
    events = driver.events_of(statement, statement)
    assert [each.kind for each in events] == ["JobLineage"], "what it depends on is told all the same, once"
    lineage = the(JobLineage, events)
    assert [each.dataset for each in lineage.inputs] == [place.dataset("a")]
    assert [each.dataset for each in lineage.outputs] == [place.dataset("b")]
    assert edges(lineage) == {"id <- a.id", "s <- a.s", "~FILTER a.id"}


def test_overwriting_with_nothing_is_one(driver: Driver) -> None:
    place = Place(driver, "parquet")
    events = driver.events_of(f"INSERT OVERWRITE {place.db}.b SELECT id, s FROM {place.db}.a WHERE id > 100")
    (output,) = the(Committed, events).outputs
    assert (output.rows, output.replaced) == (0, OverwriteScope.ALL)


def test_the_answer_of_a_command_is_no_second_statement(driver: Driver) -> None:
    place = Place(driver, "parquet")
    events = driver.events_of(lambda spark: spark.sql(f"INSERT INTO {place.db}.a VALUES (9, 'z')").collect())
    the(Committed, events)
    assert driver.events_of(lambda spark: spark.sql(f"INSERT INTO {place.db}.a VALUES (9, 'z')").show()) != []


def test_two_unrelated_statements_share_no_job(driver: Driver) -> None:
    place = Place(driver, "parquet")
    events = driver.events_of(
        f"INSERT INTO {place.db}.b SELECT id, s FROM {place.db}.a",
        f"CREATE TABLE {place.db}.c USING parquet AS SELECT id FROM {place.db}.b",
    )
    first, second = of(Committed, events)
    assert first.job != second.job
    assert [each.dataset for each in first.inputs] == [place.dataset("a")]
    assert [each.dataset for each in second.inputs] == [place.dataset("b")]


def test_a_statement_that_fails_while_it_runs_is_reported_as_that(driver: Driver) -> None:
    place = Place(driver, "parquet")
    events = driver.events_of_failure(
        f"INSERT INTO {place.db}.b SELECT raise_error('password=hunter2 is wrong'), s FROM {place.db}.a"
    )
    failed = the(StatementFailed, events)
    assert [each.dataset for each in failed.inputs] == [place.dataset("a")]
    assert [each.dataset for each in failed.outputs] == [place.dataset("b")]
    assert "hunter2" not in failed.model_dump_json()
    assert not of(Committed, events)


@pytest.mark.parametrize(
    ("condition", "column"),
    [
        ("CAST_INVALID_INPUT", "CAST('QZX QZX' AS INT)"),
        ("CAST_INVALID_INPUT", "CAST(concat('QZX', s) AS INT)"),
        ("CAST_OVERFLOW", "CAST(id * 987654321 AS TINYINT)"),
        (None, "raise_error('QZX is odd')"),
        (None, "element_at(map(concat('QZX', s), 1, concat('QZX', s), id), 'a')"),
    ],
)
def test_what_an_error_says_holds_no_literal(driver: Driver, condition: str | None, column: str) -> None:
    """Spark's own words: the value, the statement that it quotes, the plan."""
    place = Place(driver, "parquet")

    def fail(spark: SparkSession) -> object:
        spark.conf.set("spark.sql.ansi.enabled", "true")
        try:
            return spark.sql(f"INSERT INTO {place.db}.b SELECT {column}, s FROM {place.db}.a WHERE s <> 'QZX'")
        finally:
            spark.conf.unset("spark.sql.ansi.enabled")

    error = the(StatementFailed, driver.events_of_failure(fail)).error
    assert re.findall("QZX|98765", error.model_dump_json()) == []
    assert condition is None or condition in (error.condition, *re.findall(r"\[([A-Z_.]+)\]", error.message))


def test_what_spark_fills_into_its_message_is_a_field_of_its_own(driver: Driver) -> None:
    """Types and settings stay, the value goes."""
    place = Place(driver, "parquet")

    def fail(spark: SparkSession) -> object:
        spark.conf.set("spark.sql.ansi.enabled", "true")
        try:
            return spark.sql(f"INSERT INTO {place.db}.b SELECT CAST('QZX' AS INT), s FROM {place.db}.a")
        finally:
            spark.conf.unset("spark.sql.ansi.enabled")

    error = the(StatementFailed, driver.events_of_failure(fail)).error
    assert (error.condition, error.sql_state) == ("CAST_INVALID_INPUT", "22018")
    assert error.parameters["expression"] == "'?'"
    assert error.parameters["sourceType"] == '"STRING"'
    assert error.parameters["targetType"] == '"INT"'


def test_a_view_and_a_temporary_view_are_seen_through(driver: Driver) -> None:
    place = Place(driver, "parquet")
    driver.run(
        f"CREATE VIEW {place.db}.v AS SELECT id AS i, s FROM {place.db}.a",
        f"CREATE OR REPLACE TEMPORARY VIEW t AS SELECT i AS j, s FROM {place.db}.v",
    )
    events = driver.events_of(f"INSERT INTO {place.db}.b SELECT j, s FROM t")
    assert _named(the(JobLineage, events), place) == set(SAME)


def test_a_cached_table_is_seen_through(driver: Driver) -> None:
    place = Place(driver, "parquet")
    driver.run(f"CACHE TABLE {place.db}.a")
    events = driver.events_of(f"INSERT INTO {place.db}.b SELECT id, s FROM {place.db}.a")
    assert [each.dataset for each in the(Committed, events).inputs] == [place.dataset("a")]
    driver.run(f"UNCACHE TABLE {place.db}.a")


def test_a_checkpoint_is_seen_through(driver: Driver) -> None:
    place = Place(driver, "parquet")
    events = driver.events_of(
        lambda spark: (
            spark.sql(f"SELECT id * 2 AS d, s FROM {place.db}.a WHERE id > 0")
            .localCheckpoint()
            .selectExpr("d AS id", "s")
            .write.insertInto(f"{place.db}.b")
        )
    )
    committed, lineage = the(Committed, events), the(JobLineage, events)
    assert [each.dataset for each in committed.inputs] == [place.dataset("a")]
    assert committed.outputs[0].made_from == (0,)
    assert _named(lineage, place) == {"id <- TRANSFORMATION a.id", "s <- a.s", "~FILTER a.id"}


def test_what_pandas_on_spark_numbers_is_followed(driver: Driver) -> None:
    """It begins with a number for each row, and all edges were lost with that."""
    place = Place(driver, "parquet")

    def write(spark: SparkSession) -> None:
        frame: Any = spark.sql(f"SELECT id + 1 AS id, s FROM {place.db}.a")
        numbered = DataFrame(frame._jdf.withSequenceColumn("__index_level_0__"), spark)
        numbered.select("id", "s").write.insertInto(f"{place.db}.b")

    events = driver.events_of(write)
    assert not of(Gap, events)
    assert _named(the(JobLineage, events), place) == {"id <- TRANSFORMATION a.id", "s <- a.s"}


def test_a_write_to_noop_is_nothing(driver: Driver) -> None:
    place = Place(driver, "parquet")
    for mode in ("overwrite", "append"):
        events = driver.events_of(
            lambda spark, mode=mode: spark.table(f"{place.db}.a").write.format("noop").mode(mode).save()  # type: ignore[misc]
        )
        assert events == []


CHECKPOINTS: dict[str, tuple[Callable[[Any, Any, Any], Any], set[str]]] = {
    "two that are joined": (
        lambda a, b, _: a.localCheckpoint().alias("a").join(b.localCheckpoint().alias("b"), "id").select("id", "b.s"),
        {"id <- a.id", "s <- b.s", "~JOIN a.id", "~JOIN b.id"},
    ),
    "two that are united": (
        lambda a, b, _: a.localCheckpoint().selectExpr("id", "s").union(b.localCheckpoint()),
        {"id <- a.id", "s <- a.s", "id <- b.id", "s <- b.s"},
    ),
    "a checkpoint of a checkpoint": (
        lambda a, b, _: (
            a.where("id > 0")
            .selectExpr("id * 2 AS d", "s")
            .localCheckpoint()
            .join(b.selectExpr("id AS i"), expr("d = i"), "left")
            .selectExpr("d + 1 AS e", "s")
            .localCheckpoint()
            .selectExpr("e AS id", "s")
        ),
        {"id <- TRANSFORMATION a.id", "s <- a.s", "~FILTER a.id", "~JOIN a.id", "~JOIN b.id"},
    ),
    "an RDD of the user's beside a checkpoint": (
        lambda a, _, rdd: a.localCheckpoint().join(rdd, "id").select("id", "t"),
        {"id <- a.id", "s <- LogicalRDD.t", "~JOIN a.id", "~JOIN LogicalRDD.id"},
    ),
}


@pytest.mark.parametrize("name", CHECKPOINTS)
def test_each_checkpoint_is_followed_by_itself(driver: Driver, name: str) -> None:
    """Two in one statement gave edges to the wrong table, or none."""
    place = Place(driver, "parquet")
    driver.run(f"CREATE TABLE {place.db}.c (id INT, s STRING) USING parquet")
    query, expected = CHECKPOINTS[name]

    def write(spark: SparkSession) -> None:
        rdd: Any = spark.createDataFrame(spark.sparkContext.parallelize([(1, "x")]), "id INT, t STRING")
        query(spark.table(f"{place.db}.a"), spark.table(f"{place.db}.b"), rdd).write.insertInto(f"{place.db}.c")

    events = driver.events_of(write)
    lineage = the(JobLineage, events)
    assert not of(Gap, events)
    assert edges(lineage) == expected
    named = {each.table.table if each.table else each.opaque for each in lineage.inputs}
    assert named == {source.partition(".")[0].split()[-1] for source in expected}


def test_rows_out_of_an_rdd_are_opaque_beside_the_files_that_it_shows(driver: Driver) -> None:
    place = Place(driver, "parquet")

    def write(spark: SparkSession) -> None:
        frame: Any = spark.table(f"{place.db}.a")
        spark.createDataFrame(frame.rdd.map(tuple), "id INT, s STRING").write.insertInto(f"{place.db}.b")

    files, rest = the(Committed, driver.events_of(write)).inputs
    assert (files.dataset, files.opaque) == (place.dataset("a"), None)
    assert (rest.dataset, rest.opaque) == (None, "LogicalRDD")


def _bound(
    statement: str | Callable[[SparkSession, Place], object], place: Place
) -> str | Callable[[SparkSession], object]:
    if isinstance(statement, str):
        return statement.format(db=place.db, path=place.path, format=place.format)
    return lambda spark: statement(spark, place)


def _named(lineage: JobLineage, place: Place) -> set[str]:
    """Edges with the last part of a dataset's path as its name, whether it was read as a table or not."""
    return {edge.replace(f"{place.home}/", "") for edge in edges(lineage)}


@pytest.mark.smoke
def test_javac_agrees(driver: Driver, tmp_path: Path) -> None:
    assert not complaints_of_javac(driver.spark.sparkContext, tmp_path)
