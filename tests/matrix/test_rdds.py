"""Jobs of RDDs, which are no statements: what they write is reported where Hadoop's committer says that it is there."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql.functions import broadcast

from headwater.events import Committed, DatasetId, Format, Gap, JobLineage
from headwater.events.health import GapReason
from headwater.events.jobs import CommitKind, OverwriteScope
from headwater.listeners.capture.driver_listener import exclude_from_capture
from tests.kit.spark.driver import HOST, PLAIN, Driver, edges, of, shared_driver_fixture, the

pytestmark = [pytest.mark.xdist_group("spark-plain")]

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_TEXT = "org.apache.hadoop.mapred.TextOutputFormat"
_NEW_TEXT = "org.apache.hadoop.mapreduce.lib.output.TextOutputFormat"
_NEW_SEQUENCE = "org.apache.hadoop.mapreduce.lib.output.SequenceFileOutputFormat"


driver = shared_driver_fixture(PLAIN)


SAVES: dict[str, tuple[Callable[[Any, str], object], Format]] = {
    "text": (lambda rdd, path: rdd.map(str).saveAsTextFile(path), Format.TEXT),
    "hadoop": (lambda rdd, path: rdd.map(lambda i: (i, i)).saveAsHadoopFile(path, _TEXT), Format.TEXT),
    "new api": (lambda rdd, path: rdd.map(lambda i: (i, i)).saveAsNewAPIHadoopFile(path, _NEW_TEXT), Format.TEXT),
    "sequence": (lambda rdd, path: rdd.map(lambda i: (i, i)).saveAsSequenceFile(path), Format.OTHER),
    "pickle": (lambda rdd, path: rdd.saveAsPickleFile(path), Format.OTHER),
    "dataset": (
        lambda rdd, path: rdd.map(lambda i: (i, i)).saveAsNewAPIHadoopDataset(
            {
                "mapreduce.job.outputformat.class": _NEW_SEQUENCE,
                "mapreduce.job.output.key.class": "org.apache.hadoop.io.IntWritable",
                "mapreduce.job.output.value.class": "org.apache.hadoop.io.IntWritable",
                "mapreduce.output.fileoutputformat.outputdir": path,
            }
        ),
        Format.OTHER,
    ),
}


@pytest.mark.sample(2)
@pytest.mark.parametrize("how", SAVES)
def test_files_that_an_rdd_was_saved_in(driver: Driver, how: str) -> None:
    save, fmt = SAVES[how]
    path = driver.warehouse / driver.name()

    events = driver.events_of(lambda spark: save(spark.sparkContext.parallelize([1, 2, 3], 2), str(path)))

    assert (path / "_SUCCESS").exists()
    committed = the(Committed, events)
    (output,) = committed.outputs
    assert (output.dataset, output.format) == (DatasetId(namespace=f"file://{HOST}", name=str(path)), fmt)
    assert (output.commit_kind, output.replaced, output.made_from) == (CommitKind.APPEND, OverwriteScope.NOTHING, (0,))
    assert [(each.dataset, each.opaque) for each in committed.inputs] == [(None, "RDD")]
    assert output.rows == (3 if fmt is Format.TEXT else None)
    assert committed.job is not None
    assert committed.job.name.endswith("/".join(path.parts[-2:]))
    assert not of(Gap, events)


class Landing:
    """A directory with two text files, of two lines and of one; and a table of Spark's, and one of two partitions."""

    def __init__(self, driver: Driver) -> None:
        self.driver = driver
        self.root = driver.warehouse / driver.name()
        (self.root / "text").mkdir(parents=True)
        (self.root / "text" / "orders.csv").write_text("1,a\n2,b\n")
        (self.root / "text" / "customers.csv").write_text("1,c\n")
        rows = driver.spark.range(4).selectExpr("id", "id % 2 AS day")
        rows.coalesce(1).write.parquet(self.path("flat"))
        rows.write.partitionBy("day").parquet(self.path("parted"))

    def path(self, name: str) -> str:
        return str(self.root / name)

    def named(self, inputs: Iterable[Any]) -> list[str]:
        """Paths below the root, and what is opaque."""
        return [each.dataset.name.removeprefix(f"{self.root}/") if each.dataset else each.opaque for each in inputs]


def split(line: str) -> list[str]:
    return line.split(",")


def pairs(row: Any) -> list[str]:
    return [str(row[0]), str(row[1])]


WRITABLES = ("org.apache.hadoop.io.LongWritable", "org.apache.hadoop.io.Text")
TEXT_INPUT = "org.apache.hadoop.mapreduce.lib.input.TextInputFormat"
RDD_READS: dict[str, tuple[Callable[[Any, Landing], Any], list[str]]] = {
    "a directory": (lambda s, p: s.textFile(p.path("text")).map(split), ["text"]),
    "a file": (lambda s, p: s.textFile(p.path("text/orders.csv")).map(split), ["text/orders.csv"]),
    "two files": (lambda s, p: s.textFile(p.path("text/orders.csv") + "," + p.path("text/customers.csv")), ["text"]),
    "a pattern": (lambda s, p: s.textFile(p.path("text/*.csv")).map(split), ["text"]),
    "a pattern of directories": (lambda s, p: s.textFile(p.path("t?xt")).map(split), ["text"]),
    "through a shuffle": (
        lambda s, p: s.textFile(p.path("text")).map(lambda line: (line[0], 1)).reduceByKey(lambda a, b: a + b),
        ["text"],
    ),
    "whole files": (lambda s, p: s.wholeTextFiles(p.path("text")), ["text"]),
    "the new API": (lambda s, p: s.newAPIHadoopFile(p.path("text"), TEXT_INPUT, *WRITABLES), ["text"]),
    "two that are joined": (
        lambda s, p: s.textFile(p.path("text/orders.csv")).map(split).join(s.textFile(p.path("text/customers.csv"))),
        ["text/customers.csv", "text/orders.csv"],
    ),
    "rows of the driver beside it": (
        lambda s, p: s.textFile(p.path("text")).union(s.parallelize(["4,d"])).map(split),
        ["text", "?"],
    ),
    "a cache": (lambda s, p: s.textFile(p.path("text")).map(split).cache(), ["text"]),
    "rows of the driver": (lambda s, _: s.parallelize([("1", "a")]), ["?"]),
    "a directory of files that Spark scans": (
        lambda _, p: p.driver.spark.read.parquet(p.path("flat")).rdd.map(pairs),
        ["flat", "?"],
    ),
    "partitions that Spark scans": (
        lambda _, p: p.driver.spark.read.parquet(p.path("parted")).where("day = 1").rdd.map(pairs),
        ["parted", "?"],
    ),
    "a file that Spark scans": (
        lambda _, p: p.driver.spark.read.csv(p.path("text/orders.csv")).rdd.map(pairs),
        ["text/orders.csv", "?"],
    ),
    "several files that Spark scans": (
        lambda _, p: p.driver.spark.read.csv(p.path("text")).rdd.map(pairs),
        ["text", "?"],
    ),
}


@pytest.mark.sample(4, keep=("a directory", "rows of the driver beside it"))
@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=pytest.mark.smoke) if n in {"a file", "a directory"} else n for n in RDD_READS]
)
def test_what_an_rdd_was_made_from(driver: Driver, name: str) -> None:
    """By hand: what was read, and whether that is all: by a job of the RDD's own, and by a statement over it."""
    landing = Landing(driver)
    make, expected = RDD_READS[name]
    rdd = make(driver.spark.sparkContext, landing)

    saved = the(Committed, driver.events_of(lambda _: rdd.map(str).saveAsTextFile(landing.path("saved"))))
    events = driver.events_of(
        lambda spark: spark.createDataFrame(rdd.map(lambda row: (str(row),)), "v STRING").write.json(
            landing.path("out")
        )
    )
    written = the(Committed, events)

    assert sorted(landing.named(saved.inputs)) == sorted("RDD" if each == "?" else each for each in expected)
    assert sorted(landing.named(written.inputs)) == sorted("LogicalRDD" if each == "?" else each for each in expected)
    assert saved.outputs[0].made_from == written.outputs[0].made_from == tuple(range(len(expected)))
    lines = [line for each in (landing.root / "saved").glob("part-*") for line in each.read_text().splitlines()]
    assert saved.outputs[0].rows == len(lines)
    lineage = the(JobLineage, events)
    assert edges(lineage) == ({"v <- LogicalRDD.v"} if "?" in expected else set())
    assert [gap.detail for gap in of(Gap, events)] == (
        [] if "?" in expected else ["columns can't be followed through LogicalRDD"]
    )


ORDERS, CUSTOMERS = ("text/orders.csv", 2, 8), ("text/customers.csv", 1, 4)
BOTH = ("text", 3, 12)
RDD_COUNTS: dict[str, tuple[Callable[[Any, Landing], Any], list[tuple[str, int | None, int | None]]]] = {
    "a directory": (lambda s, p: s.textFile(p.path("text"), 5), [BOTH]),
    "the new API": (lambda s, p: s.newAPIHadoopFile(p.path("text"), TEXT_INPUT, *WRITABLES), [BOTH]),
    "another format, of which a record is a file": (
        lambda s, p: s.wholeTextFiles(p.path("text")),
        [("text", None, 12)],
    ),
    "through a shuffle, and fewer partitions": (
        lambda s, p: s.textFile(p.path("text")).coalesce(1).map(lambda line: (line, 1)).groupByKey(),
        [BOTH],
    ),
    "rows of the driver beside it": (
        lambda s, p: s.textFile(p.path("text")).union(s.parallelize(["4,d"])).map(split),
        [BOTH, ("RDD", None, None)],
    ),
    "a stage for each": (
        lambda s, p: grouped(s, p.path("text/orders.csv")).union(grouped(s, p.path("text/customers.csv"))),
        [CUSTOMERS, ORDERS],
    ),
    "two in one stage": (
        lambda s, p: s.textFile(p.path("text/orders.csv")).union(s.textFile(p.path("text/customers.csv"))),
        [("text/customers.csv", None, None), ("text/orders.csv", None, None)],
    ),
    "one, for each row of another": (
        lambda s, p: s.parallelize([1, 2]).cartesian(s.textFile(p.path("text"))),
        [("text", None, None), ("RDD", None, None)],
    ),
    "a directory that Spark scans": (
        lambda _, p: p.driver.spark.read.csv(p.path("text")).rdd.map(pairs),
        [BOTH, ("RDD", None, None)],
    ),
    "through a shuffle of Spark's, which adaptive execution runs in a job before": (
        lambda _, p: p.driver.spark.read.csv(p.path("text")).groupBy("_c0").count().rdd.map(pairs),
        [("text", None, None), ("RDD", None, None)],
    ),
    "two that Spark scans in one stage": (
        lambda _, p: with_itself(p.driver.spark.read.csv(p.path("text"))).rdd.map(pairs),
        [("text", None, None), ("RDD", None, None)],
    ),
    "a cache of what Spark scans": (
        lambda _, p: p.driver.spark.read.csv(p.path("text")).cache().rdd.map(pairs),
        [("text", None, None), ("RDD", None, None)],
    ),
    "a cache": (lambda s, p: s.textFile(p.path("text")).map(split).cache(), [("text", None, None)]),
    "itself": (lambda s, p: with_itself(s.textFile(p.path("text")).map(split)), [("text", None, None)]),
    "what was read twice": (
        lambda s, p: grouped(s, p.path("text")).union(grouped(s, p.path("text"))),
        [("text", None, None)],
    ),
}


def grouped(context: Any, path: str) -> Any:
    return context.textFile(path).map(split).groupByKey()


def with_itself(rdd: Any) -> Any:
    return rdd.union(rdd)


@pytest.mark.sample(4, keep=("a directory", "a stage for each", "two in one stage", "one, for each row of another"))
@pytest.mark.parametrize("name", RDD_COUNTS)
def test_how_much_was_read_of_files(driver: Driver, name: str) -> None:
    """By hand: the rows and bytes of each input, or none where Spark's counts aren't those of one input, read once."""
    landing = Landing(driver)
    make, expected = RDD_COUNTS[name]
    rdd = make(driver.spark.sparkContext, landing)

    committed = the(Committed, driver.events_of(lambda _: rdd.map(str).saveAsTextFile(landing.path("saved"))))

    found = zip(landing.named(committed.inputs), committed.inputs, strict=True)
    assert sorted((name, each.rows, each.bytes) for name, each in found) == sorted(expected)


def test_what_another_job_has_shuffled_is_not_counted_again(driver: Driver) -> None:
    """The stage that read the files is skipped."""
    landing = Landing(driver)
    rdd = driver.spark.sparkContext.textFile(landing.path("text")).map(lambda line: (line, 1)).groupByKey()

    first = the(Committed, driver.events_of(lambda _: rdd.saveAsTextFile(landing.path("one"))))
    second = the(Committed, driver.events_of(lambda _: rdd.saveAsTextFile(landing.path("other"))))

    assert [(each.rows, each.bytes) for each in (*first.inputs, *second.inputs)] == [(3, 12), (None, None)]


def test_a_scan_of_a_table_that_has_a_log_stays_opaque(driver: Driver) -> None:
    """Which version of it was read isn't to be seen in the files: what has no version isn't that table."""
    landing = Landing(driver)
    (landing.root / "flat" / "_delta_log").mkdir()
    rows = driver.spark.read.parquet(landing.path("flat"))

    events = driver.events_of(lambda _: rows.rdd.map(pairs).saveAsTextFile(landing.path("saved")))

    assert landing.named(the(Committed, events).inputs) == ["RDD"]


def test_what_a_plan_below_an_rdd_broadcasts_is_not_claimed_to_be_all(driver: Driver) -> None:
    landing = Landing(driver)
    read = driver.spark.read.parquet
    joined = read(landing.path("flat")).join(broadcast(read(landing.path("parted"))), "id")

    events = driver.events_of(lambda _: joined.rdd.map(pairs).saveAsTextFile(landing.path("saved")))

    assert landing.named(the(Committed, events).inputs) == ["flat", "RDD"]


def test_a_job_of_a_thread_that_was_born_in_a_statement(driver: Driver) -> None:
    """Such a thread gives the statement's number with all its jobs; when that is over, it says nothing of them."""
    done = the(
        Committed, driver.events_of(lambda spark: spark.range(1).write.parquet(str(driver.warehouse / driver.name())))
    )
    path = driver.warehouse / driver.name()

    def save(spark: SparkSession) -> None:
        spark.sparkContext.setLocalProperty("spark.sql.execution.id", str(done.statement))
        try:
            spark.sparkContext.parallelize(["a"], 1).saveAsTextFile(str(path))
        finally:
            spark.sparkContext.setLocalProperty("spark.sql.execution.id", None)  # type: ignore[arg-type]

    (output,) = the(Committed, driver.events_of(save)).outputs
    assert output.dataset == DatasetId(namespace=f"file://{HOST}", name=str(path))


def test_what_failed_and_what_was_there_already_is_no_output(driver: Driver) -> None:
    path = driver.warehouse / driver.name()
    driver.events_of(lambda spark: spark.sparkContext.parallelize(["a"], 1).saveAsTextFile(str(path)))
    assert (
        driver.events_of_failure(lambda spark: spark.sparkContext.parallelize(["b"], 1).saveAsTextFile(str(path))) == []
    )

    def fail(_: object) -> str:
        raise ValueError

    other = driver.warehouse / driver.name()
    events = driver.events_of_failure(
        lambda spark: spark.sparkContext.parallelize([1], 1).map(fail).saveAsTextFile(str(other))
    )
    assert events == []
    assert not (other / "_SUCCESS").exists()


def test_rows_that_are_given_to_code_are_reported_once_for_each_place(driver: Driver) -> None:
    def nothing(_: object) -> None:
        return None

    def thrice(spark: Any) -> None:
        rdd = spark.sparkContext.parallelize([1, 2], 1)
        for _ in range(3):
            rdd.foreach(nothing)
        rdd.foreachPartition(nothing)
        spark.range(2).foreachPartition(nothing)

    events = driver.events_of(thrice)

    assert [gap.reason for gap in of(Gap, events)] == [GapReason.NOT_SUPPORTED] * 3
    words = [gap.detail.split(" at test_rdds.py:")[0] for gap in of(Gap, events)]
    assert words == ["foreach", "foreachPartition", "foreachPartition"]
    assert "/" not in "".join(gap.detail for gap in of(Gap, events))
    assert driver.events_of(thrice) == []


def test_what_only_looks_and_what_statements_do_is_no_gap(driver: Driver) -> None:
    def look(spark: Any) -> None:
        rdd = spark.sparkContext.parallelize([1, 2], 1)
        rdd.map(str).collect()
        rdd.count()
        rdd.toLocalIterator()
        frame = spark.range(4)
        frame.rdd.map(str).take(1)
        frame.cache().count()
        frame.unpersist()
        spark._jsparkSession.range(3).toJavaRDD().count()
        list(frame.toLocalIterator())

    assert driver.events_of(look) == []
    path = str(driver.warehouse / driver.name())
    events = driver.events_of(lambda spark: spark.range(4).write.parquet(path))
    assert [each.kind for each in events] == ["JobLineage", "Committed"]
    streamed = driver.events_of(lambda spark: stream(spark, path, driver))
    assert not [gap for gap in of(Gap, streamed) if "RDD" in gap.detail]


def stream(spark: Any, path: str, driver: Driver) -> None:
    """A batch at a time, with rows that a function of the user's gets."""
    rows = spark.readStream.schema("id LONG").parquet(path)
    checkpoint = str(driver.warehouse / driver.name())
    writer = rows.writeStream.foreachBatch(lambda frame, _: frame.count()).option("checkpointLocation", checkpoint)
    query = writer.trigger(availableNow=True).start()
    assert query.awaitTermination(120)


def test_what_headwater_itself_does_is_no_job_of_the_users(driver: Driver) -> None:
    context = driver.spark.sparkContext
    path = str(driver.warehouse / driver.name())

    def ours(spark: Any) -> None:
        exclude_from_capture(context)
        try:
            context.parallelize(["a"], 1).saveAsTextFile(path)
        finally:
            context.clearJobTags()

    assert driver.events_of(ours) == []
