"""What DataHub, Atlas and OpenLineage call a dataset, by the table of truth."""

from __future__ import annotations

import pytest

from headwater.events.identity import IdentityError
from headwater.events.identity.external import atlas, datahub, openlineage
from headwater.events.names import DatasetId, TableName
from tests.unit.identity.rows import Row, check, names, options, rows

ROWS = rows("external")


@pytest.mark.parametrize("row", ROWS, ids=names(ROWS))
def test_name(row: Row) -> None:
    system, namespace, name = row.told
    system, _, told = system.partition(" ")
    dataset = DatasetId(namespace=namespace, name=name)
    check(row, lambda: NAMERS[system](dataset, options(told)))


def in_datahub(dataset: DatasetId, told: dict[str, str]) -> str:
    return datahub.dataset_urn(
        dataset,
        platform_instance=told.get("platform_instance"),
        env=told.get("env", "PROD"),
        lowercase="lowercase" in told,
        include_scheme="include_scheme" not in told,
    )


def in_atlas(dataset: DatasetId, told: dict[str, str]) -> str:
    found = atlas.atlas_name(dataset, told.get("namespace", "primary"), s3_scheme=told.get("s3_scheme", "s3"))
    return f"{found.type_name} {found.qualified_name}"


def in_openlineage(dataset: DatasetId, told: dict[str, str]) -> str:
    found = openlineage.openlineage_name(dataset, local_host=told.get("local_host"))
    return f"{found.namespace} | {found.name}"


NAMERS = {"datahub": in_datahub, "atlas": in_atlas, "openlineage": in_openlineage}


def test_other_urns_of_datahub() -> None:
    flow = datahub.data_flow_urn("my, app", "east")
    assert flow == "urn:li:dataFlow:(spark,my%2C app,east)"
    assert datahub.data_job_urn(flow, "step(1)") == f"urn:li:dataJob:({flow},step%281%29)"
    assert datahub.process_instance_urn("run-1") == "urn:li:dataProcessInstance:run-1"
    table = datahub.table_urn("iceberg", "db.t")
    assert table == "urn:li:dataset:(urn:li:dataPlatform:iceberg,db.t,PROD)"
    assert datahub.schema_field_urn(table, "a,b") == f"urn:li:schemaField:({table},a%2Cb)"
    instance = datahub.platform_instance_urn("kafka", "east")
    assert instance == "urn:li:dataPlatformInstance:(urn:li:dataPlatform:kafka,east)"


def test_a_urn_has_no_empty_part() -> None:
    with pytest.raises(IdentityError):
        datahub.table_urn("", "db.t")
    with pytest.raises(IdentityError):
        datahub.data_flow_urn("")


def test_other_names_of_atlas() -> None:
    assert atlas.hive_database("Db", "cl1").qualified_name == "db@cl1"
    assert atlas.hive_table("Db", "T", temporary_in="S1").qualified_name == "db.t_temp-S1@primary"
    assert atlas.hive_column("Db", "T", "C").qualified_name == "db.t.c@primary"
    assert atlas.hive_storage("db", "t").qualified_name == "db.t@primary_storage"
    assert atlas.spark_application("app-1").qualified_name == "app-1"
    process = atlas.spark_process("app-1", 7)
    assert process.qualified_name == "app-1-execution-7"
    lineage = atlas.spark_column_lineage(process, atlas.hive_column("db", "t", "c"))
    assert lineage.qualified_name == "app-1-execution-7:db.t.c@primary"
    paimon = TableName(catalog="p", database="db", table="t")
    assert atlas.catalog_table("paimon_table", paimon, "cl1") == atlas.AtlasName("paimon_table", "p.db.t@cl1")


def test_symlinks_are_told_once_in_order_and_never_the_dataset_itself() -> None:
    own = DatasetId(namespace="s3://b", name="wh/db/t")
    hive = DatasetId(namespace="hive://m:9083", name="db.t")
    glue = DatasetId(namespace="arn:aws:glue:r:1", name="table/db/t")
    found = openlineage.openlineage_name(own, [hive, None, glue, own, hive])
    assert (found.namespace, found.name) == ("s3://b", "wh/db/t")
    assert found.symlinks == [
        {"namespace": "arn:aws:glue:r:1", "name": "table/db/t", "type": "TABLE"},
        {"namespace": "hive://m:9083", "name": "db.t", "type": "TABLE"},
    ]


def test_a_snapshot_becomes_a_text_only_here() -> None:
    assert openlineage.dataset_version(8_904_432_120_533_478_187) == "8904432120533478187"
    assert openlineage.dataset_version(None) is None
    assert datahub.snapshot_property(7) == "7"
