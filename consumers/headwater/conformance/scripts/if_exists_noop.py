"""Statements with IF [NOT] EXISTS that change nothing."""

from scenario_run import ScenarioRun


def play(it: ScenarioRun) -> None:
    it.table("orders", "lake.sales.orders")
    it.table("plain", "spark_catalog.default.plain")
    it.create("orders", "id BIGINT", "(1L)")
    it.sql("CREATE TABLE plain (id BIGINT) USING parquet")
    with it.step("create_iceberg"):
        it.sql("CREATE TABLE IF NOT EXISTS lake.sales.orders (other STRING) USING iceberg")
    with it.step("create_parquet"):
        it.sql("CREATE TABLE IF NOT EXISTS plain (other STRING) USING parquet")
    with it.step("drop_iceberg"):
        it.sql("DROP TABLE IF EXISTS lake.sales.missing")
    with it.step("drop_parquet"):
        it.sql("DROP TABLE IF EXISTS missing")
    with it.step("ctas"):
        it.sql("CREATE TABLE IF NOT EXISTS plain USING parquet AS SELECT id FROM lake.sales.orders")
