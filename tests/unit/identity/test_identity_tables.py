"""A table's identity: by location, by a layout that leaves no choice, else only by name."""

from __future__ import annotations

from dataclasses import replace

import pytest

from headwater.events.identity import (
    Catalog,
    Environment,
    IdentityError,
    TableIdentity,
    Unknown,
    dataset_of_uri,
    symlink_of,
    table_identity,
)
from headwater.events.names import TableName
from headwater.listeners.capture.formats import installed
from tests.kit.identity_rows import SITE, options

PAIMON = "org.apache.paimon.spark.SparkCatalog"
ICEBERG = "org.apache.iceberg.spark.SparkCatalog"
DATABASE = "org.apache.spark.sql.execution.datasources.v2.jdbc.JDBCTableCatalog"
UNITY = "io.unitycatalog.spark.UCSingleCatalog"


def catalog(class_name: str, given: str, environment: Environment = SITE) -> Catalog:
    found = installed().catalog_of("c", class_name, options(given), environment)
    assert isinstance(found, Catalog), found
    return found


def identity(found: Catalog, database: str, table: str, location: str | None = None) -> TableIdentity:
    identified = table_identity(found, TableName(catalog="c", database=database, table=table), SITE, location)
    assert isinstance(identified, TableIdentity), identified
    return identified


def written(found: TableIdentity) -> str:
    link = f" <- {found.symlink.namespace} | {found.symlink.name}" if found.symlink else ""
    return f"{found.by}: {found.dataset.namespace} | {found.dataset.name}{link}"


# class, options, database, table, location, truth
TABLES = [
    (PAIMON, "warehouse=s3a://b/wh", "db", "t", "s3a://b/wh/db.db/t",
     "location: s3://b | wh/db.db/t <- s3://b/wh | db.t"),
    (PAIMON, "warehouse=s3a://b/wh/", "db", "t", None, "warehouse: s3://b | wh/db.db/t <- s3://b/wh | db.t"),
    (PAIMON, "warehouse=s3://b", "db", "t", None, "warehouse: s3://b | db.db/t <- s3://b/ | db.t"),
    (PAIMON, "warehouse=s3://b/wh", "Db", "T", None, "warehouse: s3://b | wh/Db.db/T <- s3://b/wh | Db.T"),
    (PAIMON, "warehouse=s3://b/wh", "db", "t$branch_x", None, "warehouse: s3://b | wh/db.db/t <- s3://b/wh | db.t"),
    (PAIMON, "warehouse=s3://b/wh", "db", "t$snapshots", None, "warehouse: s3://b | wh/db.db/t <- s3://b/wh | db.t"),
    (PAIMON, "warehouse=s3://b/wh", "db", "a.b", None, "warehouse: s3://b | wh/db.db/a.b <- s3://b/wh | db.`a.b`"),
    (PAIMON, "warehouse=/wh", "db", "t", None, "warehouse: file://driver-1 | /wh/db.db/t <- file://driver-1/wh | db.t"),
    (PAIMON, "metastore=hive, uri=thrift://m", "Db", "T", None, "metastore: hive://m:9083 | db.t"),
    (PAIMON, "metastore=hive, uri=thrift://m", "db", "t", "s3://b/x", "location: s3://b | x <- hive://m:9083 | db.t"),
    (ICEBERG, "type=hadoop, warehouse=s3://b/wh", "db", "t", None, "warehouse: s3://b | wh/db/t <- s3://b/wh | db.t"),
    (ICEBERG, "type=hadoop, warehouse=s3://b/wh", "a.b", "t", None,
     "warehouse: s3://b | wh/a/b/t <- s3://b/wh | a.b.t"),
    (ICEBERG, "type=hadoop, warehouse=s3://b/wh", "`a.b`", "t", None,
     "warehouse: s3://b | wh/a.b/t <- s3://b/wh | `a.b`.t"),
    (ICEBERG, "type=hadoop, warehouse=file:/tmp/iceberg", "default", "table", "file:/tmp/iceberg/default/table",
     "location: file://driver-1 | /tmp/iceberg/default/table <- file://driver-1/tmp/iceberg | default.table"),
    (ICEBERG, "type=rest, uri=https://r, warehouse=w", "db", "t", None, "metastore: https://r;warehouse=w | db.t"),
    (ICEBERG, "type=rest, uri=https://r", "db", "t", "s3://b/x", "location: s3://b | x <- https://r | db.t"),
    (ICEBERG, "type=glue", "Db", "t", None, "metastore: arn:aws:glue:eu-west-1:123456789012 | table/db/t"),
    (ICEBERG, "type=glue", "db", "t", "s3://b/x",
     "location: s3://b | x <- arn:aws:glue:eu-west-1:123456789012 | table/db/t"),
    (DATABASE, "url=jdbc:postgresql://h/db", "public", "Orders", None,
     "location: postgres://h:5432 | db.public.Orders"),
    (DATABASE, "url=jdbc:mysql://h", "db", "t", None, "location: mysql://h:3306 | db.t"),
    (DATABASE, "url=jdbc:postgresql://h/db", "`a.b`", "t", None, "location: postgres://h:5432 | db.`a.b`.t"),
    (UNITY, "uri=https://uc", "s", "T", None, "metastore: unitycatalog://uc | c.s.t"),
    (UNITY, "uri=https://uc", "s", "t", "abfss://x@a.dfs.core.windows.net/t",
     "location: abfss://x@a.dfs.core.windows.net | t <- unitycatalog://uc | c.s.t"),
]  # fmt: skip


@pytest.mark.parametrize("case", TABLES)
def test_table(case: tuple[str, str, str, str, str | None, str]) -> None:
    class_name, given, database, table, location, truth = case
    assert written(identity(catalog(class_name, given), database, table, location)) == truth


def test_a_location_may_come_as_a_dataset() -> None:
    found = dataset_of_uri("file:/wh/a%20b", SITE)
    name = TableName(catalog="c", database="db", table="t")
    identified = table_identity(catalog(PAIMON, "warehouse=/wh"), name, SITE, found)
    assert isinstance(identified, TableIdentity)
    assert (identified.dataset, identified.by) == (found, "location")


@pytest.mark.parametrize(("database", "table"), [("db", ".."), ("a/b", "t"), ("db", "x/y"), ("`..`", "t")])
def test_a_name_never_leads_out_of_its_warehouse(database: str, table: str) -> None:
    for class_name, given in ((PAIMON, "warehouse=/wh"), (ICEBERG, "type=hadoop, warehouse=/wh")):
        with pytest.raises(IdentityError, match="location has to be given"):
            identity(catalog(class_name, given), database, table)


def test_the_session_catalog_folds_names_as_it_stores_them() -> None:
    hive = installed().catalog_of(
        "spark_catalog", None, {}, replace(SITE, session_catalog="hive", metastore="thrift://m")
    )
    assert isinstance(hive, Catalog)
    found = symlink_of(hive, TableName(catalog="spark_catalog", database="Sales", table="Orders"))
    assert (found.namespace, found.name) == ("hive://m:9083", "sales.orders")


def test_a_table_of_a_database_in_memory_is_unknown() -> None:
    found = catalog(DATABASE, "url=jdbc:mysql://h")
    name = TableName(catalog="c", database="a.b", table="t")
    assert isinstance(table_identity(found, name, SITE), Unknown)
