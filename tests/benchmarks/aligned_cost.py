"""`python -m tests.benchmarks.aligned_cost`: what a barrier of an aligned job costs beside a micro-batch.

Both do the same work once for each snapshot of a table: they append its rows to one table, and add to a total in
another by MERGE. The one is an aligned query, the other `foreachBatch` of a streaming query that takes a file at a time
and makes its appends idempotent as Delta's documentation has it. Both run in one session, by turns.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from headwater import local
from headwater.versions.aligned import AlignedBatch, aligned_query
from tests.kit.versions.aligned import warehouse_session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_FILES: Final = {"delta": "maxFilesPerTrigger", "iceberg": "streaming-max-files-per-micro-batch"}
_PLACES: Final = {"delta": "default", "iceberg": "ice.db"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--barriers", type=int, default=20, help="snapshots of the source in each turn")
    parser.add_argument("--turns", type=int, default=4)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory, warehouse_session(local.java().home, Path(directory)) as spark:
        spark.sql("CREATE NAMESPACE IF NOT EXISTS ice.db")
        for form in _FILES:
            _measure(spark, Path(directory), form, given.barriers, given.turns)


def _measure(spark: SparkSession, place: Path, form: str, barriers: int, turns: int) -> None:
    source = f"{_PLACES[form]}.source"
    spark.sql(f"CREATE TABLE {source} (id INT, v STRING) USING {form}")
    took: dict[str, list[float]] = {"aligned": [], "foreachBatch": []}
    ways: dict[str, Callable[..., list[float]]] = {"aligned": _aligned, "foreachBatch": _by_batches}
    for way in ways:
        spark.sql(f"CREATE TABLE {_PLACES[form]}.{way}_rows (id INT, v STRING) USING {form}")
        spark.sql(f"CREATE TABLE {_PLACES[form]}.{way}_total (k INT, c BIGINT) USING {form}")
        spark.sql(f"INSERT INTO {_PLACES[form]}.{way}_total VALUES (0, 0)")
    for turn in range(turns):
        for number in range(barriers):
            spark.sql(f"INSERT INTO {source} VALUES ({turn * barriers + number}, 'a')")
        for way, run in ways.items():
            began = run(spark, place, form)
            if turn:  # the first one warms the JVM, and begins with all rows
                took[way] += [after - before for before, after in pairwise(began)]
    rows = {way: spark.table(f"{_PLACES[form]}.{way}_rows").count() for way in ways}
    assert set(rows.values()) == {turns * barriers}, rows
    medians = {way: statistics.median(found) * 1000 for way, found in took.items()}
    ratio = medians["aligned"] / medians["foreachBatch"]
    print(
        f"{form}: aligned {medians['aligned']:.0f} ms a barrier, foreachBatch {medians['foreachBatch']:.0f} ms, "
        f"ratio {ratio:.2f} ({len(took['aligned'])} barriers, {len(took['foreachBatch'])} batches)",
        flush=True,
    )


def _aligned(spark: SparkSession, place: Path, form: str) -> list[float]:
    """Return when each barrier began, and when the last one ended."""
    began: list[float] = []
    rows, total = (f"{_PLACES[form]}.aligned_{each}" for each in ("rows", "total"))

    def step(batch: AlignedBatch) -> None:
        began.append(time.perf_counter())
        added = batch.changes("source")
        batch.write(rows, added.writeTo(rows).append)
        batch.write(total, partial(spark.sql, _merge(total, added.count())))

    query = aligned_query(
        f"cost {form}",
        {"source": f"{_PLACES[form]}.source"},
        name=f"cost {form}",
        checkpoint=str(place / f"aligned {form}"),
        store=str(place / "store.db"),
        spark=spark,
    )
    query.run(step)
    return began


def _by_batches(spark: SparkSession, place: Path, form: str) -> list[float]:
    began: list[float] = []
    rows, total = (f"{_PLACES[form]}.foreachBatch_{each}" for each in ("rows", "total"))

    def step(added: DataFrame, number: int) -> None:
        began.append(time.perf_counter())
        added.writeTo(rows).options(txnAppId=f"cost {form}", txnVersion=str(number)).append()
        spark.sql(_merge(total, added.count()))

    stream = spark.readStream.option(_FILES[form], "1").table(f"{_PLACES[form]}.source")
    writer: Any = stream.writeStream.foreachBatch(step)
    query = writer.option("checkpointLocation", str(place / f"batches {form}")).start()
    try:
        query.processAllAvailable()
    finally:
        query.stop()
    return began


def _merge(total: str, count: int) -> str:
    return (
        f"MERGE INTO {total} t USING (SELECT 0 AS k, {count}L AS c) s ON t.k = s.k "
        "WHEN MATCHED THEN UPDATE SET c = t.c + s.c"
    )


if __name__ == "__main__":
    main()
