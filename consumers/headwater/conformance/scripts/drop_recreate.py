"""A table that is dropped and created again under its name: what is read afterwards is of the new one."""

from scenario_run import ScenarioRun


def play(it: ScenarioRun) -> None:
    it.table("orders", "lake.sales.orders")
    it.table("report", "lake.sales.report")
    it.create("orders", "id BIGINT, amount DOUBLE", "(1L, 10D)")
    it.create("report", "id BIGINT, amount DECIMAL(10, 2)")
    with it.step("drop"):
        it.sql("DROP TABLE lake.sales.orders")
    with it.step("create"):
        it.sql("CREATE TABLE lake.sales.orders (id BIGINT, amount DECIMAL(10, 2)) USING iceberg")
    with it.step("fill"):
        it.sql("INSERT INTO lake.sales.orders VALUES (2L, 20.00BD)")
    it.version("orders@2")
    with it.step("read"):
        it.sql("INSERT INTO lake.sales.report SELECT id, amount FROM lake.sales.orders")
    it.version("report@1")
