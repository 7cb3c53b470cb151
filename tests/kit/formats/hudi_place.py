"""What a case of Hudi's has to itself, and what the timelines of its tables say: files that Hudi wrote.

A write of Hudi's takes a second, so tables are made once and copied: a table is where its timeline is.
"""

from __future__ import annotations

import os
import re
import shutil
import zlib
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import fastavro
import pytest

from headwater.events import DatasetId, Event
from tests.kit.spark.driver import HOST, HUDI, Driver, driver_with

HUDI_DEFAULTS: Final = """
hoodie.metadata.enable false
hoodie.embed.timeline.server false
hoodie.archive.automatic false
hoodie.clean.automatic false
hoodie.insert.shuffle.parallelism 1
hoodie.upsert.shuffle.parallelism 1
hoodie.bulkinsert.shuffle.parallelism 1
hoodie.delete.shuffle.parallelism 1
hoodie.bloom.index.parallelism 1
hoodie.simple.index.parallelism 1
hoodie.rollback.parallelism 1
"""
"""Hudi's own file of defaults: small tables need no more than one task."""
_KEYED: Final = "TBLPROPERTIES (primaryKey = 'id', preCombineField = 'ts'"
TEMPLATES: Final = {
    "t": (
        f"CREATE TABLE t (id INT, v STRING, ts LONG, p STRING) USING hudi PARTITIONED BY (p) {_KEYED})",
        "INSERT INTO t VALUES (1, 'a', 1, 'x'), (2, 'b', 1, 'y')",
    ),
    "s": (
        f"CREATE TABLE s (id INT, v STRING, ts LONG) USING hudi {_KEYED})",
        "INSERT INTO s VALUES (1, 'k', 5)",
        "INSERT INTO s VALUES (3, 'l', 5)",
    ),
    "m": (
        f"CREATE TABLE m (id INT, v STRING, ts LONG) USING hudi {_KEYED}, type = 'mor')",
        "INSERT INTO m VALUES (1, 'a', 1), (2, 'b', 1)",
        "UPDATE m SET v = 'c' WHERE id = 1",
    ),
}
"""One instant of `t`; two of `s` and of `m`, which merges on read."""

Step = str | Callable[[Any, "Place"], object]


@dataclass(frozen=True)
class Done:
    """A completed instant, as its file says."""

    number: int
    completed: int
    action: str
    file: Path

    def operation(self) -> str | None:
        with self.file.open("rb") as content:
            (events,) = fastavro.reader(content)
        assert isinstance(events, dict)
        return events.get("operationType")


def timeline_of(directory: Path) -> list[Done]:
    """In the order of completion."""
    found = []
    for file in (directory / ".hoodie" / "timeline").iterdir():
        name, _, action = file.name.partition(".")
        number, _, completed = name.partition("_")
        if completed and not name.startswith("."):
            found.append(Done(int(number), int(completed), action, file))
    return sorted(found, key=lambda done: (done.completed, done.number))


@dataclass(frozen=True)
class Place:
    """A database of a case's own, with copies of the tables that it names."""

    driver: Driver
    db: str

    @property
    def home(self) -> Path:
        return self.driver.warehouse / "spark" / f"{self.db}.db"

    def fill(self, step: Step) -> str | Callable[[Any], object]:
        """`{db}` is the database, `{home}` its directory, `{t0}` the first instant of `t`, `{t0c}` its completion."""
        if not isinstance(step, str):
            return lambda spark: step(spark, self)
        text = step.replace("{db}", self.db).replace("{home}", str(self.home))
        for table in TEMPLATES:
            for n, done in enumerate(self.commits(table)):
                text = text.replace(f"{{{table}{n}}}", str(done.number)).replace(
                    f"{{{table}{n}c}}", str(done.completed)
                )
        return text

    def run(self, *steps: Step) -> None:
        for step in steps:
            filled = self.fill(step)
            if isinstance(filled, str):
                self.driver.run(filled)
            else:
                filled(self.driver.spark)

    def events_of(self, *steps: Step) -> list[Event]:
        return self.driver.events_of(*(self.fill(step) for step in steps))

    def copy(self, templates: Path, table: str) -> None:
        shutil.copytree(templates / table, self.home / table)
        _move(self.home / table / ".hoodie" / "hoodie.properties", templates.stem, self.db)
        self.driver.run(f"CREATE TABLE {self.db}.{table} USING hudi LOCATION '{self.home / table}'")

    def dataset(self, table: str) -> DatasetId:
        return DatasetId(namespace=f"file://{HOST}", name=str(self.home / table))

    def timeline(self, table: str) -> list[Done]:
        directory = self.home / table
        return timeline_of(directory) if (directory / ".hoodie" / "timeline").exists() else []

    def commits(self, table: str) -> list[Done]:
        """Instants that made the table's rows what they are."""
        return [done for done in self.timeline(table) if "commit" in done.action]

    def name(self, dataset: DatasetId | None) -> str:
        assert dataset is not None
        return dataset.name.rpartition("/")[2]


def _move(properties: Path, old: str, new: str) -> None:
    """Hudi keeps the database's name, and a checksum of both names, among a table's properties."""
    text = properties.read_text().replace(f"hoodie.database.name={old}\n", f"hoodie.database.name={new}\n")
    table = properties.parent.parent.name
    checksum = zlib.crc32(f"{new}.{table}".encode())
    properties.write_text(re.sub(r"(?m)^hoodie\.table\.checksum=.*$", f"hoodie.table.checksum={checksum}", text))
    (properties.parent / f".{properties.name}.crc").unlink(missing_ok=True)


@contextmanager
def hudi_driver(java_home: Path, directory: Path, **conf: str) -> Generator[Driver, None, None]:
    """A driver with Hudi, and its own defaults for Hudi."""
    (directory / "hudi-defaults.conf").write_text(HUDI_DEFAULTS)
    before = os.environ.get("HUDI_CONF_DIR")
    os.environ["HUDI_CONF_DIR"] = str(directory)
    options = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Djol.skipHotspotSAAttach=true"
    own = {"spark__default__parallelism": "1", "spark__sql__shuffle__partitions": "1", **conf}
    try:
        with driver_with(java_home, HUDI, spark__driver__extraJavaOptions=options, **own) as driver:
            yield driver
    finally:
        os.environ.pop("HUDI_CONF_DIR")
        if before is not None:
            os.environ["HUDI_CONF_DIR"] = before


@pytest.fixture(scope="module", name="driver")
def hudi_driver_fixture(java_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Generator[Driver]:
    """For a module: `driver = hudi_driver_fixture`."""
    with hudi_driver(java_home, tmp_path_factory.mktemp("hudi")) as driver:
        yield driver


def make_templates(driver: Driver) -> Path:
    """The tables that places copy."""
    db = driver.database()
    driver.run(f"USE {db}", *(statement for each in TEMPLATES.values() for statement in each), "USE default")
    return driver.warehouse / "spark" / f"{db}.db"
