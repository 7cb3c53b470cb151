"""Jobs of RDDs that need a driver of their own: one that tries tasks again, and one that ends."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from headwater.events import Committed, Gap
from tests.kit.spark.driver import PLAIN, driver_with, of, the

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.long
def test_what_a_task_did_in_vain_is_not_counted(java_home: Path) -> None:
    """Spark adds what an attempt counted that failed: so many rows that it counts them before the end."""
    with driver_with(java_home, PLAIN, spark__master="local[2,3]") as driver:
        (driver.warehouse / "in").mkdir()
        (driver.warehouse / "in" / "lines.txt").write_text("x\n" * 2000)
        mark = driver.warehouse / "failed"

        def fail_once(lines: Iterable[str]) -> Iterable[str]:
            yield from lines
            if not mark.exists():
                mark.touch()
                raise ValueError

        def save(spark: SparkSession) -> None:
            rows = spark.sparkContext.textFile(str(driver.warehouse / "in"), 1).mapPartitions(fail_once)
            rows.saveAsTextFile(str(driver.warehouse / "out"))

        committed = the(Committed, driver.events_of(save))
        (read,), (written,) = committed.inputs, committed.outputs
        assert (read.rows, read.bytes, written.rows) == (None, None, None)


def test_files_without_a_mark_are_a_gap_when_the_driver_ends(java_home: Path) -> None:
    """The mark may come behind the job, so it is waited for; a driver that ends before says that it never came. In a
    driver of its own, as the Gap would come in the middle of others' events."""
    with driver_with(java_home, PLAIN) as driver:
        path = driver.warehouse / "out"
        conf = {
            "mapreduce.job.outputformat.class": "org.apache.hadoop.mapreduce.lib.output.TextOutputFormat",
            "mapreduce.output.fileoutputformat.outputdir": str(path),
            "mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
        }

        events = driver.events_of(
            lambda spark: spark.sparkContext.parallelize([("a", "b")], 1).saveAsNewAPIHadoopDataset(conf)
        )
        driver.capture.close(60)

        assert path.exists()
        assert events == []
        (gap,) = of(Gap, driver.bus.events)
        assert gap.detail.endswith("gives the rows of an RDD to files or a store that wasn't seen")
        assert not of(Committed, driver.bus.events)
