"""Statements that fail after they have committed: the failure is reported, and the commit too; and never one that
wasn't.

Which versions there are is read from Delta's log and Iceberg's metadata.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from headwater.events import AlterTable, Committed, CreateTable, Event, Gap, StatementFailed
from headwater.events.catalog import CatalogModification
from headwater.events.jobs import CommitKind
from tests.kit.spark.driver import DELTA, ICEBERG, Driver, driver_fixture, of, the, together

pytestmark = [pytest.mark.long, pytest.mark.needs("delta", "iceberg")]

_MANIFEST = "delta.compatibility.symlinkFormatManifest.enabled"


driver = driver_fixture(together(DELTA, ICEBERG), spark__databricks__delta__snapshotPartitions="2")


def delta_directory(driver: Driver, db: str) -> Path:
    return driver.warehouse / "spark" / f"{db}.db" / "t"


def versions(directory: Path) -> list[int]:
    return sorted(int(each.stem) for each in (directory / "_delta_log").glob("*.json"))


def broken_behind_the_commit(driver: Driver) -> tuple[str, Path]:
    """A table whose manifests are written after each commit, and can't be: a file is where their directory would be."""
    db = driver.database()
    driver.run(f"CREATE TABLE {db}.t (id INT) USING delta", f"INSERT INTO {db}.t VALUES (1)")
    driver.run(f"ALTER TABLE {db}.t SET TBLPROPERTIES ('{_MANIFEST}' = 'true')")
    directory = delta_directory(driver, db)
    manifests = directory / "_symlink_format_manifest"
    for each in manifests.glob("*") if manifests.exists() else ():
        each.unlink()
    for each in manifests.glob(".*") if manifests.exists() else ():
        each.unlink()
    if manifests.exists():
        manifests.rmdir()
    manifests.write_text("in the way")
    return db, directory


def test_rows_whose_commit_was_followed_by_an_error(driver: Driver) -> None:
    db, directory = broken_behind_the_commit(driver)
    before = versions(directory)[-1]
    driver.run(f"CREATE TABLE {db}.s (id INT) USING delta")

    events = driver.events_of_failure(f"INSERT INTO {db}.t SELECT id + 1 FROM {db}.t")

    assert versions(directory)[-1] == before + 1
    assert the(StatementFailed, events).outputs[0].table is not None
    committed = the(Committed, events)
    (output,) = committed.outputs
    assert (output.snapshot, output.parent, output.commit_kind) == (before + 1, before, CommitKind.APPEND)
    assert [each.snapshot for each in committed.inputs] == [before]
    assert committed.statement == the(StatementFailed, events).statement
    assert not of(Gap, events)


@pytest.mark.spark3  # Delta 4.4 drops it at once
def test_drop_feature_commits_before_it_fails(driver: Driver) -> None:
    """It prepares the table in versions of their own, and then says that one has to wait."""
    db = driver.database()
    driver.run(
        f"CREATE TABLE {db}.t (id INT) USING delta TBLPROPERTIES ('delta.checkpointPolicy' = 'v2')",
        f"INSERT INTO {db}.t VALUES (1)",
    )
    directory = delta_directory(driver, db)
    before = versions(directory)

    events = driver.events_of_failure(f"ALTER TABLE {db}.t DROP FEATURE v2Checkpoint")

    made = [each for each in versions(directory) if each not in before]
    assert made
    assert produced(events) == made
    assert the(StatementFailed, events).error.condition
    assert not of(Gap, events)


def produced(events: list[Event]) -> list[int | None]:
    modified = [each.produced for each in of(AlterTable, events)]
    return [*modified, *(output.snapshot for each in of(Committed, events) for output in each.outputs)]


def test_a_compaction_that_fails_on_its_way_told_what_it_had_done(driver: Driver) -> None:
    """With partial progress each group of files is a snapshot; a file that is gone fails its group."""
    db = driver.database("ice")
    driver.run(f"CREATE TABLE ice.{db}.t (id INT, p INT) USING iceberg PARTITIONED BY (p)")
    for partition in (1, 2):
        for each in (1, 2):
            driver.run(f"INSERT INTO ice.{db}.t VALUES ({each}, {partition})")
    directory = driver.warehouse / "ice" / db / "t"
    next((directory / "data" / "p=2").glob("*.parquet")).unlink()
    before = snapshots(directory)

    events = driver.events_of_failure(
        f"CALL ice.system.rewrite_data_files(table => '{db}.t', options => map('min-input-files', '2', "
        "'partial-progress.enabled', 'true', 'partial-progress.max-commits', '2', "
        "'partial-progress.max-failed-commits', '0'))"
    )

    made = [each for each in snapshots(directory) if each not in before]
    assert len(made) == 1
    committed = the(Committed, events)
    assert [(o.snapshot, o.commit_kind) for o in committed.outputs] == [(made[0], CommitKind.COMPACT)]
    assert the(StatementFailed, events).statement == committed.statement


def snapshots(directory: Path) -> list[int]:
    newest = max((directory / "metadata").glob("v*.metadata.json"), key=lambda each: int(each.name[1:].split(".")[0]))
    return [each["snapshot-id"] for each in json.loads(newest.read_text())["snapshots"]]


def test_a_table_that_was_filled_and_then_not_made(driver: Driver) -> None:
    """Iceberg says that it has committed the rows; the table that they are in comes after that, and doesn't come."""
    db = driver.database("ice")
    place = driver.warehouse / "ice" / db / "t"
    place.mkdir()
    (place / "metadata").write_text("in the way")

    events = driver.events_of_failure(f"CREATE TABLE ice.{db}.t USING iceberg AS SELECT 1 AS id")

    assert list((place / "data").glob("*.parquet")) or not (place / "data").exists()
    assert the(StatementFailed, events).outputs[0].table is not None
    assert not of(Committed, events)
    assert not of(CreateTable, events)
    assert not of(CatalogModification, events)
