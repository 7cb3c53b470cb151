"""Two writes of one cached DataFrame: neither reads the table again, both are made from it."""

from scenario_run import ScenarioRun


def play(it: ScenarioRun) -> None:
    it.table("orders", "lake.sales.orders")
    it.table("small", "lake.sales.small")
    it.table("large", "lake.sales.large")
    it.create("orders", "id BIGINT, amount DOUBLE", "(1L, 10D)", "(2L, 200D)")
    it.create("small", "id BIGINT, amount DOUBLE")
    it.create("large", "id BIGINT, amount DOUBLE")
    orders = it.spark.table("lake.sales.orders").selectExpr("id", "amount * 2 AS amount").cache()
    orders.count()
    with it.step("first"):
        orders.filter("amount < 100").writeTo("lake.sales.small").append()
    it.version("small@1")
    with it.step("second"):
        orders.filter("amount >= 100").writeTo("lake.sales.large").append()
    it.version("large@1")
