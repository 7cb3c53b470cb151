"""A write through two views, one made from the other."""

from scenario_run import ScenarioRun


def play(it: ScenarioRun) -> None:
    it.table("orders", "lake.sales.orders")
    it.view("paid", "spark_catalog.default.paid")
    it.view("totals", "spark_catalog.default.totals")
    it.table("report", "lake.sales.report")
    it.create("orders", "id BIGINT, customer BIGINT, amount DOUBLE, status STRING", "(1L, 7L, 10D, 'paid')")
    it.create("report", "customer BIGINT, total DOUBLE")
    with it.step("first_view"):
        it.sql("CREATE VIEW paid AS SELECT customer, amount FROM lake.sales.orders WHERE status = 'paid'")
    with it.step("second_view"):
        it.sql("CREATE VIEW totals AS SELECT customer, sum(amount) AS total FROM paid GROUP BY customer")
    with it.step("insert"):
        it.sql("INSERT INTO lake.sales.report SELECT customer, total FROM totals")
    it.version("report@1")
