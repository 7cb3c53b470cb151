"""A table joined with itself: once in one version, once in two."""

from scenario_run import ScenarioRun


def play(it: ScenarioRun) -> None:
    it.table("staff", "lake.hr.staff")
    it.table("bosses", "lake.hr.bosses")
    it.table("changes", "lake.hr.changes")
    it.create("staff", "id BIGINT, name STRING, boss BIGINT", "(1L, 'Ann', 1L)", "(2L, 'Bob', 1L)")
    it.create("bosses", "name STRING, boss STRING")
    it.create("changes", "id BIGINT, old STRING, new STRING")
    with it.step("one_version"):
        it.sql(
            "INSERT INTO lake.hr.bosses "
            "SELECT a.name, b.name FROM lake.hr.staff a JOIN lake.hr.staff b ON a.boss = b.id"
        )
    it.version("bosses@1")
    it.sql("INSERT INTO lake.hr.staff VALUES (3L, 'Cid', 2L)")
    it.version("staff@2")
    with it.step("two_versions"):
        it.sql(
            "INSERT INTO lake.hr.changes SELECT b.id, a.name, b.name "
            f"FROM lake.hr.staff VERSION AS OF {it.label('staff@1')} a RIGHT JOIN lake.hr.staff b ON a.id = b.id"
        )
    it.version("changes@1")
