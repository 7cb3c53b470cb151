"""What is written of one format and read of another: each finds its own versions in a plan that the other one runs."""

from __future__ import annotations

import pytest

from headwater.events import Committed, Gap, TableName
from tests.kit.formats.iceberg_truth import metadata_at
from tests.kit.spark.driver import DELTA, ICEBERG, Driver, driver_fixture, edges, of, the, together

pytestmark = [pytest.mark.sample(2), pytest.mark.needs("delta", "iceberg"), pytest.mark.long]


driver = driver_fixture(together(ICEBERG, DELTA))


@pytest.fixture(scope="module")
def db(driver: Driver) -> str:
    """ice.<db>.t(id, s) of Iceberg; <db>.d(id, s) of Delta with versions 0, 1 and 2."""
    db = driver.database("ice", "spark_catalog")
    driver.run(
        f"CREATE TABLE ice.{db}.t USING iceberg AS SELECT id, 'a' AS s FROM range(9)",
        f"CREATE TABLE {db}.d USING delta AS SELECT id, 'b' AS s FROM range(3)",
        f"INSERT INTO {db}.d VALUES (7, 'c')",
        f"INSERT INTO {db}.d VALUES (8, 'c')",
    )
    return db


@pytest.mark.parametrize(
    ("statement", "version", "columns"),
    [
        ("INSERT INTO ice.{db}.t SELECT id, s FROM {db}.d", 2, {"id <- d.id", "s <- d.s"}),
        ("INSERT INTO ice.{db}.t SELECT id, s FROM {db}.d VERSION AS OF 1", 1, {"id <- d.id", "s <- d.s"}),
        pytest.param(
            "MERGE INTO ice.{db}.t t USING {db}.d d ON t.id = d.id WHEN MATCHED THEN UPDATE SET s = d.s",
            2,
            {"s <- d.s", "~JOIN t.id", "~JOIN d.id"},
            marks=pytest.mark.spark3,  # Spark 4.1 with Delta 4.4 says "Table does not support reads", without us too
        ),
        ("DELETE FROM ice.{db}.t WHERE id IN (SELECT id FROM {db}.d)", 2, {"~FILTER t.id", "~FILTER d.id"}),
        (
            "UPDATE ice.{db}.t SET s = 'u' WHERE id IN (SELECT id FROM {db}.d VERSION AS OF 1)",
            1,
            {"~FILTER t.id", "~FILTER d.id"},
        ),
    ],
)
def test_a_version_of_deltas_is_read_by_a_write_of_icebergs(
    driver: Driver, db: str, statement: str, version: int, columns: set[str]
) -> None:
    events = driver.events_of(statement.format(db=db))
    committed = the(Committed, events)
    read = {each.table: each.snapshot for each in committed.inputs}
    assert read[TableName(catalog="spark_catalog", database=db, table="d")] == version
    truth = metadata_at(driver.warehouse / "ice" / db / "t")
    (output,) = committed.outputs
    assert (output.snapshot, len(output.made_from or ())) == (truth.current, len(committed.inputs))
    found = edges(driver.lineage(committed))
    assert columns <= found
    assert not of(Gap, events)
