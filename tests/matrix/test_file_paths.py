"""Files that are read by name, by several paths, by a pattern, or in part: what is reported as what was read."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from headwater.events import Committed, Gap, JobLineage
from headwater.events.jobs import ReadMode
from tests.kit.spark.driver import HOST, PLAIN, Driver, edges, of, shared_driver_fixture, the
from tests.kit.spark.streams import Case, commits, run_fed

pytestmark = pytest.mark.xdist_group("spark-plain")

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SCHEMA = "id BIGINT, v STRING"


driver = shared_driver_fixture(PLAIN)


@pytest.fixture
def case(driver: Driver) -> Case:
    """Directories p1, p2 and p3 with a file each, and d with two partitions."""
    case = Case(driver)
    for name in ("p1", "p2", "p3"):
        feed(case, name)
    case.spark.range(4).selectExpr("id", "'a' AS v", "id % 2 AS day").write.partitionBy("day").parquet(case.path("d"))
    return case


def feed(case: Case, name: str) -> None:
    case.spark.range(1).coalesce(1).selectExpr("id", "'a' AS v").write.mode("append").parquet(case.path(name))


def first_file(case: Case, name: str) -> str:
    return str(min(Path(case.path(name)).glob("part-*")))


def view(case: Case, path: str) -> DataFrame:
    case.spark.sql(f"CREATE TEMPORARY VIEW {case.db} USING parquet OPTIONS (path '{path}')")
    return case.spark.table(case.db)


def below_base_path(case: Case, path: str) -> DataFrame:
    return case.spark.read.option("basePath", case.path("d")).parquet(path)


Read = Callable[[Case], "DataFrame"]
ONE = "p1/*.parquet"
"""In what is expected: the file that this pattern means."""
READS: dict[str, tuple[Read, tuple[str, ...]]] = {
    "two paths": (lambda c: c.spark.read.parquet(c.path("p1"), c.path("p2")), ("p1", "p2")),
    "a list": (lambda c: c.spark.read.load([c.path("p3"), c.path("p1")]), ("p1", "p3")),
    "a pattern": (lambda c: c.spark.read.parquet(c.path("p[12]")), ("p1", "p2")),
    "SQL on files": (lambda c: c.spark.sql(f"SELECT * FROM parquet.`{c.path('p*')}`"), ("p1", "p2", "p3")),
    "a view": (lambda c: view(c, c.path("p[12]")), ("p1", "p2")),
    "a file": (lambda c: c.spark.read.parquet(first_file(c, "p1")), (ONE,)),
    "a file that is loaded": (lambda c: c.spark.read.load(first_file(c, "p1")), (ONE,)),
    "a file in SQL": (lambda c: c.spark.sql(f"SELECT * FROM parquet.`{first_file(c, 'p1')}`"), (ONE,)),
    "a file in a view": (lambda c: view(c, first_file(c, "p1")), (ONE,)),
    "two files": (lambda c: c.spark.read.parquet(first_file(c, "p1"), first_file(c, "p2")), ("p1", "p2")),
    "a pattern of one file": (lambda c: c.spark.read.parquet(c.path("p1/part-*.parquet")), ("p1",)),
    # Spark's plan of SQL on files doesn't say that it was a pattern.
    "a pattern of one file in SQL": (lambda c: c.spark.sql(f"SELECT * FROM parquet.`{c.path('p1/part-*')}`"), (ONE,)),
    "a pattern of files": (lambda c: c.spark.read.parquet(c.path("p[13]/part-*")), ("p1", "p3")),
    "a partition as it is": (lambda c: c.spark.read.parquet(c.path("d/day=1")), ("d/day=1",)),
    "a partition of a table": (lambda c: below_base_path(c, c.path("d/day=1")), ("d",)),
    "partitions by a pattern": (lambda c: below_base_path(c, c.path("d/day=*")), ("d",)),
    "a file of a partition": (lambda c: below_base_path(c, first_file(c, "d/day=0")), ("d",)),
}


@pytest.mark.sample(4, keep=("two paths", "a pattern", "a file", "a partition of a table"))
@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=pytest.mark.smoke) if n in {"two paths", "a file"} else n for n in READS]
)
def test_each_directory_that_is_read_is_an_input(case: Case, name: str) -> None:
    """The truth is written by hand: what the reader was given, and that each has both columns."""
    read, given = READS[name]
    expected = [str(Path(first_file(case, "p1")).relative_to(case.path(""))) if each is ONE else each for each in given]
    events = case.driver.events_of(lambda _: read(case).select("id", "v").write.parquet(case.path("out")))
    committed = the(Committed, events)
    assert paths(committed.inputs) == sorted(case.path(each) for each in expected)
    assert {each.mode for each in committed.inputs} == {ReadMode.STATE}
    assert committed.outputs[0].made_from == tuple(range(len(expected)))
    assert edges(the(JobLineage, events)) == columns_of(case, expected)
    assert of(Gap, events) == []


def test_two_files_of_one_directory_are_two_datasets(case: Case) -> None:
    """Each gave its own columns: with the directory as the input of both, edges led from columns that it hasn't."""
    landing = Path(case.path("landing"))
    landing.mkdir()
    (landing / "orders.csv").write_text("id,customer,amount\n1,7,10\n")
    (landing / "customers.csv").write_text("customer,name\n7,Ann\n")

    def join(spark: SparkSession) -> None:
        read = spark.read.option("header", "true").csv
        orders, customers = read(str(landing / "orders.csv")), read(str(landing / "customers.csv"))
        orders.join(customers, "customer").select("amount", "name").write.parquet(case.path("out"))

    events = case.driver.events_of(join)

    assert paths(the(Committed, events).inputs) == [str(landing / "customers.csv"), str(landing / "orders.csv")]
    assert {edge.replace(f"{landing}/", "") for edge in edges(the(JobLineage, events))} == {
        "amount <- orders.csv.amount",
        "name <- customers.csv.name",
        "~JOIN orders.csv.customer",
        "~JOIN customers.csv.customer",
    }


@pytest.mark.parametrize(
    ("is_pattern", "option", "expected"),
    [(True, "path", "{many}/x*"), (False, "paths", "51 from file:{many}/x10 to file:{many}/x60")],
    ids=["a pattern", "a list"],
)
def test_of_too_many_directories_what_they_have_in_common(
    case: Case, is_pattern: bool, option: str, expected: str
) -> None:
    names = [case.path(f"many/x{number}") for number in range(10, 61)]
    for name in names:
        shutil.copytree(case.path("p1"), name)
    given = [case.path("many/x*")] if is_pattern else names
    events = case.driver.events_of(
        lambda spark: spark.read.parquet(*given).select("id", "v").write.parquet(case.path("out"))
    )
    lineage = the(JobLineage, events)
    assert paths(lineage.inputs) == paths(the(Committed, events).inputs) == [case.path("many")]
    assert lineage.inputs[0].options[option] == expected.format(many=case.path("many"))
    assert edges(lineage) == columns_of(case, ["many"])


STREAMS: dict[str, tuple[str, bool, tuple[tuple[str, ...], ...]]] = {
    "directories": ("p[12]", False, (("p1", "p2"), ("p2",))),
    "files": ("p[12]/*.parquet", False, (("p1", "p2"), ("p2",))),
    "alternatives of several depths": ("{p2,d/day=1}", False, (("d/day=1", "p2"), ("p2",))),
    "partitions of a table": ("d/day=*", True, (("d",),)),
}


@pytest.mark.sample(1, keep=("directories",))
@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=pytest.mark.smoke) if n == "directories" else n for n in STREAMS]
)
def test_a_stream_by_a_pattern(case: Case, name: str) -> None:
    """What each micro-batch read: the second one gets a file of p2 only."""
    pattern, has_base, expected = STREAMS[name]
    options = {"basePath": case.path("d")} if has_base else {}
    frame = case.spark.readStream.schema(SCHEMA).options(**options).parquet(case.path(pattern)).select("id", "v")
    start = lambda: case.writer(frame).format("parquet").start(case.path("out"))  # noqa: E731
    events = case.events_of_steps(lambda: run_fed(start, lambda: feed(case, "p2")))
    found = commits(events)
    assert [paths(each.inputs) for each in found] == [sorted(map(case.path, batch)) for batch in expected]
    for each, batch in zip(found, expected, strict=True):
        assert {given.mode for given in each.inputs} == {ReadMode.CHANGES}
        assert edges(case.driver.lineage(each)) == columns_of(case, batch)
    assert [gap.detail for gap in of(Gap, events)] == []


def test_two_streams_by_patterns(case: Case) -> None:
    """Each of the streams has its own directories, and the watermark of one is that of all its directories."""
    stream = case.spark.readStream.schema("id TIMESTAMP, v STRING").format("csv")
    for name in ("c1", "c2", "c3"):
        case.spark.sql("SELECT TIMESTAMP'2026-01-01' AS id, 'a' AS v").write.csv(case.path(name))
    frame = stream.load(case.path("c[12]")).withWatermark("id", "1 second").union(stream.load(case.path("c[3]")))
    events = case.events_of(lambda: case.writer(frame).format("parquet").start(case.path("out")))
    (committed,) = commits(events)
    assert paths(committed.inputs) == [case.path(name) for name in ("c1", "c2", "c3")]
    marked = [each for each in case.driver.lineage(committed).inputs if each.watermarks]
    assert paths(marked) == [case.path("c1"), case.path("c2")]


def test_a_pattern_in_a_batch_of_a_function(case: Case) -> None:
    def write(batch: DataFrame, _: int) -> None:
        batch.write.parquet(case.path("out"))

    frame = case.spark.readStream.schema(SCHEMA).parquet(case.path("p[12]"))
    events = case.events_of(lambda: case.writer(frame).foreachBatch(write).start())
    (committed,) = commits(events)
    assert paths(committed.inputs) == [case.path("p1"), case.path("p2")]
    assert edges(case.driver.lineage(committed)) == columns_of(case, ["p1", "p2"])


def columns_of(case: Case, names: Sequence[str]) -> set[str]:
    return {f"{column} <- {case.path(name)}.{column}" for name in names for column in ("id", "v")}


def paths(places: object) -> list[str]:
    found = [each.dataset for each in places]  # type: ignore[attr-defined]
    assert all(each is not None and each.namespace == f"file://{HOST}" for each in found)
    return sorted(each.name for each in found)
