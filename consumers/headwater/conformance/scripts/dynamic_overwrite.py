"""A dynamic overwrite of partitions: of Parquet files in a directory, and of an Iceberg table."""

from scenario_run import ScenarioRun


def play(it: ScenarioRun) -> None:
    it.table("orders", "lake.sales.orders")
    it.table("by_day", "lake.sales.by_day")
    files = it.path("files", "by_day")
    it.create("orders", "id BIGINT, day STRING", "(1L, 'mon')", "(2L, 'tue')")
    it.sql("CREATE TABLE lake.sales.by_day (id BIGINT, day STRING) USING iceberg PARTITIONED BY (day)")
    it.sql("INSERT INTO lake.sales.by_day SELECT /*+ COALESCE(1) */ * FROM VALUES (8L, 'mon'), (9L, 'wed')")
    it.version("by_day@1")
    it.spark.table("lake.sales.by_day").write.partitionBy("day").parquet(files)
    with it.step("iceberg"):
        it.spark.table("lake.sales.orders").writeTo("lake.sales.by_day").overwritePartitions()
    it.version("by_day@2")
    with it.step("files"):
        writer = it.spark.table("lake.sales.orders").write.mode("overwrite").partitionBy("day")
        writer.option("partitionOverwriteMode", "dynamic").parquet(files)
