"""The three jobs of FLIP-294, as Spark tells them: one topic, two warehouses, one database table: four datasets."""

from __future__ import annotations

from headwater.events.identity import (
    Catalog,
    Environment,
    Namespaces,
    TableIdentity,
    dataset_of_source,
    table_identity,
)
from headwater.events.names import CatalogId, DatasetId, TableName
from headwater.listeners.capture.formats import installed

SITE = Environment(host="driver-1", namespaces=Namespaces(), working_directory="/data")
PAIMON = "org.apache.paimon.spark.SparkCatalog"

# CREATE TABLE my_kafka_table1 USING kafka OPTIONS (…); my_kafka_table2 is written a little differently
KAFKA_1 = {
    "kafka.bootstrap.servers": "kafka_bootstrap_server",
    "subscribe": "kafka_topic",
    "kafka.group.id": "kafka_group",
}
KAFKA_2 = {
    "kafka.bootstrap.servers": "KAFKA_bootstrap_server:9092",
    "Subscribe": "kafka_topic",
    "kafka.group.id": "another_group",
}
MYSQL = {
    "url": "jdbc:mysql://HOST:3306/my_database?user=me&password=***",
    "dbtable": "my_mysql_table",
    "user": "me",
    "password": "***",
}


def of_source(source_format: str, options: dict[str, str]) -> DatasetId:
    (dataset,) = dataset_of_source(source_format, options, SITE).datasets
    return dataset


def catalog(name: str, warehouse: str) -> Catalog:
    found = installed().catalog_of(name, PAIMON, {"warehouse": warehouse}, SITE)
    assert isinstance(found, Catalog)
    return found


def paimon(name: str, warehouse: str) -> DatasetId:
    table = TableName(catalog=name, database="default", table="my_paimon_table")
    found = table_identity(catalog(name, warehouse), table, SITE)
    assert isinstance(found, TableIdentity)
    return found.dataset


def test_three_jobs_touch_exactly_four_datasets() -> None:
    job_a = frozenset([of_source("kafka", KAFKA_1), paimon("paimon_catalog", "paimon_path1")])
    job_b = frozenset([of_source("kafka", KAFKA_2), paimon("paimon_catalog", "paimon_path2")])
    same_1, same_2 = paimon("paimon_catalog1", "paimon_path1"), paimon("paimon_catalog2", "file:///data/paimon_path2/")
    job_c = frozenset([same_1, same_2, of_source("jdbc", MYSQL)])
    assert sorted(job_a | job_b | job_c, key=str) == [
        DatasetId(namespace="file://driver-1", name="/data/paimon_path1/default.db/my_paimon_table"),
        DatasetId(namespace="file://driver-1", name="/data/paimon_path2/default.db/my_paimon_table"),
        DatasetId(namespace="kafka://kafka_bootstrap_server:9092", name="kafka_topic"),
        DatasetId(namespace="mysql://host:3306", name="my_database.my_mysql_table"),
    ]
    assert (len(job_a), len(job_b), len(job_c)) == (2, 2, 3)
    assert len(job_a & job_b) == 1
    assert len(job_a & job_c) == len(job_b & job_c) == 1


def test_one_catalog_name_for_two_warehouses_is_two_catalogs_and_two_names_for_one_are_one() -> None:
    first = catalog("paimon_catalog", "paimon_path1").id
    second = catalog("paimon_catalog", "paimon_path2").id
    assert first == CatalogId(type="paimon", location="file://driver-1/data/paimon_path1")
    assert second == CatalogId(type="paimon", location="file://driver-1/data/paimon_path2")
    assert catalog("paimon_catalog1", "/data/paimon_path1/").id == first
    assert catalog("paimon_catalog2", "file:/data/./paimon_path2").id == second
