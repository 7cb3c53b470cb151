"""A write of no rows: it makes a version all the same."""

from scenario_run import ScenarioRun


def play(it: ScenarioRun) -> None:
    it.table("orders", "lake.sales.orders")
    it.table("report", "lake.sales.report")
    empty = it.path("files", "empty")
    it.create("orders", "id BIGINT, amount DOUBLE", "(1L, 10D)")
    it.create("report", "id BIGINT, amount DOUBLE", "(9L, 9D)")
    with it.step("insert"):
        it.sql("INSERT INTO lake.sales.report SELECT id, amount FROM lake.sales.orders WHERE amount > 1000")
    it.version("report@2")
    with it.step("files"):
        it.spark.table("lake.sales.orders").filter("amount > 1000").write.parquet(empty)
