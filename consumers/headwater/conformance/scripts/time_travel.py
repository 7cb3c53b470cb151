"""A read of an older version, and one of the newest."""

from scenario_run import ScenarioRun


def play(it: ScenarioRun) -> None:
    it.table("orders", "lake.sales.orders")
    it.table("before", "lake.audit.before")
    it.table("after", "lake.audit.after")
    it.create("orders", "id BIGINT, amount DOUBLE", "(1L, 10D)")
    it.create("before", "id BIGINT, amount DOUBLE")
    it.create("after", "id BIGINT, amount DOUBLE")
    option = "snapshot-id" if it.spark.version.startswith("3.") else "versionAsOf"
    first = it.spark.read.option(option, it.label("orders@1")).table("lake.sales.orders")
    it.sql("INSERT INTO lake.sales.orders VALUES (2L, 20D)")
    it.version("orders@2")
    with it.step("older"):
        it.sql(f"INSERT INTO lake.audit.before SELECT * FROM lake.sales.orders VERSION AS OF {it.label('orders@1')}")
    it.version("before@1")
    with it.step("newest"):
        it.sql("INSERT INTO lake.audit.after SELECT * FROM lake.sales.orders")
    it.version("after@1")
    with it.step("by_option"):
        first.writeTo("lake.audit.before").append()
    it.version("before@2")
