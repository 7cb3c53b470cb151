"""INSERT INTO … SELECT from a join of two tables."""

from scenario_run import ScenarioRun


def play(it: ScenarioRun) -> None:
    it.table("orders", "lake.sales.orders")
    it.table("customers", "lake.crm.customers")
    it.table("enriched", "lake.sales.enriched")
    it.create("orders", "id BIGINT, customer BIGINT, amount DOUBLE", "(1L, 7L, 10D)", "(2L, 8L, 3D)")
    it.create("customers", "id BIGINT, name STRING", "(7L, 'Ann')", "(8L, 'Bob')")
    it.create("enriched", "id BIGINT, name STRING, gross DOUBLE")
    with it.step("insert"):
        it.sql(
            "INSERT INTO lake.sales.enriched SELECT o.id, c.name, o.amount * 1.2D FROM lake.sales.orders o "
            "JOIN lake.crm.customers c ON o.customer = c.id WHERE o.amount > 5"
        )
    it.version("enriched@1")
