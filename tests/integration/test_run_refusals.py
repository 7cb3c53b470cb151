"""A dry run by `headwater run --redirect` whose script catches what the lens refused and goes on.

Finds an end that looks like that of a run in which everything was done.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from headwater.cli.exits import Exit
from tests.kit.drivers import BIN, Place

pytestmark = [pytest.mark.spark, pytest.mark.slow]

JOB = """
import sys, threading
from pyspark.sql import SparkSession
spark = SparkSession.builder.getOrCreate()

def write(table):
    try:
        spark.sql(f"CREATE TABLE {table} (id INT) USING parquet")
    except Exception:
        print("went on without", table)

for table in sys.argv[2:]:
    write(table)
threading.Thread(target=lambda: write("of_a_thread") if sys.argv[2:] else None).start()
if sys.argv[1] == "raise":
    raise ValueError("an error of its own")
spark.stop()
sys.exit(int(sys.argv[1]))
"""


@pytest.mark.parametrize(
    ("end", "tables", "code"),
    [
        pytest.param("0", ["real"], Exit.JOB_FAILED, id="swallowed"),
        pytest.param("0", [], Exit.DONE, id="nothing refused", marks=pytest.mark.long),
        pytest.param("5", ["real"], 5, id="a code of its own", marks=pytest.mark.long),
        pytest.param("raise", ["real"], Exit.FAILED, id="an error of its own", marks=pytest.mark.long),
    ],
)
def test_what_was_refused_is_listed_at_the_end(
    tmp_path: Path, java_home: Path, end: str, tables: list[str], code: int
) -> None:
    place = Place(tmp_path, java_home)
    redirect = ["--redirect", "spark_catalog.default.out=spark_catalog.default.scratch"]
    ended = place.run(BIN / "headwater", "run", *redirect, place.script(JOB), end, *tables)
    assert ended.code == code, ended.err[-3000:]
    assert ended.out.count("went on without") == (2 if tables else 0)
    _, listed, what = ended.err.rpartition("headwater: 2 refused under the lens")
    assert bool(listed) is bool(tables)
    if tables:
        assert ("went on without it, so it did less" in what) is (code == Exit.JOB_FAILED)
        assert "spark_catalog.default.real" in what
        assert "spark_catalog.default.of_a_thread" in what
    (status,) = (each for each in ended.of("JobStatusChanged") if each["status"] != "RUNNING")
    assert (status["status"], status["exit_code"]) == ("FINISHED" if code == 0 else "FAILED", code)
