"""Which catalog a table is said to be in, from what a driver is configured with to OpenLineage's facet.

The truth is written by hand from the specification of the CatalogDatasetFacet: `framework` is what the catalog is
configured for, `type` what keeps it, `metadataUri` where that is, and `warehouseUri` where the data lies. Whoever reads
the facet chooses a client by its type, so a wrong one leads to a server that isn't there.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

import pytest

from headwater.events import TableName
from headwater.events.identity import Environment, Unknown
from headwater.events.jobs import DatasetRef, NamedCatalog
from headwater.events.scalars import Format
from headwater.forwarders.openlineage.datasets import catalog_facet
from headwater.listeners.capture.formats import installed

ICEBERG: Final = "org.apache.iceberg.spark.SparkCatalog"
PAIMON: Final = "org.apache.paimon.spark.SparkCatalog"
DELTA: Final = "org.apache.spark.sql.delta.catalog.DeltaCatalog"
SPARK: Final = "org.apache.spark.sql.execution.datasources.v2.V2SessionCatalog"
IN_MEMORY: Final = {"spark.sql.warehouse.dir": "s3://lake/spark"}
METASTORE: Final = {
    "spark.sql.catalogImplementation": "hive",
    "spark.hadoop.hive.metastore.uris": "thrift://meta:9083",
    "spark.sql.warehouse.dir": "s3://lake/hive",
}
DERBY: Final = {
    "spark.sql.catalogImplementation": "hive",
    "spark.hadoop.javax.jdo.option.ConnectionURL": "jdbc:derby:;databaseName=/data/metastore_db;create=true",
    "spark.sql.warehouse.dir": "/data/hive",
}


class Facet(NamedTuple):
    framework: str
    type: str
    metadata: str | None = None
    warehouse: str | None = None


CATALOGS: Final[Mapping[str, tuple[str, Format, Mapping[str, str], Mapping[str, str], Facet]]] = {
    "iceberg in files": (
        ICEBERG,
        Format.ICEBERG,
        {"type": "hadoop", "warehouse": "s3://lake/ice"},
        {},
        Facet("iceberg", "hadoop", None, "s3://lake/ice"),
    ),
    "iceberg in files, by its class": (
        ICEBERG,
        Format.ICEBERG,
        {"catalog-impl": "org.apache.iceberg.hadoop.HadoopCatalog", "warehouse": "s3://lake/ice/"},
        {},
        Facet("iceberg", "hadoop", None, "s3://lake/ice"),
    ),
    "iceberg's service": (
        ICEBERG,
        Format.ICEBERG,
        {"type": "rest", "uri": "https://catalog.example/api/"},
        {},
        Facet("iceberg", "rest", "https://catalog.example/api"),
    ),
    "iceberg's service, with a warehouse": (
        ICEBERG,
        Format.ICEBERG,
        {"type": "rest", "uri": "https://catalog.example/api", "warehouse": "s3://lake/ice"},
        {},
        Facet("iceberg", "rest", "https://catalog.example/api", "s3://lake/ice"),
    ),
    "iceberg in a metastore": (
        ICEBERG,
        Format.ICEBERG,
        {"type": "hive", "uri": "thrift://meta:9083"},
        {"spark.sql.warehouse.dir": "s3://lake/hive"},
        Facet("iceberg", "hive", "hive://meta:9083", "s3://lake/hive"),
    ),
    "iceberg in a metastore, with a warehouse of its own": (
        ICEBERG,
        Format.ICEBERG,
        {"type": "hive", "uri": "thrift://meta:9083", "warehouse": "s3://lake/ice"},
        {"spark.sql.warehouse.dir": "s3://lake/hive"},
        Facet("iceberg", "hive", "hive://meta:9083", "s3://lake/ice"),
    ),
    "iceberg in a database": (
        ICEBERG,
        Format.ICEBERG,
        {"type": "jdbc", "uri": "jdbc:postgresql://db:5432/ice", "warehouse": "s3://lake/ice"},
        {},
        Facet("iceberg", "jdbc", "postgres://db:5432/ice", "s3://lake/ice"),
    ),
    "iceberg in a database that is a file": (
        ICEBERG,
        Format.ICEBERG,
        {"type": "jdbc", "uri": "jdbc:sqlite:/data/ice.db", "warehouse": "s3://lake/ice"},
        {},
        Facet("iceberg", "jdbc", "sqlite://driver-1/data/ice.db", "s3://lake/ice"),
    ),
    "iceberg in glue": (
        ICEBERG,
        Format.ICEBERG,
        {
            "catalog-impl": "org.apache.iceberg.aws.glue.GlueCatalog",
            "client.region": "eu-west-1",
            "glue.id": "123456789012",
            "warehouse": "s3://lake/ice",
        },
        {},
        Facet("iceberg", "glue", "arn:aws:glue:eu-west-1:123456789012", "s3://lake/ice"),
    ),
    "iceberg in nessie": (
        ICEBERG,
        Format.ICEBERG,
        {"type": "nessie", "uri": "http://nessie:19120/api/v2", "ref": "main", "warehouse": "s3://lake/ice"},
        {},
        Facet("iceberg", "nessie", "http://nessie:19120", "s3://lake/ice"),
    ),
    "a view of iceberg's service, which has no format of its own": (
        ICEBERG,
        Format.VIEW,
        {"type": "rest", "uri": "https://catalog.example/api"},
        {},
        Facet("iceberg", "rest", "https://catalog.example/api"),
    ),
    "delta in memory": (DELTA, Format.DELTA, {}, IN_MEMORY, Facet("delta", "spark", None, "s3://lake/spark")),
    "delta in a metastore": (
        DELTA,
        Format.DELTA,
        {},
        METASTORE,
        Facet("delta", "hive", "hive://meta:9083", "s3://lake/hive"),
    ),
    "hive": (SPARK, Format.ORC, {}, METASTORE, Facet("hive", "hive", "hive://meta:9083", "s3://lake/hive")),
    "hive in the driver": (
        SPARK,
        Format.ORC,
        {},
        DERBY,
        Facet("hive", "hive", "derby://driver-1/data/metastore_db", "file://driver-1/data/hive"),
    ),
    "in memory": (SPARK, Format.PARQUET, {}, IN_MEMORY, Facet("spark", "spark", None, "s3://lake/spark")),
    "paimon in files": (
        PAIMON,
        Format.PAIMON,
        {"warehouse": "s3://lake/pai"},
        {},
        Facet("paimon", "paimon", None, "s3://lake/pai"),
    ),
    "paimon in a metastore": (
        PAIMON,
        Format.PAIMON,
        {"metastore": "hive", "uri": "thrift://meta:9083", "warehouse": "s3://lake/pai"},
        {},
        Facet("paimon", "hive", "hive://meta:9083", "s3://lake/pai"),
    ),
}


@pytest.mark.parametrize("name", CATALOGS)
def test_the_catalog_of_a_table(name: str) -> None:
    class_name, fmt, options, conf, expected = CATALOGS[name]
    found = installed().catalog_of("cat", class_name, options, Environment.from_conf(conf, host="driver-1"))
    assert not isinstance(found, Unknown), found.reason
    ref = DatasetRef(dataset=None, table=TableName(catalog="cat", database="sales", table="orders"), format=fmt)

    facet = catalog_facet(ref, NamedCatalog(name="cat", id=found.id, warehouse=found.warehouse))

    assert facet is not None
    assert (facet.name, facet.source) == ("cat", "spark")
    assert Facet(facet.framework, facet.type, facet.metadataUri, facet.warehouseUri) == expected
