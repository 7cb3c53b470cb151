"""Generic DDL on Delta's tables: what is recorded of each statement, held against Delta's own log."""

from __future__ import annotations

import json
from typing import Any

import pytest

from headwater.events import AlterTable, CreateTable, DropTable, Event, Format, Gap
from tests.kit.cases.catalog_lines import lines
from tests.kit.formats.delta_racer import QUICK
from tests.kit.spark.driver import DELTA, Driver, of, shared_driver_fixture, smoking, the

pytestmark = [pytest.mark.xdist_group("spark-delta"), pytest.mark.needs("delta")]

A = "CREATE TABLE {db}.a (id BIGINT NOT NULL COMMENT 'the key', s STRING) USING delta"

CASES: dict[str, tuple[tuple[str, ...], str, tuple[str, ...]]] = {
    "create": ((), A, ("+ a (id bigint! 'the key', s string; delta; MANAGED)",)),
    "if not exists, new": (
        (),
        "CREATE TABLE IF NOT EXISTS {db}.a (id INT, d DATE) USING delta PARTITIONED BY (d)",
        ("+ a (id int, d date; by d; delta; MANAGED) if not exists",),
    ),
    "if not exists, there": ((A,), "CREATE TABLE IF NOT EXISTS {db}.a (id INT) USING delta", ()),
    "or replace, new": ((), "CREATE OR REPLACE TABLE {db}.a (id INT) USING delta", ("+ a (id int; delta; MANAGED)",)),
    "or replace, there": (
        (A,),
        "CREATE OR REPLACE TABLE {db}.a (id INT) USING delta",
        ("+ a (id int; delta; MANAGED) replaced",),
    ),
    "as select": ((), "CREATE TABLE {db}.a USING delta AS SELECT 1 AS x", ("+ a (x int; delta; MANAGED) as select",)),
    "as select, there": ((A,), "CREATE TABLE IF NOT EXISTS {db}.a USING delta AS SELECT 1 AS x", ()),
    "add": ((A,), "ALTER TABLE {db}.a ADD COLUMNS (n INT FIRST)", ("a: add n int first",)),
    "properties": ((A,), "ALTER TABLE {db}.a SET TBLPROPERTIES (k='v')", ("a: set k=v",)),
    "comment": ((A,), "ALTER TABLE {db}.a ALTER COLUMN s COMMENT 'c'", ("a: comment s 'c'",)),
    "rename": ((A,), "ALTER TABLE {db}.a RENAME TO {db}.b", ("a: to b moved",)),
    "drop": ((A,), "DROP TABLE {db}.a", ("- a known",)),
    "drop if exists, there": ((A,), "DROP TABLE IF EXISTS {db}.a", ("- a if exists known",)),
    "drop if exists, not there": ((), "DROP TABLE IF EXISTS {db}.a", ()),
    "a file table beside it": ((), "CREATE TABLE {db}.p (id INT) USING parquet", ("+ p (id int; parquet; MANAGED)",)),
}


driver = shared_driver_fixture(DELTA, **QUICK)


def log(driver: Driver, db: str, table: str) -> tuple[int, str]:
    """The newest version, and the table's id in the newest metadata."""
    files = sorted((driver.warehouse / "spark" / f"{db}.db" / table / "_delta_log").glob("*.json"))
    actions: list[dict[str, Any]] = [json.loads(line) for file in files for line in file.read_text().splitlines()]
    (*_, last) = [action["metaData"]["id"] for action in actions if "metaData" in action]
    return int(files[-1].stem), last


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    "name",
    smoking(CASES, str, "create", "or replace, there", "as select", "add", "rename", "drop if exists, not there"),
)
def test_ddl(driver: Driver, name: str) -> None:
    before, statement, truth = CASES[name]
    db = driver.database()
    driver.run(*(each.replace("{db}", db) for each in before))
    events = driver.events_of(statement.replace("{db}", db))
    assert lines(events) == [line.replace("{db}", db) for line in truth]
    assert not of(Gap, events)
    versioned: list[Event] = [*of(CreateTable, events), *of(AlterTable, events)]
    if "rename" not in name and "file" not in name:
        for event in versioned:
            is_what_there_is(event, *log(driver, db, "a"))


def is_what_there_is(event: Any, version: int, generation: str) -> None:
    assert event.produced == version
    assert event.parent == (version - 1 if version else None)
    assert str(event.generation) == generation
    assert event.format is Format.DELTA


def test_what_took_its_place_and_what_was_there(driver: Driver) -> None:
    db = driver.database()
    driver.run(A.replace("{db}", db))
    _, first = log(driver, db, "a")
    made = the(CreateTable, driver.events_of(f"CREATE OR REPLACE TABLE {db}.a (x INT) USING delta"))
    _, second = log(driver, db, "a")
    assert (str(made.replaced_generation), str(made.generation)) == (first, second)
    assert str(the(DropTable, driver.events_of(f"DROP TABLE {db}.a")).generation) == second
