"""Iceberg's tables out of what was there before: files and tables that are taken in, metadata that is registered, held
back snapshots that are published; and commits that are made by calling the library, with no statement around them.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from headwater.events import Committed, CreateTable, DatasetId, Format, Gap, Output, TableName
from headwater.events.column_lineage import Derivation
from headwater.events.jobs import CommitKind, OverwriteScope
from tests.kit.formats.iceberg_truth import Metadata, metadata_at
from tests.kit.spark.driver import HOST, ICEBERG, Driver, Extensions, driver_fixture, edges, of, the

pytestmark = [pytest.mark.sample(1, keep=("test_files_that_are_added",)), pytest.mark.needs("iceberg")]

SESSION = Extensions(
    ICEBERG.packages,
    {
        **ICEBERG.conf,
        "spark.sql.catalog.spark_catalog": "org.apache.iceberg.spark.SparkSessionCatalog",
        "spark.sql.catalog.spark_catalog.type": "hive",
        "spark.sql.catalogImplementation": "hive",
        "spark.hadoop.javax.jdo.option.ConnectionURL": "jdbc:derby:memory:headwater;create=true",
        "spark.hadoop.datanucleus.schema.autoCreateTables": "true",
        "spark.hadoop.hive.metastore.schema.verification": "false",
        "spark.hadoop.iceberg.engine.hive.lock-enabled": "false",
    },
)
"""`migrate` needs a session catalog that keeps Iceberg's tables beside others where they are: a Hive metastore."""


driver = driver_fixture(SESSION)


class Place:
    def __init__(self, driver: Driver) -> None:
        self.driver = driver
        self.db = driver.database("ice", "spark_catalog")

    def home(self, table: str) -> Path:
        return self.driver.warehouse / "ice" / self.db / table

    def truth(self, table: str) -> Metadata:
        return metadata_at(self.home(table))

    def name(self, table: str) -> TableName:
        return TableName(catalog="ice", database=self.db, table=table)

    def files(self) -> str:
        """A table of files in Spark's own catalog, with two rows."""
        self.driver.run(f"CREATE TABLE spark_catalog.{self.db}.f USING parquet AS SELECT id FROM range(2)")
        return f"spark_catalog.{self.db}.f"


@pytest.fixture
def place(driver: Driver) -> Place:
    return Place(driver)


def is_newest(output: Output, truth: Metadata) -> None:
    assert output.snapshot == truth.current == truth.ids[-1]
    assert output.parent == truth.snapshots[truth.ids[-1]].get("parent-snapshot-id")
    assert output.generation == UUID(truth.content["table-uuid"])


def test_files_that_are_added(place: Place) -> None:
    place.driver.run(f"CREATE TABLE ice.{place.db}.t (id BIGINT) USING iceberg")
    events = place.driver.events_of(f"CALL ice.system.add_files('{place.db}.t', '{place.files()}')")

    committed = the(Committed, events)
    (output,) = committed.outputs
    is_newest(output, place.truth("t"))
    assert (output.table, output.made_from) == (place.name("t"), None)
    assert (output.commit_kind, output.replaced, output.rows) == (CommitKind.APPEND, OverwriteScope.NOTHING, 2)
    assert committed.inputs == ()
    assert len(of(Gap, events)) == 1


def test_a_snapshot_of_a_table_of_another_kind(place: Place) -> None:
    source = place.files()
    events = place.driver.events_of(f"CALL ice.system.snapshot('{source}', 'ice.{place.db}.t')")

    created = the(CreateTable, events)
    assert (created.identifier, created.generation) == (place.name("t"), place.truth("t").generation)
    (output,) = the(Committed, events).outputs
    is_newest(output, place.truth("t"))
    assert (output.commit_kind, output.made_from, output.rows) == (CommitKind.CREATE, None, 2)
    assert len(of(Gap, events)) == 1


def test_a_table_that_is_migrated(place: Place) -> None:
    source = place.files()
    events = place.driver.events_of(f"CALL spark_catalog.system.migrate('{source}')")

    home = place.driver.warehouse / "spark" / f"{place.db}.db" / "f"
    newest = max((home / "metadata").glob("*.metadata.json"))
    truth = Metadata(json.loads(newest.read_text()))
    (output,) = the(Committed, events).outputs
    is_newest(output, truth)
    assert output.table == TableName(catalog="spark_catalog", database=place.db, table="f")
    assert output.dataset == DatasetId(namespace=f"file://{HOST}", name=str(home))
    assert (output.commit_kind, output.made_from) == (CommitKind.CREATE, None)
    assert the(CreateTable, events).replaced
    assert len(of(Gap, events)) == 1


@pytest.mark.long
def test_metadata_that_is_registered(place: Place) -> None:
    """The table was there before, under no name of this catalog."""
    driver = place.driver
    driver.run(
        f"CREATE TABLE spark_catalog.{place.db}.t (id INT) USING iceberg",
        f"INSERT INTO spark_catalog.{place.db}.t VALUES (1)",
    )
    home = driver.warehouse / "spark" / f"{place.db}.db" / "t"
    newest = max((home / "metadata").glob("*.metadata.json"))
    events = driver.events_of(f"CALL spark_catalog.system.register_table('{place.db}.u', '{newest}')")

    created = the(CreateTable, events)
    assert created.identifier == TableName(catalog="spark_catalog", database=place.db, table="u")
    assert created.generation == UUID(json.loads(newest.read_text())["table-uuid"])
    assert created.dataset == DatasetId(namespace=f"file://{HOST}", name=str(home))
    assert not of(Committed, events)
    assert not of(Gap, events)


def test_what_was_held_back_is_published(place: Place) -> None:
    driver = place.driver
    table = f"ice.{place.db}.t"
    driver.run(
        f"CREATE TABLE {table} (id INT) USING iceberg TBLPROPERTIES ('write.wap.enabled' = 'true')",
        f"INSERT INTO {table} VALUES (1)",
        "SET spark.wap.id = w1",
        f"INSERT INTO {table} VALUES (2)",
        "RESET spark.wap.id",
        f"INSERT INTO {table} VALUES (3)",
    )
    events = driver.events_of(f"CALL ice.system.publish_changes('{place.db}.t', 'w1')")

    truth = place.truth("t")
    assert truth.snapshots[truth.ids[-1]]["summary"]["published-wap-id"] == "w1"
    (output,) = the(Committed, events).outputs
    is_newest(output, truth)
    assert (output.commit_kind, output.replaced, output.rows) == (CommitKind.CHERRY_PICK, OverwriteScope.NOTHING, 1)
    assert not of(Gap, events)


def loaded(driver: Driver, name: str) -> Any:
    inside: Any = driver.spark
    return inside._jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergTable(inside._jsparkSession, name)


@pytest.mark.parametrize("was_born_in_statement", [False, True])
def test_a_commit_of_the_library_in_a_table_that_a_catalog_has(place: Place, was_born_in_statement: bool) -> None:
    """A thread that was born in a statement has its number for ever: when that is over, it says nothing."""
    table = f"ice.{place.db}.t"
    place.driver.run(f"CREATE TABLE {table} (id INT) USING iceberg")
    done = the(Committed, place.driver.events_of(f"INSERT INTO {table} VALUES (1)"))
    inside: Any = place.driver.spark
    rows = inside._jvm.org.apache.iceberg.expressions.Expressions.alwaysTrue()

    delete = loaded(place.driver, table).newDelete().deleteFromRowFilter(rows)

    inside.sparkContext.setLocalProperty(
        "spark.sql.execution.id", str(done.statement) if was_born_in_statement else None
    )
    try:
        events = place.driver.events_of(lambda _: delete.commit())
    finally:
        inside.sparkContext.setLocalProperty("spark.sql.execution.id", None)

    committed = the(Committed, events)
    (output,) = committed.outputs
    is_newest(output, place.truth("t"))
    assert (output.table, output.format) == (place.name("t"), Format.ICEBERG)
    assert output.dataset == DatasetId(namespace=f"file://{HOST}", name=str(place.home("t")))
    assert (output.commit_kind, output.made_from, committed.inputs) == (CommitKind.DELETE, None, ())
    assert (output.main, committed.statement) == (True, None)
    assert not of(Gap, events)


@pytest.mark.long
def test_a_commit_of_the_library_in_a_table_that_no_catalog_has(place: Place) -> None:
    """A name alone may be that of another catalog's table: this one is called as one that is there, and isn't it."""
    driver = place.driver
    driver.run(f"CREATE TABLE ice.{place.db}.t (id INT) USING iceberg")
    inside: Any = driver.spark
    jvm, context = inside._jvm, inside.sparkContext
    conf = context._jsc.hadoopConfiguration()
    catalog = jvm.org.apache.iceberg.hadoop.HadoopCatalog()
    catalog.setConf(conf)
    options = jvm.java.util.HashMap()
    options.put("warehouse", str(driver.warehouse / driver.name()))
    catalog.initialize("ice", options)
    levels = context._gateway.new_array(jvm.java.lang.String, 1)
    levels[0] = place.db
    name = jvm.org.apache.iceberg.catalog.TableIdentifier.of(jvm.org.apache.iceberg.catalog.Namespace.of(levels), "t")
    schema = loaded(driver, f"ice.{place.db}.t").schema()

    events = driver.events_of(lambda _: catalog.createTable(name, schema).newAppend().commit())

    assert not of(Committed, events)
    assert "outside of any statement" in the(Gap, events).detail


@pytest.mark.sample(1)
@pytest.mark.parametrize("condition", ["id = 1", "s = 'a'"])
def test_what_decides_about_rows_that_are_deleted(place: Place, condition: str) -> None:
    """Whether rows are rewritten, or files dropped as a whole, the shape is one."""
    table = f"ice.{place.db}.t"
    place.driver.run(
        f"CREATE TABLE {table} (id INT, s STRING) USING iceberg PARTITIONED BY (s)",
        f"INSERT INTO {table} VALUES (1, 'a'), (2, 'a'), (1, 'b')",
    )
    events = place.driver.events_of(f"DELETE FROM {table} WHERE {condition}")
    column = condition.partition(" ")[0]
    assert edges(place.driver.lineage(the(Committed, events))) == {f"~{Derivation.FILTER.value} t.{column}"}
    assert not of(Gap, events)
