"""A job whose first write succeeds and whose second one fails."""

from pyspark.sql.functions import udf
from scenario_run import ScenarioRun


@udf("double")
def broken(amount: float) -> float:
    raise ValueError(f"no price for {amount}")


def play(it: ScenarioRun) -> None:
    it.table("orders", "lake.sales.orders")
    it.table("first", "lake.sales.first")
    it.table("second", "lake.sales.second")
    it.create("orders", "id BIGINT, amount DOUBLE", "(1L, 10D)")
    it.create("first", "id BIGINT, amount DOUBLE")
    it.create("second", "id BIGINT, amount DOUBLE")
    orders = it.spark.table("lake.sales.orders")
    with it.step("succeeds"):
        orders.writeTo("lake.sales.first").append()
    it.version("first@1")
    with it.step("fails", fails=True):
        orders.select("id", broken("amount").alias("amount")).writeTo("lake.sales.second").append()
