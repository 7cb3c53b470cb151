"""A job of an RDD one of whose tasks fails and is tried again, which needs a driver that tries again."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from headwater.events import Committed
from tests.kit.spark.driver import PLAIN, driver_with, the

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
