"""INSERT OVERWRITE of a whole table, after an append to it."""

from scenario_run import ScenarioRun


def play(it: ScenarioRun) -> None:
    it.table("orders", "lake.sales.orders")
    it.table("report", "lake.sales.report")
    it.create("orders", "id BIGINT, amount DOUBLE", "(1L, 10D)", "(2L, 20D)")
    it.create("report", "id BIGINT, amount DOUBLE")
    with it.step("append"):
        it.spark.table("lake.sales.orders").filter("id = 1").writeTo("lake.sales.report").append()
    it.version("report@1")
    with it.step("overwrite"):
        it.sql("INSERT OVERWRITE lake.sales.report SELECT id, amount FROM lake.sales.orders")
    it.version("report@2")
