"""A column that is added, filled and read."""

from scenario_run import ScenarioRun


def play(it: ScenarioRun) -> None:
    it.table("orders", "lake.sales.orders")
    it.table("notes", "lake.sales.notes")
    it.create("orders", "id BIGINT, amount DOUBLE", "(1L, 10D)")
    with it.step("alter"):
        it.sql("ALTER TABLE lake.sales.orders ADD COLUMNS (note STRING)")
    with it.step("insert"):
        it.sql("INSERT INTO lake.sales.orders SELECT id + 1, amount, 'new' FROM lake.sales.orders")
    it.version("orders@2")
    with it.step("read"):
        it.sql("CREATE TABLE lake.sales.notes USING iceberg AS SELECT id, note FROM lake.sales.orders")
    it.version("notes@1")
