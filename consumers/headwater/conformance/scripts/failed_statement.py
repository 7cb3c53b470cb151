"""Statements that fail: one in its tasks, one in its analysis. They write nothing."""

from scenario_run import ScenarioRun


def play(it: ScenarioRun) -> None:
    it.table("orders", "lake.sales.orders")
    it.table("report", "lake.sales.report")
    it.create("orders", "id BIGINT, amount DOUBLE", "(1L, 10D)", "(2L, -1D)")
    it.create("report", "id BIGINT, amount DOUBLE")
    with it.step("in_tasks", fails=True):
        it.sql(
            "INSERT INTO lake.sales.report "
            "SELECT id, IF(amount < 0, CAST(raise_error('negative') AS DOUBLE), amount) FROM lake.sales.orders"
        )
    with it.step("in_analysis", fails=True):
        it.sql("INSERT INTO lake.sales.report SELECT id, price FROM lake.sales.orders")
    with it.step("afterwards"):
        it.sql("INSERT INTO lake.sales.report SELECT id, amount FROM lake.sales.orders")
    it.version("report@1")
