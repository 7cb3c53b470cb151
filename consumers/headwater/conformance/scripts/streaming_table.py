"""A stream from JSON files into a table, in two micro-batches."""

from pathlib import Path

from scenario_run import ScenarioRun


def play(it: ScenarioRun) -> None:
    landing = Path(it.path("landing", "landing"))
    landing.mkdir(parents=True)
    (landing / "1.json").write_text('{"id": 1, "name": "Ann"}\n')
    (landing / "2.json").write_text('{"id": 2, "name": "Bob"}\n')
    it.table("people", "lake.crm.people")
    it.create("people", "id BIGINT, name STRING")
    with it.step("stream"):
        files = it.spark.readStream.schema("id BIGINT, name STRING").option("maxFilesPerTrigger", 1)
        query = (
            files.json(str(landing))
            .writeStream.queryName("people_in")
            .trigger(availableNow=True)
            .option("checkpointLocation", str(it.directory / "checkpoint"))
            .toTable("lake.crm.people")
        )
        if not query.awaitTermination(120):
            raise AssertionError("the stream didn't end")
    it.all_versions("people")
