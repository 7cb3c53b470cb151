"""Sessions of one application whose configuration differs: each statement is reported as its own session means it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from headwater.events import AlterTable, Committed, CreateTable, DropTable, Event, Gap, JobLineage
from tests.kit.formats.iceberg_truth import metadata_at
from tests.kit.spark.driver import HOST, ICEBERG, Driver, driver_fixture, edges, of, the

pytestmark = [pytest.mark.needs("iceberg"), pytest.mark.sample(1, keep=("test_one_name_of_two_catalogs",))]

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


driver = driver_fixture(ICEBERG, spark__headwater__capture__sql="true")


def session(driver: Driver, warehouse: str, **options: str) -> SparkSession:
    """A session to which `ice` is another warehouse."""
    made = driver.spark.newSession()
    made.conf.set("spark.sql.catalog.ice.warehouse", str(driver.warehouse / warehouse))
    for key, text in options.items():
        made.conf.set(key.replace("__", "."), text)
    return made


def events_in(driver: Driver, session: SparkSession, statement: str) -> list[Event]:
    return driver.events_of(lambda _: session.sql(statement))


@pytest.mark.smoke
def test_one_name_of_two_catalogs(driver: Driver) -> None:
    """Statements of both take turns: what is known of the one's table is never reported of the other's."""
    name = driver.name()
    homes = [driver.warehouse / warehouse / name / "t" for warehouse in ("one", "two")]
    sessions = [session(driver, warehouse) for warehouse in ("one", "two")]
    both = list(zip(sessions, homes, strict=True))
    for number, (each, _) in enumerate(both):
        events_in(driver, each, f"CREATE DATABASE ice.{name}")
        events_in(driver, each, f"CREATE TABLE ice.{name}.t (id INT) USING iceberg TBLPROPERTIES ('n' = '{number}')")
    for each, home in both:
        committed = the(Committed, events_in(driver, each, f"INSERT INTO ice.{name}.t SELECT 1 AS id"))
        (output,), lineage = committed.outputs, driver.lineage(committed)
        truth = metadata_at(home)
        assert output.dataset is not None
        assert (output.dataset.name, output.snapshot, output.generation) == (str(home), truth.current, truth.generation)
        assert [catalog.id.location for catalog in lineage.catalogs] == [f"file://{HOST}{home.parents[1]}"]
    for each, home in both:
        altered = the(AlterTable, events_in(driver, each, f"ALTER TABLE ice.{name}.t ADD COLUMN s STRING"))
        assert altered.generation == metadata_at(home).generation
    generations = [metadata_at(home).generation for _, home in both]
    reported = [the(DropTable, events_in(driver, each, f"DROP TABLE ice.{name}.t")) for each in reversed(sessions)]
    assert [each.generation for each in reversed(reported)] == generations


def test_a_session_whose_catalog_keeps_its_tables(driver: Driver) -> None:
    """Another session calls a catalog the same that doesn't: that is the one that was reported of last."""
    name = driver.name()
    hidden = session(driver, "hidden", **{"spark__sql__catalog__ice__table-lineage": "false"})
    shown = session(driver, "shown")
    for each in (hidden, shown):
        events_in(driver, each, f"CREATE DATABASE ice.{name}")
        events_in(driver, each, f"CREATE TABLE ice.{name}.t USING iceberg AS SELECT 1 AS id")
    copy = f"CREATE TABLE spark_catalog.default.{name} USING parquet AS SELECT * FROM ice.{name}.t"
    events = events_in(driver, hidden, copy)
    assert the(Committed, events).inputs == ()
    assert events_in(driver, hidden, f"INSERT INTO ice.{name}.t SELECT 2 AS id") == []
    events = events_in(driver, shown, f"INSERT INTO ice.{name}.t SELECT id FROM ice.{name}.t")
    assert [str(each.table) for each in the(Committed, events).inputs] == [f"ice.{name}.t"]
    assert not of(Gap, driver.bus.events)


def test_a_session_that_keeps_its_sql(driver: Driver) -> None:
    """The application's is reported; a session can say less, never more."""
    name = driver.name()
    driver.run(f"CREATE TABLE {name} (id INT) USING parquet", f"INSERT INTO {name} VALUES (1)")
    private = driver.spark.newSession()
    private.conf.set("spark.headwater.capture.sql", "false")
    query = "AS SELECT id + 98765 AS id FROM {name} WHERE id < 98765"
    texts = []
    for each, table in ((driver.spark, f"{name}_a"), (private, f"{name}_b")):
        events = events_in(driver, each, f"CREATE TABLE {table} USING parquet {query.format(name=name)}")
        assert edges(the(JobLineage, events)) == {f"id <- TRANSFORMATION {name}.id", f"~FILTER {name}.id"}
        assert the(CreateTable, events).identifier.table == table
        texts.append("".join(event.model_dump_json() for event in events))
    assert ["98765" in text for text in texts] == [True, False]
    assert ["SELECT" in text for text in texts] == [True, False]
