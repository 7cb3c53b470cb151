"""Two directories of Parquet files with their columns in different orders, united by name into a third."""

from scenario_run import ScenarioRun


def play(it: ScenarioRun) -> None:
    north, south, both = it.path("north", "north"), it.path("south", "south"), it.path("both", "both")
    it.sql("SELECT 1L AS id, 'Ann' AS name").write.parquet(north)
    it.sql("SELECT 'Bob' AS name, 2L AS id").write.parquet(south)
    with it.step("union"):
        it.spark.read.parquet(north).unionByName(it.spark.read.parquet(south)).write.parquet(both)
