"""CREATE TABLE LIKE: a new table with the columns of another one, and none of its rows."""

from scenario_run import ScenarioRun


def play(it: ScenarioRun) -> None:
    it.table("model", "spark_catalog.default.model")
    it.table("copy", "spark_catalog.default.copy")
    it.sql("CREATE TABLE model (id BIGINT, name STRING) USING parquet")
    it.sql("INSERT INTO model VALUES (1L, 'Ann')")
    with it.step("create"):
        it.sql("CREATE TABLE copy LIKE model")
    with it.step("insert"):
        it.sql("INSERT INTO copy SELECT id, upper(name) FROM model")
