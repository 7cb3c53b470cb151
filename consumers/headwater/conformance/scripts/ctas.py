"""CREATE TABLE AS SELECT with a filter and an aggregate."""

from scenario_run import ScenarioRun


def play(it: ScenarioRun) -> None:
    it.table("orders", "lake.sales.orders")
    it.table("daily", "lake.sales.daily")
    it.create(
        "orders",
        "id BIGINT, day DATE, amount DECIMAL(10, 2), status STRING",
        "(1L, DATE'2026-03-01', 10.00BD, 'paid')",
        "(2L, DATE'2026-03-02', 20.00BD, 'open')",
    )
    with it.step("ctas"):
        it.sql(
            "CREATE TABLE lake.sales.daily USING iceberg AS "
            "SELECT day, sum(amount) AS amount FROM lake.sales.orders WHERE status = 'paid' GROUP BY day"
        )
    it.version("daily@1")
