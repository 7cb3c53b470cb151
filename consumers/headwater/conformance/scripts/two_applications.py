"""Two applications that work on one table, one after the other."""

from scenario_run import ScenarioRun


def play(it: ScenarioRun) -> None:
    it.table("orders", "lake.sales.orders")
    it.table("report", "lake.sales.report")
    it.create("orders", "id BIGINT, amount DOUBLE", "(1L, 10D)")
    it.create("report", "id BIGINT, amount DOUBLE")
    with it.step("first"):
        it.sql("INSERT INTO lake.sales.report SELECT id, amount FROM lake.sales.orders")
    it.version("report@1")
    it.restart()
    with it.step("second"):
        it.sql("INSERT INTO lake.sales.orders SELECT id + 1, amount FROM lake.sales.report")
    it.version("orders@2")
