"""Catalogs by the table of truth, and what depends on where an application stands."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from headwater.events.identity import Environment, Unknown, kafka_namespace
from headwater.events.names import CatalogId
from headwater.listeners.capture.formats import installed
from tests.kit.identity_rows import SITE, Row, check, names, options, rows

ROWS = rows("catalogs")


def catalog_id(name: str, class_name: str | None, given: Mapping[str, str], environment: Environment) -> object:
    found = installed().catalog_of(name, class_name, given, environment)
    return found if isinstance(found, Unknown) else found.id


@pytest.mark.parametrize("row", ROWS, ids=names(ROWS))
def test_catalog(row: Row) -> None:
    name, class_name, given = row.given

    def identify() -> Unknown | str:
        found = installed().catalog_of(name, class_name, options(given), SITE)
        return found if isinstance(found, Unknown) else f"{found.id.type} | {found.id.location}"

    check(row, identify)


HIVE = replace(SITE, session_catalog="hive")


@pytest.mark.parametrize(
    ("environment", "location"),
    [
        (replace(HIVE, metastore="thrift://m2:9083,thrift://m1"), "hive://m1:9083"),
        (replace(HIVE, metastore_database="jdbc:mysql://u:p@h/hive"), "mysql://h:3306/hive"),
        (replace(HIVE, metastore_database="jdbc:derby:;databaseName=/srv/m;create=true"), "derby://driver-1/srv/m"),
        (HIVE, "derby://driver-1/home/etl/metastore_db"),
        (replace(HIVE, derby_home="/var/derby/a"), "derby://driver-1/var/derby/a/metastore_db"),
        (replace(HIVE, derby_home="/var/derby/b"), "derby://driver-1/var/derby/b/metastore_db"),
        (replace(HIVE, derby_home="derby"), "derby://driver-1/home/etl/derby/metastore_db"),
        (replace(HIVE, derby_home="/d", metastore_database="jdbc:derby:m;create=true"), "derby://driver-1/d/m"),
        (replace(HIVE, derby_home="/d", metastore_database="jdbc:derby:/srv/m"), "derby://driver-1/srv/m"),
    ],
)
def test_the_session_catalog_is_its_metastore(environment: Environment, location: str) -> None:
    for class_name in (None, "org.apache.spark.sql.delta.catalog.DeltaCatalog"):
        assert catalog_id("spark_catalog", class_name, {}, environment) == CatalogId(type="hive", location=location)


def test_without_anything_told_a_session_catalog_is_unknown() -> None:
    assert isinstance(catalog_id("spark_catalog", None, {}, Environment(host="h")), Unknown)
    assert isinstance(catalog_id("spark_catalog", None, {}, Environment(host="h", session_catalog="hive")), Unknown)
    in_memory = Environment(host="h", session_catalog="hive", metastore_database="jdbc:derby:memory:x")
    assert isinstance(catalog_id("spark_catalog", None, {}, in_memory), Unknown)


def test_glue_is_unknown_without_region_or_account() -> None:
    glue = {"type": "glue"}
    for environment in (replace(SITE, aws_account=None), replace(SITE, aws_region=None)):
        assert isinstance(catalog_id("g", "org.apache.iceberg.spark.SparkCatalog", glue, environment), Unknown)


def test_unity_is_unknown_without_its_server() -> None:
    found = catalog_id("m", "io.unitycatalog.spark.UCSingleCatalog", {}, replace(SITE, workspace=None))
    assert isinstance(found, Unknown)


def test_a_metastore_is_one_catalog_for_all_formats() -> None:
    environment = replace(HIVE, metastore="thrift://m1:9083")
    iceberg = catalog_id("ice", "org.apache.iceberg.spark.SparkCatalog", {"type": "hive"}, environment)
    paimon = catalog_id("p", "org.apache.paimon.spark.SparkCatalog", {"metastore": "hive"}, environment)
    assert iceberg == paimon == catalog_id("spark_catalog", None, {}, environment)


def test_a_catalog_never_shows_its_options() -> None:
    given = {"url": "jdbc:postgresql://h/db", "user": "u", "password": "hunter2"}
    found = installed().catalog_of(
        "d", "org.apache.spark.sql.execution.datasources.v2.jdbc.JDBCTableCatalog", given, SITE
    )
    assert "hunter2" not in repr(found)


def test_a_site_out_of_a_configuration() -> None:
    conf = {
        "spark.hadoop.fs.defaultFS": "hdfs://ha",
        "spark.hadoop.dfs.nameservices": "HA, other",
        "hive.metastore.uris": "thrift://m:9083",
        "spark.sql.catalogImplementation": "hive",
        "spark.sql.warehouse.dir": "/wh",
        "spark.databricks.workspaceUrl": "acme.cloud.example",
        "spark.headwater.namespaces.kafka": "b1,b2",
    }
    environment = Environment.from_conf(conf, host="h", working_directory="/w")
    assert environment.default_filesystem == "hdfs://ha"
    assert environment.nameservices == frozenset({"ha", "other"})
    assert (environment.metastore, environment.session_catalog, environment.warehouse) == (
        "thrift://m:9083",
        "hive",
        "/wh",
    )
    assert (environment.workspace, environment.working_directory) == ("acme.cloud.example", "/w")
    assert kafka_namespace("b2:9092,b3:9092", environment) == "kafka://kafka"
    assert Environment.from_conf({}, host="h") == Environment(host="h")
