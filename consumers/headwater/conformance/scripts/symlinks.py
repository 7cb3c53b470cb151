"""One dataset under two names: written by the table's name, read by its path."""

from pathlib import Path

from scenario_run import ScenarioRun


def play(it: ScenarioRun) -> None:
    place = it.directory / "files" / "orders"
    it.table("orders", "spark_catalog.default.orders", place)
    it.table("events", "lake.sales.events")
    copy = it.path("copy", "copy")
    it.create("events", "id BIGINT, amount DOUBLE", "(1L, 10D)")
    it.sql(f"CREATE TABLE orders (id BIGINT, amount DOUBLE) USING parquet LOCATION '{Path(place)}'")
    with it.step("by_name"):
        it.sql("INSERT INTO orders SELECT id, amount FROM lake.sales.events")
    with it.step("by_path"):
        it.spark.read.parquet(str(place)).write.parquet(copy)
