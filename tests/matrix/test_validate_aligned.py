"""`headwater validate JOB@DATA_VERSION --aligned` on real tables: a barrier is played again by the job's own script,
on the snapshots that it had, and no file of a real table changes. The tables have grown since, and the job has gone on.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from headwater.cli.exits import Exit
from tests.kit.cases.validation import FORMATS, ValidationPlace

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]

SCRIPT: Final = """
import sys
from functools import partial
from pyspark.sql import SparkSession
from headwater import versions

db, *more = sys.argv[1:]
spark = SparkSession.builder.appName("aligned").getOrCreate()
if more and more[0].isdigit():
    spark.sql(f"INSERT INTO {db}.orders VALUES ({more[0]}, 50)")
WRONG = "+ 1" if "bug" in more else ""

def step(batch):
    new = batch.changes("orders").selectExpr("id", f"amount {WRONG} AS amount")
    batch.write(f"{db}.appended", new.writeTo(f"{db}.appended").append)
    count = batch.state("orders").count()
    merge = (
        f"MERGE INTO {db}.total t USING (SELECT 0 AS k, {count}L {WRONG} AS c) s ON t.k = s.k "
        "WHEN MATCHED THEN UPDATE SET c = t.c + s.c"
    )
    batch.write(f"{db}.total", partial(spark.sql, merge))

for name in ("another", "revenue"):
    place = {"checkpoint": f"checkpoints/{name}", "store": "lineage.db"}
    query = versions.aligned_query("shops", {"orders": f"{db}.orders"}, name=name, spark=spark, **place)
    query.run(step if name == "revenue" else lambda batch: None)
spark.stop()
"""


ALIGNABLE: Final = ("iceberg", "delta", "paimon")


@pytest.fixture(scope="module", params=[pytest.param(each, marks=pytest.mark.needs(each)) for each in ALIGNABLE])
def place(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, java_home: Path) -> ValidationPlace:
    """The data versions 1, 2 and 3 have one, two and three orders."""
    using = request.param
    extensions, db = FORMATS[using]
    found = ValidationPlace(tmp_path_factory.mktemp(using), java_home, extensions, db, using)
    found.place.script(SCRIPT, "aligned.py")
    key = "TBLPROPERTIES ('primary-key' = 'k', 'bucket' = '1')" if using == "paimon" else ""
    before = [
        f"CREATE DATABASE {db}",
        f"CREATE TABLE {db}.orders (id INT, amount INT) USING {using}",
        f"CREATE TABLE {db}.appended (id INT, amount INT) USING {using}",
        f"CREATE TABLE {db}.total (k INT, c BIGINT) USING {using} {key}",
        f"INSERT INTO {db}.total VALUES (0, 100)",
        f"INSERT INTO {db}.orders VALUES (1, 10)",
    ]
    after = [f"INSERT INTO {db}.orders VALUES (9, 9)", f"INSERT INTO {db}.appended VALUES (7, 7)"]
    found.record(before, [[], ["2"], ["3"]], after, "aligned.py")
    return found


def test_a_barrier_is_played_again_by_the_name_of_its_job(place: ValidationPlace) -> None:
    """It finds a source that is read as it is now or whole, a sink that begins with what it has now or with nothing,
    and one that is written."""
    files, sink = place.files(), ["--aligned", "--sink", f"{place.database}.appended"]
    ended, answer = place.validate("revenue@2", "", *sink, script="aligned.py")
    assert ended.code == Exit.DONE, (answer, ended.err[-3000:])
    assert [answer["rows"][each] for each in ("recorded", "result", "equal")] == [2, 2, 2]
    assert place.files() == files


def test_a_changed_function_shows_in_a_sink_that_it_merges_into(place: ValidationPlace) -> None:
    """It finds a barrier that isn't the newest one that the job has committed, and a total that begins at nothing."""
    files, sink = place.files(), ["--aligned", "--sink", f"{place.database}.total", "--key", "k"]
    ended, answer = place.validate("revenue", "bug", *sink, script="aligned.py")
    assert ended.code == Exit.FAILED, (answer, ended.err[-3000:])
    assert answer["different"] == [{"key": "k=0", "column": "c", "recorded": "106", "result": "107"}]
    assert place.files() == files
