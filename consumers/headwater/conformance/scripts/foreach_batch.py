"""A stream whose micro-batches are written into two tables by foreachBatch."""

from pathlib import Path

from pyspark.sql import DataFrame
from scenario_run import ScenarioRun


def write(batch: DataFrame, _number: int) -> None:
    batch.filter("amount < 100").writeTo("lake.sales.small").append()
    batch.filter("amount >= 100").writeTo("lake.sales.large").append()


def play(it: ScenarioRun) -> None:
    landing = Path(it.path("landing", "landing"))
    landing.mkdir(parents=True)
    (landing / "1.json").write_text('{"id": 1, "amount": 10}\n{"id": 2, "amount": 200}\n')
    it.table("small", "lake.sales.small")
    it.table("large", "lake.sales.large")
    it.create("small", "id BIGINT, amount DOUBLE")
    it.create("large", "id BIGINT, amount DOUBLE")
    with it.step("stream"):
        files = it.spark.readStream.schema("id BIGINT, amount DOUBLE").json(str(landing))
        query = (
            files.writeStream.queryName("orders_in")
            .trigger(availableNow=True)
            .option("checkpointLocation", str(it.directory / "checkpoint"))
            .foreachBatch(write)
            .start()
        )
        if not query.awaitTermination(120):
            raise AssertionError("the stream didn't end")
    it.version("small@1")
    it.version("large@1")
