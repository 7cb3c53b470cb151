"""A table that is renamed, and read under its new name, at its new place."""

from scenario_run import ScenarioRun


def play(it: ScenarioRun) -> None:
    it.table("old", "spark_catalog.default.draft")
    it.table("new", "spark_catalog.default.final")
    copy = it.path("copy", "copy")
    it.sql("CREATE TABLE draft (id BIGINT, name STRING) USING parquet")
    it.sql("INSERT INTO draft VALUES (1L, 'Ann')")
    with it.step("rename"):
        it.sql("ALTER TABLE draft RENAME TO final")
    with it.step("read"):
        it.sql("SELECT id, name FROM final").write.parquet(copy)
