"""CSV files through two temporary views into a table."""

from pathlib import Path

from scenario_run import ScenarioRun


def play(it: ScenarioRun) -> None:
    place = Path(it.path("csv", "people")) / "people.csv"
    place.parent.mkdir(parents=True)
    place.write_text("id,name,age\n1,Ann,40\n2,Bob,15\n")
    it.table("adults", "lake.crm.adults")
    it.create("adults", "id BIGINT, name STRING")
    with it.step("insert"):
        it.sql(
            "CREATE TEMPORARY VIEW people (id BIGINT, name STRING, age INT) USING csv "
            f"OPTIONS (path '{place}', header 'true')"
        )
        it.sql("SELECT id, name FROM people WHERE age >= 18").createOrReplaceTempView("adults")
        it.sql("INSERT INTO lake.crm.adults SELECT id, name FROM adults")
    it.version("adults@1")
