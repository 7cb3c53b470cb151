"""Generic DDL on Paimon's tables: what is recorded of each statement, held against the files of their schemas."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from headwater.events import AlterTable, CreateTable, DatasetId, Format, Gap
from tests.kit.cases.catalog_lines import lines, with_nobody_looking
from tests.kit.spark.driver import HOST, PAIMON, Driver, of, shared_driver_fixture, the

pytestmark = [pytest.mark.xdist_group("spark-paimon"), pytest.mark.needs("paimon")]

A = (
    "CREATE TABLE pai.{db}.a (id BIGINT NOT NULL COMMENT 'the key', s STRING) USING paimon "
    "TBLPROPERTIES ('primary-key'='id')"
)
P = "CREATE TABLE pai.{db}.p (id BIGINT, d STRING) USING paimon PARTITIONED BY (d)"

CASES: dict[str, tuple[tuple[str, ...], str, tuple[str, ...]]] = {
    "create": ((), A, ("+ pai.a (id bigint! 'the key', s string; paimon; MANAGED; primary-key=id)",)),
    "partitioned": ((), P, ("+ pai.p (id bigint, d string; by d; paimon; MANAGED)",)),
    "if not exists, new": (
        (),
        "CREATE TABLE IF NOT EXISTS pai.{db}.t (id INT) USING paimon",
        ("+ pai.t (id int; paimon; MANAGED) if not exists",),
    ),
    "if not exists, there": ((A,), "CREATE TABLE IF NOT EXISTS pai.{db}.a (id INT) USING paimon", ()),
    "as select": (
        (),
        "CREATE TABLE pai.{db}.t USING paimon AS SELECT 1 AS one",
        ("+ pai.t (one int; paimon; MANAGED) as select",),
    ),
    "add": ((A,), "ALTER TABLE pai.{db}.a ADD COLUMNS (n INT AFTER id)", ("pai.a: add n int after id",)),
    "drop a column": ((A,), "ALTER TABLE pai.{db}.a DROP COLUMN s", ("pai.a: drop s",)),
    "rename a column": ((A,), "ALTER TABLE pai.{db}.a RENAME COLUMN s TO t", ("pai.a: rename s to t",)),
    "properties": (
        (A,),
        "ALTER TABLE pai.{db}.a SET TBLPROPERTIES ('snapshot.num-retained.min'='5')",
        ("pai.a: set snapshot.num-retained.min=5",),
    ),
    "rename": ((A,), "ALTER TABLE pai.{db}.a RENAME TO {db}.b", ("pai.a: to pai.b moved",)),
    "drop": ((A,), "DROP TABLE pai.{db}.a", ("- pai.a known",)),
    "drop if exists: nobody knows": ((), "DROP TABLE IF EXISTS pai.{db}.a", ("? - pai.a if exists",)),
}


driver = shared_driver_fixture(PAIMON)


def home(driver: Driver, db: str, table: str) -> Path:
    return driver.warehouse / "pai" / f"{db}.db" / table


def schema(driver: Driver, db: str, table: str, number: int) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((home(driver, db, table) / "schema" / f"schema-{number}").read_text())
    return content


@pytest.mark.sample(4)
@pytest.mark.parametrize("name", CASES)
def test_ddl(driver: Driver, name: str) -> None:
    before, statement, truth = CASES[name]
    db = driver.database("pai")
    driver.run(*(each.replace("{db}", db) for each in before))
    events = driver.events_of(statement.replace("{db}", db))
    assert lines(events) == [line.replace("{db}", db) for line in truth]
    assert not of(Gap, events)
    for created in of(CreateTable, events):
        table = created.identifier.table
        inside = schema(driver, db, table, 0)
        assert created.generation == str(inside["timeMillis"])
        assert created.schema_id == 0
        assert created.format is Format.PAIMON
        assert created.dataset == DatasetId(namespace=f"file://{HOST}", name=str(home(driver, db, table)))
        assert [path for (path,) in created.table.primary_key] == inside["primaryKeys"]
        assert [column.name for column in created.table.columns] == [field["name"] for field in inside["fields"]]


def test_a_schema_that_was_altered_is_what_paimon_has(driver: Driver) -> None:
    db = driver.database("pai")
    driver.run(A.replace("{db}", db))
    events = the(AlterTable, driver.events_of(f"ALTER TABLE pai.{db}.a ADD COLUMNS (n INT FIRST)"))
    inside = schema(driver, db, "a", 1)
    assert events.new_table is not None
    assert [column.name for column in events.new_table.columns] == [field["name"] for field in inside["fields"]]
    assert events.generation == str(schema(driver, db, "a", 0)["timeMillis"])
    assert events.schema_id == inside["id"] == 1


def test_a_renamed_table_keeps_its_generation(driver: Driver) -> None:
    db = driver.database("pai")
    driver.run(A.replace("{db}", db))
    generation = str(schema(driver, db, "a", 0)["timeMillis"])
    events = the(AlterTable, driver.events_of(f"ALTER TABLE pai.{db}.a RENAME TO {db}.b"))
    (change,) = events.changes
    assert change.change == "RenameTable"
    assert events.generation == generation == str(schema(driver, db, "b", 0)["timeMillis"])
    assert change.dataset == DatasetId(namespace=f"file://{HOST}", name=str(home(driver, db, "b")))
    assert lines(driver.events_of(f"DROP TABLE pai.{db}.b")) == ["- pai.b known"]


def test_a_table_that_somebody_else_had_made(driver: Driver) -> None:
    db = driver.database("pai")
    with_nobody_looking(driver, A.replace("{db}", db))
    assert lines(driver.events_of(f"CREATE TABLE IF NOT EXISTS pai.{db}.a (id INT) USING paimon")) == []
