"""Generic DDL of V2 catalogs, on Iceberg's: what is recorded of each statement, held against Iceberg's own metadata."""

from __future__ import annotations

import json
from typing import Any
from uuid import UUID

import pytest

from headwater.events import (
    AlterTable,
    CatalogOptionsDeclared,
    CreateTable,
    DatasetId,
    DropTable,
    Event,
    Format,
    Gap,
    Truncate,
)
from headwater.events.catalog import CatalogModification, ModificationEffect
from headwater.events.types import parse_json, simple_string
from tests.kit.cases.catalog_lines import lines, with_nobody_looking
from tests.kit.spark.driver import HOST, ICEBERG, Driver, of, shared_driver_fixture, smoking, the

pytestmark = [pytest.mark.xdist_group("spark-iceberg"), pytest.mark.needs("iceberg")]
A = "CREATE TABLE ice.{db}.a (id BIGINT NOT NULL COMMENT 'the key', s STRING, n INT) USING iceberg"
N = (
    "CREATE TABLE ice.{db}.n (st STRUCT<x: INT, y: STRING>, arr ARRAY<STRUCT<q: INT>>, m MAP<STRING, INT>) "
    "USING iceberg"
)
WHOLE = (
    "CREATE TABLE ice.{db}.t (id BIGINT, s STRING, ts TIMESTAMP) USING iceberg "
    "PARTITIONED BY (days(ts), bucket(4, id), truncate(3, s)) COMMENT 'mine' TBLPROPERTIES (k='v')"
)
REPORTED_WHOLE = (
    "+ ice.t (id bigint, s string, ts timestamp; by days(ts), bucket(4, id), truncate(3, s); iceberg; MANAGED; "
    "k=v; 'mine')"
)

CASES: dict[str, tuple[tuple[str, ...], str, tuple[str, ...]]] = {
    "create": ((), A, ("+ ice.a (id bigint! 'the key', s string, n int; iceberg; MANAGED)",)),
    "create with all it can have": ((), WHOLE, (REPORTED_WHOLE,)),
    "if not exists, new": (
        (),
        "CREATE TABLE IF NOT EXISTS ice.{db}.t (id INT) USING iceberg",
        ("+ ice.t (id int; iceberg; MANAGED) if not exists",),
    ),
    "if not exists, there": ((A,), "CREATE TABLE IF NOT EXISTS ice.{db}.a (id INT) USING iceberg", ()),
    "or replace, new": (
        (),
        "CREATE OR REPLACE TABLE ice.{db}.t (id INT) USING iceberg",
        ("+ ice.t (id int; iceberg; MANAGED)",),
    ),
    "or replace, there": (
        (A,),
        "CREATE OR REPLACE TABLE ice.{db}.a (id INT) USING iceberg",
        ("+ ice.a (id int; iceberg; MANAGED) replaced",),
    ),
    "replace": (
        (A,),
        "REPLACE TABLE ice.{db}.a (x INT) USING iceberg PARTITIONED BY (x)",
        ("+ ice.a (x int; by x; iceberg; MANAGED) replaced",),
    ),
    "as select": (
        (A,),
        "CREATE TABLE ice.{db}.t USING iceberg PARTITIONED BY (s) AS SELECT id, s FROM ice.{db}.a",
        ("+ ice.t (id bigint 'the key', s string; by s; iceberg; MANAGED) as select",),
    ),
    "as select, there": ((A,), "CREATE TABLE IF NOT EXISTS ice.{db}.a USING iceberg AS SELECT 1 AS one", ()),
    "replace as select": (
        (A,),
        "CREATE OR REPLACE TABLE ice.{db}.a USING iceberg AS SELECT 1 AS one",
        ("+ ice.a (one int; iceberg; MANAGED) as select replaced",),
    ),
    "add columns": (
        (A,),
        "ALTER TABLE ice.{db}.a ADD COLUMNS (z INT COMMENT 'new' AFTER id, y STRING FIRST)",
        ("ice.a: add z int 'new' after id, add y string first",),
    ),
    "add in a struct": ((N,), "ALTER TABLE ice.{db}.n ADD COLUMN st.z DATE", ("ice.n: add st.z date",)),
    "add in an array": (
        (N,),
        "ALTER TABLE ice.{db}.n ADD COLUMN arr.element.z INT FIRST",
        ("ice.n: add arr.element.z int first",),
    ),
    "drop a column": ((A,), "ALTER TABLE ice.{db}.a DROP COLUMN n", ("ice.a: drop n",)),
    "drop columns": ((N,), "ALTER TABLE ice.{db}.n DROP COLUMNS (m, st.x)", ("ice.n: drop m, drop st.x",)),
    "drop what isn't there": ((A,), "ALTER TABLE ice.{db}.a DROP COLUMN IF EXISTS nothing", ()),
    "rename a column": ((A,), "ALTER TABLE ice.{db}.a RENAME COLUMN s TO t", ("ice.a: rename s to t",)),
    "rename a field": ((N,), "ALTER TABLE ice.{db}.n RENAME COLUMN st.x TO z", ("ice.n: rename st.x to z",)),
    "widen": ((A,), "ALTER TABLE ice.{db}.a ALTER COLUMN n TYPE BIGINT", ("ice.a: type n bigint",)),
    "widen a field": ((N,), "ALTER TABLE ice.{db}.n ALTER COLUMN st.x TYPE BIGINT", ("ice.n: type st.x bigint",)),
    "widen an element": (
        (N,),
        "ALTER TABLE ice.{db}.n ALTER COLUMN m.value TYPE BIGINT",
        ("ice.n: type m.value bigint",),
    ),
    "comment on a column": (
        (A,),
        "ALTER TABLE ice.{db}.a ALTER COLUMN id COMMENT 'c'",
        ("ice.a: comment id 'c'",),
    ),
    "move first": ((A,), "ALTER TABLE ice.{db}.a ALTER COLUMN n FIRST", ("ice.a: move n first",)),
    "move after": ((A,), "ALTER TABLE ice.{db}.a ALTER COLUMN id AFTER s", ("ice.a: move id after s",)),
    "drop not null": ((A,), "ALTER TABLE ice.{db}.a ALTER COLUMN id DROP NOT NULL", ("ice.a: null id",)),
    "replace columns": (
        (A,),
        "ALTER TABLE ice.{db}.a REPLACE COLUMNS (id BIGINT, w STRING COMMENT 'c')",
        ("ice.a: drop id, drop s, drop n, add id bigint, add w string 'c'",),
    ),
    "set properties": ((A,), "ALTER TABLE ice.{db}.a SET TBLPROPERTIES (k='v')", ("ice.a: set k=v",)),
    "unset properties": (
        (A, "ALTER TABLE ice.{db}.a SET TBLPROPERTIES (k='v', l='w')"),
        "ALTER TABLE ice.{db}.a UNSET TBLPROPERTIES (k)",
        ("ice.a: unset k",),
    ),
    "unset what isn't there": ((A,), "ALTER TABLE ice.{db}.a UNSET TBLPROPERTIES IF EXISTS (nothing)", ()),
    "comment on": ((A,), "COMMENT ON TABLE ice.{db}.a IS 'said'", ("ice.a: comment 'said'",)),
    "truncate": ((A,), "TRUNCATE TABLE ice.{db}.a", ("truncate ice.a",)),
    "drop": ((A,), "DROP TABLE ice.{db}.a", ("- ice.a known",)),
    "drop and purge": ((A,), "DROP TABLE ice.{db}.a PURGE", ("- ice.a purge known",)),
    "drop if exists, there": ((A,), "DROP TABLE IF EXISTS ice.{db}.a", ("- ice.a if exists known",)),
    "drop if exists: nobody knows": ((), "DROP TABLE IF EXISTS ice.{db}.a", ("? - ice.a if exists",)),
    "a namespace": ((), "CREATE NAMESPACE ice.{db}.inner", ("+ database {db}.inner (at inner)",)),
    "a namespace, there": (
        ("CREATE NAMESPACE ice.{db}.inner",),
        "CREATE NAMESPACE IF NOT EXISTS ice.{db}.inner",
        (),
    ),
    "drop a namespace": (
        ("CREATE NAMESPACE ice.{db}.inner",),
        "DROP NAMESPACE ice.{db}.inner",
        ("- database {db}.inner known",),
    ),
    "drop a namespace if exists: nobody knows": (
        (),
        "DROP NAMESPACE IF EXISTS ice.{db}.inner",
        ("? - database {db}.inner if exists",),
    ),
    "in a nested namespace": (
        ("CREATE NAMESPACE ice.{db}.inner",),
        "CREATE TABLE ice.{db}.inner.t (id INT) USING iceberg",
        ("+ ice.t (id int; iceberg; MANAGED)",),
    ),
}


driver = shared_driver_fixture(ICEBERG)


class Metadata:
    """The table's own metadata, read from its newest file."""

    def __init__(self, driver: Driver, db: str, table: str) -> None:
        self.home = driver.warehouse / "ice" / db / table
        files = self.home.glob("metadata/v*.metadata.json")
        newest = max(files, key=lambda file: int(file.name[1:].partition(".")[0]))
        self.content: dict[str, Any] = json.loads(newest.read_text())

    @property
    def uuid(self) -> UUID:
        return UUID(self.content["table-uuid"])

    @property
    def names(self) -> list[str]:
        current = self.content["current-schema-id"]
        (schema,) = [each for each in self.content["schemas"] if each["schema-id"] == current]
        return [field["name"] for field in schema["fields"]]


@pytest.mark.sample(12)
@pytest.mark.parametrize(
    "name",
    smoking(
        CASES,
        str,
        "create with all it can have",
        "or replace, there",
        "replace as select",
        "add in a struct",
        "widen",
        "drop if exists, there",
    ),
)
def test_ddl(driver: Driver, name: str) -> None:
    before, statement, truth = CASES[name]
    db = driver.database("ice")
    driver.run(*(each.replace("{db}", db) for each in before))
    events = driver.events_of(statement.replace("{db}", db))
    assert lines(events) == [line.replace("{db}", db) for line in truth]
    assert not of(Gap, events)
    for created in of(CreateTable, events):
        inside = Metadata(driver, created.identifier.database.replace(".", "/"), created.identifier.table)
        is_what_there_is(created, inside)
        assert [column.name for column in created.table.columns] == inside.names
    for altered in of(AlterTable, events):
        inside = Metadata(driver, db, altered.identifier.table)
        is_what_there_is(altered, inside)
        assert altered.new_table is not None
        assert [column.name for column in altered.new_table.columns] == inside.names
        kept = {k: v for k, v in inside.content["properties"].items() if k not in {"owner", "comment"}}
        assert dict(altered.new_table.properties) == kept
        agree(driver, db, altered)


def is_what_there_is(event: Any, inside: Metadata) -> None:
    assert event.generation == inside.uuid
    assert event.format is Format.ICEBERG
    assert event.dataset == DatasetId(namespace=f"file://{HOST}", name=str(inside.home))
    assert event.schema_id == inside.content["current-schema-id"]


def agree(driver: Driver, db: str, altered: AlterTable) -> None:
    """Spark shows the columns that were reported, with their types."""
    assert altered.new_table is not None
    rows = driver.rows(f"DESCRIBE TABLE ice.{db}.{altered.identifier.table}")
    ours = [(c.name, simple_string(parse_json(c.type)), c.comment) for c in altered.new_table.columns]
    assert ours == [(row.col_name, row.data_type, row.comment) for row in rows[: len(ours)]]


def test_what_is_dropped_was_that_generation(driver: Driver) -> None:
    db = driver.database("ice")
    driver.run(A.replace("{db}", db))
    first = Metadata(driver, db, "a").uuid
    dropped = the(DropTable, driver.events_of(f"DROP TABLE ice.{db}.a"))
    made = the(CreateTable, driver.events_of(A.replace("{db}", db)))
    assert dropped.generation == first
    assert made.generation == Metadata(driver, db, "a").uuid != first


def test_truncate_names_the_generation(driver: Driver) -> None:
    db = driver.database("ice")
    driver.run(A.replace("{db}", db))
    assert the(Truncate, driver.events_of(f"TRUNCATE TABLE ice.{db}.a")).generation == Metadata(driver, db, "a").uuid


def test_a_replaced_table_keeps_its_generation(driver: Driver) -> None:
    """Iceberg's own: REPLACE goes on with the table's history."""
    db = driver.database("ice")
    driver.run(A.replace("{db}", db))
    generation = Metadata(driver, db, "a").uuid
    replaced = the(CreateTable, driver.events_of(f"REPLACE TABLE ice.{db}.a (x INT) USING iceberg"))
    assert (replaced.generation, replaced.replaced_generation) == (generation, generation)


def test_a_table_that_somebody_else_had_made(driver: Driver) -> None:
    """Made before the statement began: so it wasn't made by it. This driver had never seen it."""
    db = driver.database("ice")
    with_nobody_looking(driver, A.replace("{db}", db))
    assert lines(driver.events_of(f"CREATE TABLE IF NOT EXISTS ice.{db}.a (id INT) USING iceberg")) == []
    (dropped,) = of(DropTable, driver.events_of(f"DROP TABLE IF EXISTS ice.{db}.a"))
    assert dropped.effect is ModificationEffect.UNKNOWN
    assert dropped.table is None


def test_a_catalog_is_declared_when_it_is_first_used(driver: Driver) -> None:
    driver.events_of(*(A.replace("{db}", driver.database("ice")) for _ in range(2)))
    declared = [event for event in of(CatalogOptionsDeclared, driver.bus.events) if event.context.name == "ice"]
    assert len(declared) == 1
    first = next(e for e in of(CatalogModification, driver.bus.events) if e.context.name == "ice")
    assert driver.bus.events.index(declared[0]) < driver.bus.events.index(first)


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TABLE ice.{db}.a (id INT) USING iceberg",
        "REPLACE TABLE ice.{db}.nothing (id INT) USING iceberg",
        "CREATE TABLE ice.{db}.t USING iceberg AS SELECT raise_error('no') AS x",
        "ALTER TABLE ice.{db}.a ADD COLUMN id INT",
        "ALTER TABLE ice.{db}.a ALTER COLUMN s TYPE INT",
        "ALTER TABLE ice.{db}.a SET LOCATION '/elsewhere'",
        "ALTER TABLE ice.{db}.a RENAME TO {db}.b",
        "DROP TABLE ice.{db}.nothing",
        "DROP NAMESPACE ice.{db}",
    ],
)
def test_what_failed_changed_nothing(driver: Driver, statement: str) -> None:
    db = driver.database("ice")
    driver.run(A.replace("{db}", db))
    events: list[Event] = driver.events_of_failure(statement.replace("{db}", db))
    assert lines(events) == []
    assert not of(Gap, events)
