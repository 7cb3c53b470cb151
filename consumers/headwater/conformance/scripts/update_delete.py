"""UPDATE with a subquery, and DELETE of some rows of a file: both make the table of what it was before."""

from scenario_run import ScenarioRun


def play(it: ScenarioRun) -> None:
    it.table("orders", "lake.sales.orders")
    it.table("customers", "lake.crm.customers")
    it.create("orders", "id BIGINT, customer BIGINT", "(1L, 7L)")
    it.create("customers", "id BIGINT, tier STRING", "(7L, 'new')", "(8L, 'new')", "(9L, 'old')")
    with it.step("update"):
        it.sql("UPDATE lake.crm.customers SET tier = 'gold' WHERE id IN (SELECT customer FROM lake.sales.orders)")
    it.version("customers@2")
    with it.step("delete"):
        it.sql("DELETE FROM lake.crm.customers WHERE tier = 'new'")
    it.version("customers@3")
