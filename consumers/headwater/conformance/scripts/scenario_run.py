"""What the scripts of scenarios share: the session, steps with their times, and what is true of tables afterwards.

It needs pyspark and the standard library only. Versions of tables are read from the tables' own metadata on the disk,
never by Spark: a question to Spark would be one more statement that a producer of lineage reports.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

QUIET_SECONDS = 1.0
"""So long nothing is done after a step: on a busy machine a producer dates what it reports a moment later."""


class ScenarioRun:
    """One scenario that is being played. `write` puts what was observed into a file."""

    def __init__(self, name: str, directory: Path, *, with_iceberg: bool) -> None:
        self.name = name
        self.directory = directory
        self.warehouse = directory / "warehouse"
        self._with_iceberg = with_iceberg
        self._datasets: dict[str, dict[str, object]] = {}
        self._places: dict[str, Path] = {}
        self._versions: dict[str, str] = {}
        self._steps: dict[str, dict[str, str]] = {}
        self._began = now()
        self.spark = self._session()

    def _session(self) -> SparkSession:
        builder = SparkSession.builder.appName(f"conformance_{self.name}")
        settings = {
            "spark.sql.shuffle.partitions": "2",
            "spark.sql.warehouse.dir": str(self.directory / "session-warehouse"),
        }
        if self._with_iceberg:
            settings |= {
                "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
                "spark.sql.catalog.lake": "org.apache.iceberg.spark.SparkCatalog",
                "spark.sql.catalog.lake.type": "hadoop",
                "spark.sql.catalog.lake.warehouse": str(self.warehouse),
            }
        for key, value in settings.items():
            builder = builder.config(key, value)
        return builder.getOrCreate()

    def sql(self, text: str) -> DataFrame:
        """Run a statement."""
        return self.spark.sql(text)

    def restart(self) -> None:
        """End the application and start another one."""
        self.spark.stop()
        self.spark = self._session()

    def table(self, role: str, name: str, place: Path | None = None) -> None:
        """Name a table: `lake.<database>.<table>` of Iceberg, or `spark_catalog.<database>.<table>`."""
        catalog, database, table = name.split(".")
        if place is None and catalog == "lake":
            place = self.warehouse / database / table
        elif place is None:
            folder = table if database == "default" else f"{database}.db/{table}"
            place = self.directory / "session-warehouse" / folder
        self._add(role, place, [name, f"{database}.{table}"])

    def view(self, role: str, name: str) -> None:
        """Name a view, which has no place."""
        self._datasets[role] = {"place": None, "names": [name, name.split(".", 1)[1]]}

    def path(self, role: str, name: str) -> str:
        """Name a directory or file of data, and return where it is."""
        place = self.directory / "files" / name
        self._add(role, place, [])
        return str(place)

    def _add(self, role: str, place: Path, names: Sequence[str]) -> None:
        self._places[role] = place
        self._datasets[role] = {"place": f"file:{place}", "names": list(names)}

    def create(self, role: str, columns: str, *rows: str) -> None:
        """Create an Iceberg table with rows in one file. It is no step: nothing of it is judged."""
        name = self._name(role)
        self.sql(f"CREATE NAMESPACE IF NOT EXISTS lake.{name.split('.')[1]}")
        self.sql(f"CREATE TABLE {name} ({columns}) USING iceberg")
        if rows:
            self.sql(f"INSERT INTO {name} SELECT /*+ COALESCE(1) */ * FROM VALUES {', '.join(rows)}")
            self.version(f"{role}@1")
        self._settle()

    def _name(self, role: str) -> str:
        names: Any = self._datasets[role]["names"]
        return str(names[0])

    @contextmanager
    def step(self, name: str, *, fails: bool = False) -> Iterator[None]:
        """Bound a step: all that a producer dates within it is judged by the step's truth.

        A step that `fails` has to raise.
        """
        self._settle()
        began, error = now(), None
        try:
            yield
        except Exception as e:
            if not fails:
                raise
            error = type(e).__name__
        if fails and error is None:
            raise AssertionError(f"{self.name}: step {name} should have failed, and didn't")
        self._settle()
        self._steps[name] = {"began": began, "until": now()}

    def _settle(self) -> None:
        """Wait until Spark's listeners have heard of everything so far."""
        context: Any = self.spark.sparkContext
        context._jsc.sc().listenerBus().waitUntilEmpty()
        time.sleep(QUIET_SECONDS)

    def version(self, label: str) -> str:
        """Record the table's current snapshot as `role@n`. It has to be a new one."""
        snapshot = self._snapshots(label.partition("@")[0])[-1]
        return self._record(label, snapshot)

    def label(self, label: str) -> str:
        """Return the snapshot that was recorded as `role@n`."""
        return self._versions[label]

    def all_versions(self, role: str) -> None:
        """Record all snapshots of a table, in their order, as `role@1`, `role@2` …"""
        for number, snapshot in enumerate(self._snapshots(role), 1):
            self._record(f"{role}@{number}", snapshot)

    def _record(self, label: str, snapshot: str) -> str:
        if snapshot in self._versions.values():
            raise AssertionError(f"{self.name}: {label} isn't a new snapshot: {snapshot}")
        self._versions[label] = snapshot
        return snapshot

    def _snapshots(self, role: str) -> list[str]:
        """The snapshots of the table in its newest metadata file, the oldest first."""
        metadata = self._places[role] / "metadata"
        newest = (metadata / "version-hint.text").read_text().strip()
        history = json.loads((metadata / f"v{newest}.metadata.json").read_text())["snapshot-log"]
        return [str(entry["snapshot-id"]) for entry in history]

    def write(self, place: Path, error: str | None) -> None:
        """Write what was observed, for whoever judges."""
        observed = {
            "scenario": self.name,
            "error": error,
            "spark": self.spark.version,
            "began": self._began,
            "ended": now(),
            "datasets": self._datasets,
            "versions": self._versions,
            "steps": self._steps,
        }
        place.write_text(json.dumps(observed, indent=2) + "\n")


def now() -> str:
    """Return the time, in UTC."""
    return datetime.now(timezone.utc).isoformat().replace("+00:00", "Z")
