"""Columns of every kind: as they are, cast, computed, chosen, counted, aggregated, numbered in a window."""

from scenario_run import ScenarioRun


def play(it: ScenarioRun) -> None:
    it.table("orders", "lake.sales.orders")
    it.table("lines", "lake.sales.lines")
    it.table("customers", "lake.sales.customers")
    it.create(
        "orders",
        "id BIGINT, customer BIGINT, day DATE, amount DOUBLE, quantity INT, status STRING",
        "(1L, 7L, DATE'2026-03-01', 10D, 2, 'paid')",
        "(2L, 7L, DATE'2026-03-02', 20D, 1, 'open')",
    )
    with it.step("expressions"):
        it.sql(
            "CREATE TABLE lake.sales.lines USING iceberg AS SELECT id, CAST(amount AS STRING) AS amount_text, "
            "amount * quantity AS total, CASE WHEN status = 'paid' THEN amount ELSE 0D END AS paid, "
            "row_number() OVER (PARTITION BY customer ORDER BY day) AS nth FROM lake.sales.orders"
        )
    it.version("lines@1")
    with it.step("aggregates"):
        it.sql(
            "CREATE TABLE lake.sales.customers USING iceberg AS SELECT customer, count(*) AS orders, "
            "max(amount) AS largest FROM lake.sales.orders GROUP BY customer HAVING max(amount) > 5"
        )
    it.version("customers@1")
