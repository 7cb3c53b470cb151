"""MERGE INTO: the target is read and written."""

from scenario_run import ScenarioRun


def play(it: ScenarioRun) -> None:
    it.table("updates", "lake.crm.updates")
    it.table("customers", "lake.crm.customers")
    it.create("updates", "id BIGINT, name STRING", "(1L, 'Anna')", "(3L, 'Cid')")
    it.create("customers", "id BIGINT, name STRING", "(1L, 'Ann')", "(2L, 'Bob')")
    with it.step("merge"):
        it.sql(
            "MERGE INTO lake.crm.customers t USING lake.crm.updates s ON t.id = s.id "
            "WHEN MATCHED THEN UPDATE SET t.name = s.name WHEN NOT MATCHED THEN INSERT (id, name) VALUES (s.id, s.name)"
        )
    it.version("customers@2")
