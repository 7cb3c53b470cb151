"""What a case of Paimon's has to itself, and what Paimon's own files say of it: snapshots, schemas, generations."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headwater.events import Committed, DatasetId, Event, Format, Gap, Input, Output
from tests.kit.spark.driver import HOST, Driver, of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Step = str | Callable[["SparkSession", "Place"], object]


@dataclass(frozen=True)
class Place:
    """A database in the catalog `pai` and one of Spark's own, by the same name."""

    driver: Driver
    db: str

    def fill(self, step: Step) -> str | Callable[[SparkSession], object]:
        """`{d}` is the database with its catalog, `{db}` without, `{path}` its directory."""
        if isinstance(step, str):
            return step.replace("{d}", f"pai.{self.db}").replace("{db}", self.db).replace("{path}", str(self.home))
        return lambda spark: step(spark, self)

    def run(self, *steps: Step) -> None:
        for step in steps:
            filled = self.fill(step)
            if isinstance(filled, str):
                self.driver.run(filled)
            else:
                filled(self.driver.spark)

    def events_of(self, step: Step) -> list[Event]:
        return self.driver.events_of(self.fill(step))

    @property
    def home(self) -> Path:
        return self.driver.warehouse / "pai" / f"{self.db}.db"

    def dataset(self, table: str) -> DatasetId:
        return DatasetId(namespace=f"file://{HOST}", name=str(self.home / table.partition("/")[0]))

    def directory(self, table: str) -> Path:
        """`t`, or `t/b` for its branch b."""
        name, _, branch = table.partition("/")
        return self.home / name / "branch" / f"branch-{branch}" if branch else self.home / name

    def snapshots(self, table: str) -> dict[int, dict[str, Any]]:
        """All snapshot files of a table, by their number."""
        files = (self.directory(table) / "snapshot").glob("snapshot-*")
        return {int(file.name.removeprefix("snapshot-")): json.loads(file.read_text()) for file in files}

    def generation(self, table: str) -> str:
        text = (self.directory(table.partition("/")[0]) / "schema" / "schema-0").read_text()
        return str(json.loads(text)["timeMillis"])

    def tables(self) -> list[str]:
        """Every table and branch that is there."""
        found = [each.name for each in self.home.iterdir() if (each / "schema").is_dir()]
        branches = [each for name in found for each in (self.home / name / "branch").glob("branch-*")]
        return found + [f"{each.parents[1].name}/{each.name.removeprefix('branch-')}" for each in branches]

    def new_since(self, before: dict[str, dict[int, dict[str, Any]]]) -> set[str]:
        """`t@3` for each snapshot that is there now and wasn't, or was another one."""
        return {
            f"{table}@{number}"
            for table in self.tables()
            for number, content in self.snapshots(table).items()
            if before.get(table, {}).get(number) != content
        }


def fresh(driver: Driver) -> Place:
    """`t(id, v)` has the snapshots 1 (two rows) and 2 (three rows), `s(id, v)` has 1 (two rows)."""
    found = Place(driver, driver.database("pai", "spark_catalog"))
    found.run(
        "CREATE TABLE {d}.t (id INT, v STRING)",
        "CREATE TABLE {d}.s (id INT, v STRING)",
        "INSERT INTO {d}.t VALUES (1, 'a'), (2, 'b')",
        "INSERT INTO {d}.t VALUES (3, 'c')",
        "INSERT INTO {d}.s VALUES (2, 'x'), (4, 'y')",
    )
    return found


def made(output: Output) -> str:
    """`t/branch@3<2 APPEND NOTHING`, and `?[3,4]` for candidates."""
    number = f"?{list(output.candidates)}" if output.snapshot is None else str(output.snapshot)
    parent = "" if output.parent is None else f"<{output.parent}"
    return f"{_name(output)}@{number}{parent} {output.commit_kind} {output.replaced}"


def read(input_: Input) -> str:
    """`t/branch#tag@3`, with `>1` where what came behind 1 was read, and without `@` where there is no version."""
    since = "" if input_.mode.value != "CHANGES" else f">{input_.since.snapshot if input_.since else '?'}"
    number = f"?{list(input_.candidates)}" if input_.candidates else input_.snapshot
    tag = f"#{input_.tag}" if input_.tag else ""
    return f"{_name(input_)}{tag}" + ("" if number is None else f"@{number}{since}")


def _name(place: Input | Output) -> str:
    assert place.dataset is not None
    branch = f"/{place.branch}" if place.branch else ""
    assert place.main is (place.branch is None)
    return place.dataset.name.rpartition("/")[2] + branch


def commits(events: list[Event]) -> tuple[list[str], list[str], list[Gap]]:
    """What was made, what was read, and what isn't exact."""
    committed = of(Committed, events)
    outputs = [made(output) for each in committed for output in each.outputs]
    inputs = [read(each) for commit in committed for each in commit.inputs]
    return outputs, inputs, of(Gap, events)


def check(place: Place, step: Step, expected: Iterable[str], inputs: Iterable[str]) -> None:
    """That a step makes and reads this and nothing else, exactly, and that all it made is reported."""
    before = {table: place.snapshots(table) for table in place.tables()}
    events = place.events_of(step)
    made, read, gaps = commits(events)
    found = (made, sorted(read), [gap.detail for gap in gaps])
    assert found == (list(expected), sorted(inputs), []), found
    assert {each.partition("<")[0].partition(" ")[0] for each in made} == place.new_since(before)
    for committed in of(Committed, events):
        check_with_files(place, committed)


def check_with_files(place: Place, committed: Committed) -> None:
    """Whatever a snapshot's file says of it, is reported of it."""
    for output in committed.outputs:
        assert output.dataset is not None
        name = output.dataset.name.rpartition("/")[2]
        table = f"{name}/{output.branch}" if output.branch else name
        assert (output.dataset, output.format) == (place.dataset(table), Format.PAIMON)
        assert output.snapshot is not None
        content = place.snapshots(table)[output.snapshot]
        assert (output.schema_id, output.commit_kind.value) == (content["schemaId"], content["commitKind"])
        assert output.generation == place.generation(table)
        assert output.parent is None or output.parent in place.snapshots(table)
        if _grew(content, output.replaced.value):
            assert output.rows == content["deltaRecordCount"]
    for input_ in committed.inputs:
        if input_.format is Format.PAIMON:
            assert input_.dataset is not None
            assert input_.generation == place.generation(input_.dataset.name.rpartition("/")[2])


def _grew(content: dict[str, Any], replaced: str) -> bool:
    """Whether a table grew by exactly what was written."""
    return content["commitKind"] == "APPEND" and replaced in {"NOTHING", "UNKNOWN"}
