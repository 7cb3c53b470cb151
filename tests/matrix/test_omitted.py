"""What a catalog's own options keep from being reported, and that the driver says so."""

from __future__ import annotations

from headwater.events import CatalogOptionsDeclared, Committed, Gap, JobLineage
from tests.kit.spark.driver import ICEBERG, Driver, Extensions, driver_fixture, of, the

_CATALOG = {key: text for key, text in ICEBERG.conf.items() if key.startswith("spark.sql.catalog.ice")}
_HIDDEN = {key.replace(".ice", ".hid"): text.replace("/ice", "/hid") for key, text in _CATALOG.items()}
_UNVERSIONED = {key.replace(".ice", ".unv"): text.replace("/ice", "/unv") for key, text in _CATALOG.items()}
EXTENSIONS = Extensions(
    ICEBERG.packages,
    {
        **ICEBERG.conf,
        **_HIDDEN,
        **_UNVERSIONED,
        "spark.sql.catalog.hid.table-lineage": "false",
        "spark.sql.catalog.unv.data-lineage": "false",
    },
)


driver = driver_fixture(EXTENSIONS)


def test_a_catalog_without_table_lineage_is_in_no_commit_and_that_is_declared(driver: Driver) -> None:
    db = driver.database("hid", "ice")
    driver.run(f"CREATE TABLE ice.{db}.seen (id INT) USING iceberg")
    events = driver.events_of(
        f"CREATE TABLE hid.{db}.a USING iceberg AS SELECT 1 AS id",
        f"INSERT INTO ice.{db}.seen SELECT id FROM hid.{db}.a",
        f"INSERT INTO hid.{db}.a SELECT id FROM ice.{db}.seen",
    )
    committed = the(Committed, events)
    assert [str(each.table) for each in committed.outputs] == [f"ice.{db}.seen"]
    assert committed.inputs == ()
    assert the(JobLineage, events).columns == ()
    declared = {each.context.name: each for each in of(CatalogOptionsDeclared, driver.bus.events)}
    assert (declared["hid"].table_lineage, declared["ice"].table_lineage) == (False, True)
    assert not of(Gap, events)


def test_a_catalog_without_data_lineage_is_reported_without_versions(driver: Driver) -> None:
    db = driver.database("unv", "ice")
    driver.run(f"CREATE TABLE ice.{db}.b (id INT) USING iceberg")
    events = driver.events_of(
        f"CREATE TABLE unv.{db}.a USING iceberg AS SELECT 1 AS id",
        f"INSERT INTO ice.{db}.b SELECT id FROM unv.{db}.a",
    )
    made, read = of(Committed, events)
    assert (made.outputs[0].snapshot, made.outputs[0].parent, made.outputs[0].rows) == (None, None, 1)
    assert (read.inputs[0].snapshot, read.inputs[0].candidates) == (None, ())
    head = driver.rows(f"SELECT snapshot_id FROM ice.{db}.b.snapshots")[0][0]
    assert read.outputs[0].snapshot == head
    declared = {each.context.name: each for each in of(CatalogOptionsDeclared, driver.bus.events)}
    assert (declared["unv"].table_lineage, declared["unv"].data_lineage) == (True, False)
    assert not of(Gap, events)


def test_a_catalog_is_declared_once(driver: Driver) -> None:
    names = [each.context.name for each in of(CatalogOptionsDeclared, driver.bus.events)]
    assert len(names) == len(set(names))
