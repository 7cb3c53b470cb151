"""Options of a catalog that choose a store hold, or are an error that says what to set: they did nothing in silence."""

from __future__ import annotations

import pytest

from headwater.listeners.settings import read_settings

URL = "jdbc:postgresql://db/lineage?password=geheim"
JDBC = {"spark.headwater.listeners": "jdbc", "spark.headwater.jdbc.url": URL}
LAKE = "spark.sql.catalog.lake"


@pytest.mark.parametrize(
    "conf",
    [
        {**JDBC, f"{LAKE}.jdbc.url": URL},
        {**JDBC, f"{LAKE}.lineage-meta": "jdbc", f"{LAKE}.Jdbc.Url": URL, f"{LAKE}.table-lineage": "true"},
        {**JDBC, f"{LAKE}.lineage-meta": "jdbc"},
        {f"{LAKE}.type": "jdbc", f"{LAKE}.uri": URL, f"{LAKE}.jdbc.user": "joe", f"{LAKE}.jdbc.password": "x"},
        {f"{LAKE}.url": URL, LAKE: "org.apache.spark.sql.execution.datasources.v2.jdbc.JDBCTableCatalog"},
    ],
    ids=["the same", "PIP-5's options", "the default", "Iceberg's catalog in a database", "Spark's catalog"],
)
def test_what_holds_is_no_fault(conf: dict[str, str]) -> None:
    assert read_settings(conf)[1] == ()


@pytest.mark.parametrize(
    ("conf", "key", "advice"),
    [
        ({f"{LAKE}.jdbc.url": URL}, "jdbc.url", "--catalog-store lake=URL"),
        ({f"{LAKE}.lineage-meta": "jdbc"}, "lineage-meta", "spark.headwater.listeners=jdbc"),
        ({**JDBC, f"{LAKE}.jdbc.url": "jdbc:sqlite:/other.db"}, "jdbc.url", "spark.headwater.jdbc.url to the same"),
        ({**JDBC, f"{LAKE}.lineage-meta": "attic"}, "lineage-meta", "--lineage-meta attic"),
    ],
    ids=["no listener", "not even the default", "another database", "a store of one's own"],
)
def test_what_would_do_nothing_says_what_to_set(conf: dict[str, str], key: str, advice: str) -> None:
    (fault,) = read_settings(conf)[1]
    assert str(fault).startswith(f"{LAKE}.{key} chooses no store")
    assert advice in str(fault)
    assert "geheim" not in str(fault)
