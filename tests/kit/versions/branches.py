"""Tables of the formats that have branches, all in one Spark session, and what a test does with them."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from headwater.versions.branches import BranchManager
from headwater.versions.branches.delta_commits import GuardedCommit
from headwater.versions.spark_tables import load_table
from tests.kit.spark.driver import DELTA, ICEBERG, PAIMON, Extensions, together
from tests.kit.spark.versions import packages

if TYPE_CHECKING:
    import pytest

    from headwater.events import Event
    from headwater.versions.branches import FormatBranches
    from tests.kit.spark.driver import Driver

FORMATS: Final = [name for name in ("iceberg", "delta", "paimon") if packages(name)]
"""Those that exist for the Spark that is installed. With Iceberg's extension beside them, the others can't UPDATE."""
_ALL: Final = together(DELTA, ICEBERG, *([PAIMON] if packages("paimon") else []))
EXTENSIONS: Final = Extensions(_ALL.packages, {**_ALL.conf, "spark.databricks.delta.snapshotPartitions": "1"})
CATALOGS: Final = {"iceberg": "ice", "delta": "spark_catalog", "paimon": "pai"}
_LINES: Final = {"paimon": " TBLPROPERTIES ('primary-key' = 'id', 'bucket' = '1')"}

_OF_VACUUM: Final = tuple(
    f"spark.databricks.delta.{key}.enabled" for key in ("retentionDurationCheck", "vacuum.logging")
)
"""Versions of its own would be commits that nobody told of."""


@dataclass
class BranchedTable:
    """A table with rows 1 and 2, a tag `eod` after them, and then row 3 on main."""

    driver: Driver
    format: str
    database: str
    events: list[Event] = field(default_factory=list)
    tag: str = "eod"
    names: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.catalog = CATALOGS[self.format]
        self.name = f"{self.catalog}.{self.database}.t"
        using = "" if self.format == "paimon" else f" USING {self.format}"
        self.sql(f"CREATE TABLE {self.name} (id INT, v STRING){using}{_LINES.get(self.format, '')}")
        self.add(1)
        self.add(2)
        self.tag = self.tag_now("eod")
        self.add(3)
        self.branches = BranchManager(self.driver.spark, self.name, report=self.events.append)

    def sql(self, *statements: str) -> None:
        self.driver.run(*statements)

    def add(self, number: int, branch: str | None = None) -> None:
        name = self._name_of(branch)
        self.sql(f"INSERT INTO {name} VALUES ({number}, '{branch or 'main'}')")

    def tag_now(self, tag: str) -> str:
        """Tag main's newest snapshot, and return what the tag is called: with Delta it is the version."""
        if self.format == "delta":
            return str(self.driver.rows(f"DESCRIBE HISTORY {self.name} LIMIT 1")[0][0])
        if self.format == "iceberg":
            self.sql(f"ALTER TABLE {self.name} CREATE TAG {tag}")
        else:
            newest = self.driver.rows(f"SELECT max(snapshot_id) FROM {self.part('snapshots')}")[0][0]
            self.sql(f"CALL pai.sys.create_tag(table => '{self.database}.t', tag => '{tag}', snapshot => {newest})")
        return tag

    def part(self, name: str) -> str:
        """A metadata table."""
        return f"{self.catalog}.{self.database}.`t${name}`" if self.format == "paimon" else f"{self.name}.{name}"

    def rows(self, branch: str | None = None) -> list[tuple[int, str]]:
        name = self._name_of(branch)
        return sorted((row[0], row[1]) for row in self.driver.rows(f"SELECT id, v FROM {name}"))

    def ids(self, branch: str | None = None) -> list[int]:
        return [row[0] for row in self.rows(branch)]

    def ids_at(self, snapshot: int | None) -> list[int]:
        """The rows of one of main's snapshots."""
        return sorted(row[0] for row in self.driver.rows(f"SELECT id FROM {self.name} VERSION AS OF {snapshot}"))

    def commit_in_the_window(self, patch: pytest.MonkeyPatch, formats: FormatBranches, number: int) -> None:
        """Have another writer add a row once, when main was looked at and isn't moved yet."""
        rows = [number]

        def add_once() -> None:
            if rows:
                self.add(rows.pop())

        if self.format == "delta":
            commit = vars(GuardedCommit)["_commit"]

            def commit_late(*given: Any) -> Any:
                add_once()
                return commit(*given)

            patch.setattr(GuardedCommit, "_commit", commit_late)
            return
        look = formats.main_head

        def look_and_add() -> int | None:
            found = look()
            add_once()
            return found

        patch.setattr(formats, "main_head", look_and_add)

    def main_snapshots(self) -> list[int]:
        """The numbers of main's snapshots, by the format's own metadata."""
        if self.format == "delta":
            return sorted(row["version"] for row in self.driver.rows(f"DESCRIBE HISTORY {self.name}"))
        return sorted(row[0] for row in self.driver.rows(f"SELECT snapshot_id FROM {self.part('snapshots')}"))

    def expire_everything(self) -> None:
        expire_everything(self.driver, self.format, self.name)

    def _name_of(self, branch: str | None) -> str:
        if branch is None:
            return self.name
        if branch not in self.names:
            self.names[branch] = self.branches.name_of(branch)
        return self.names[branch]


def expire_everything(driver: Driver, form: str, name: str) -> None:
    """Let a format expire all that it may of a table, as of now. Iceberg is called in Java: in SQL Paimon takes the
    CALL."""
    spark = driver.spark
    if form == "iceberg":
        table = load_table(spark, name, anew=True).table.table()
        table.expireSnapshots().expireOlderThan(int(time.time() * 1000) + 1).retainLast(1).commit()
        driver.run(f"REFRESH TABLE {name}")
    elif form == "paimon":
        driver.run(f"CALL pai.sys.expire_snapshots(table => '{name.partition('.')[2]}', retain_max => 1)")
    else:
        for key in _OF_VACUUM:
            spark.conf.set(key, "false")
        driver.run(f"VACUUM {name} RETAIN 0 HOURS")
        for key in _OF_VACUUM:
            spark.conf.unset(key)
