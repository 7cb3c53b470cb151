"""What DataHub is told of each event: goldens to read, the facts that matter by hand, and the SDK's own word for it."""

from __future__ import annotations

import json
import warnings
from typing import Any

import pytest
from datahub.emitter.mce_builder import (
    make_data_flow_urn,
    make_data_job_urn,
    make_dataset_urn_with_platform_instance,
    make_schema_field_urn,
)
from datahub.emitter.mcp import MetadataChangeProposalWrapper
from datahub.emitter.mcp_builder import DatabaseKey, NamespaceKey, SchemaKey
from datahub.ingestion.extractor.schema_util import avro_schema_to_mce_fields
from datahub.ingestion.source.aws.s3_util import strip_s3_prefix
from datahub.utilities.hive_schema_to_avro import get_schema_fields_for_hive_column

from headwater.config import read_config
from headwater.errors import ConfigurationError
from headwater.events import Event
from headwater.events.base import StringMap
from headwater.events.catalog import CreateTable, CreateView
from headwater.events.jobs import DatasetRef
from headwater.events.kinds import KINDS
from headwater.events.names import DatasetId, TableName
from headwater.events.scalars import Format
from headwater.events.tables import Column, Table, View, ViewSource
from headwater.forwarders.datahub.fields import PathStyle, schema_fields
from headwater.forwarders.datahub.forwarder import PROPOSALS_OF, datahub_proposals
from headwater.forwarders.datahub.names import DataHubNamer
from headwater.forwarders.datahub.options import DataHubConfig, DataHubNames
from tests.kit.forwarders.datahub_cases import (
    CASES,
    FOLDER,
    HIVE,
    ID,
    LAKE,
    SESSION,
    content,
    in_lake,
    readable,
    stamped,
)

ORDERS = "urn:li:dataset:(urn:li:dataPlatform:iceberg,sales.orders,PROD)"
DAILY = "urn:li:dataset:(urn:li:dataPlatform:iceberg,sales.daily,PROD)"
RATES = "urn:li:dataset:(urn:li:dataPlatform:postgres,shop.public.rates,PROD)"
FLOW = "urn:li:dataFlow:(spark,orders_etl,prod)"
JOB = f"urn:li:dataJob:({FLOW},orders_etl.lake.sales.daily)"
RUN = "urn:li:dataProcessInstance:01890a5d-ac96-7b4b-8cce-b302099a8058"
NAMES = DataHubNames()


def proposed(case: str | Event, names: DataHubNames = NAMES) -> list[dict[str, Any]]:
    event = CASES[case] if isinstance(case, str) else case
    return [readable(each) for each in datahub_proposals(event, names)]


def aspects(case: str | Event, aspect: str, entity: str | None = None) -> list[Any]:
    """All that is proposed of an aspect."""
    return [each[aspect] for each in proposed(case) if aspect in each and entity in {None, each["entity"]}]


def change_of(case: str, aspect: str) -> set[str]:
    return {each["change"] for each in proposed(case) if aspect in each}


@pytest.mark.parametrize("case", CASES)
def test_what_is_proposed_is_what_the_reviewed_file_says(case: str) -> None:
    reviewed = json.loads((FOLDER / f"{case}.json").read_text(encoding="utf-8"))
    assert content(CASES[case]) == reviewed


def test_each_reviewed_file_has_a_case_and_each_kind_has_one() -> None:
    assert {path.stem for path in FOLDER.glob("*.json")} == set(CASES)
    assert PROPOSALS_OF.keys() <= {event.kind for event in CASES.values()}
    assert PROPOSALS_OF.keys() <= KINDS.keys()


@pytest.mark.parametrize("case", CASES)
def test_proposals_are_valid_by_the_schemas_of_the_sdk(case: str) -> None:
    for proposal in datahub_proposals(CASES[case], NAMES):
        assert proposal.validate()
        assert not isinstance(proposal, MetadataChangeProposalWrapper) or proposal.make_mcp().validate()


def test_urns_are_those_of_the_sdk_and_as_they_are_documented() -> None:
    names = {each["entity"] for each in proposed("lineage")}
    assert names == {JOB, ORDERS, RATES, DAILY}
    assert make_dataset_urn_with_platform_instance("iceberg", "sales.orders", None) == ORDERS
    assert make_data_flow_urn("spark", "orders_etl") == FLOW
    assert make_data_job_urn("spark", "orders_etl", "orders_etl.lake.sales.daily") == JOB


def test_lineage_is_added_edge_by_edge_to_what_the_job_has() -> None:
    """Each operation adds one edge: none replaces a list, in which others may have edges."""
    assert change_of("lineage", "dataJobInputOutput") == {"PATCH"}
    (operations,) = aspects("lineage", "dataJobInputOutput", JOB)
    lists = {operation["path"].split("/")[1] for operation in operations}
    assert lists == {"inputDatasetEdges", "outputDatasetEdges", "fineGrainedLineages"}
    assert all(operation["op"] == "add" and operation["path"].count("/") >= 2 for operation in operations)
    edges = {operation["path"]: operation["value"] for operation in operations if "Edges" in operation["path"]}
    assert edges.keys() == {
        f"/inputDatasetEdges/{ORDERS}",
        f"/inputDatasetEdges/{RATES}",
        f"/outputDatasetEdges/{DAILY}",
    }
    assert edges[f"/inputDatasetEdges/{ORDERS}"]["destinationUrn"] == ORDERS
    seen = CASES["lineage"].time.timestamp() * 1000
    assert edges[f"/inputDatasetEdges/{ORDERS}"]["lastModified"]["time"] == seen


def test_no_edge_from_table_to_table_stands_beside_the_jobs_edges() -> None:
    for case in ("lineage", "commit", "micro_batch_without_exact_snapshot"):
        assert not aspects(case, "upstreamLineage")
        assert all("inputEdges" not in each for each in aspects(case, "dataProcessInstanceInput"))


def test_columns_come_with_their_transformation() -> None:
    (operations,) = aspects("lineage", "dataJobInputOutput", JOB)
    columns = {o["path"].split("/", 2)[2] for o in operations if o["path"].startswith("/fineGrainedLineages/")}
    v2 = "[version=2.0].[type=struct]"
    day = f"urn:li:schemaField:({DAILY},{v2}.[type=int].day)"
    total = f"urn:li:schemaField:({DAILY},{v2}.[type=fixed].total)"
    amount = f"urn:li:schemaField:({ORDERS},{v2}.[type=fixed].amount)"
    assert columns == {
        f"IDENTITY/{day}/NONE/urn:li:schemaField:({ORDERS},{v2}.[type=int].day)",
        f"AGGREGATION: sum(amount ~1 rate)/{total}/NONE/{amount}",
        f"AGGREGATION/{total}/NONE/urn:li:schemaField:({RATES},rate)",
    }
    assert make_schema_field_urn(DAILY, f"{v2}.[type=int].day") == day


def test_a_commit_tells_what_it_read_and_made() -> None:
    (properties,) = aspects("commit", "dataProcessInstanceProperties")
    assert properties["customProperties"] == {
        "barrier": "1858460870375463936",
        "statement": "214",
        "read sales.orders": "snapshot 7",
        "read sales.customers": "changes after 5 up to snapshot 9",
        "made sales.daily": "snapshot 12 on 11",
    }
    (relationships,) = aspects("commit", "dataProcessInstanceRelationships")
    assert relationships == {"parentTemplate": JOB, "parentInstance": RUN, "upstreamInstances": []}
    (operation,) = aspects("commit", "operation", DAILY)
    assert operation["numAffectedRows"] == 31337
    assert operation["customOperationType"] == "OVERWRITE"
    assert operation["actor"] == "urn:li:corpuser:anna"
    assert operation["customProperties"]["made"] == "snapshot 12 on 11"
    assert operation["customProperties"]["read sales.orders"] == "snapshot 7"


def test_two_snapshots_of_a_commit_are_two_operations_and_both_are_told() -> None:
    operations = aspects("commit_with_compaction", "operation", DAILY)
    assert [each["customProperties"]["made"] for each in operations] == ["snapshot 12 on 11", "snapshot 13"]
    assert len({each["messageId"] for each in operations}) == 2
    (properties,) = aspects("commit_with_compaction", "dataProcessInstanceProperties")
    assert properties["customProperties"]["made sales.daily"] == "snapshot 12 on 11; snapshot 13"


def test_a_candidate_is_never_told_as_the_snapshot() -> None:
    (operation,) = aspects("micro_batch_without_exact_snapshot", "operation", DAILY)
    assert operation["customProperties"]["made"] == "one of the snapshots 11, 12"


def test_the_micro_batches_of_a_run_share_an_instance_and_other_commits_do_not() -> None:
    def instance(event: Event) -> str:
        return str(next(each["entity"] for each in proposed(event) if "dataProcessInstanceProperties" in each))

    stream, commit = CASES["micro_batch_without_exact_snapshot"], CASES["commit"]
    later = {"batch_id": 42, "barrier": (1_772_366_400_000 << 20) + 42}
    assert instance(stream) == instance(stream.model_copy(update=later))
    assert instance(commit) != instance(commit.model_copy(update={"barrier": 1_858_460_870_375_463_937}))


@pytest.mark.parametrize(
    ("case", "result"),
    [
        ("run_finished", {"type": "SUCCESS", "nativeResultType": "FINISHED"}),
        ("run_failed", {"type": "FAILURE", "nativeResultType": "FAILED"}),
        ("run_found_dead", {"type": "FAILURE", "nativeResultType": "KILLED (inferred)"}),
        ("run_ended_unseen", None),
        ("statement_failed", {"type": "FAILURE", "nativeResultType": "DIVIDE_BY_ZERO"}),
    ],
)
def test_a_run_is_complete_with_the_result_that_is_known(case: str, result: dict[str, str] | None) -> None:
    (event,) = aspects(case, "dataProcessInstanceRunEvent")
    assert (event["status"], event.get("result")) == ("COMPLETE", result)


def test_a_run_starts_once_as_an_instance_of_its_application() -> None:
    (event,) = aspects("application_started", "dataProcessInstanceRunEvent", RUN)
    assert event["status"] == "STARTED"
    (relationships,) = aspects("application_started", "dataProcessInstanceRelationships", RUN)
    assert relationships["parentTemplate"] == FLOW


def test_ddl_that_may_not_have_taken_effect_and_gaps_are_not_told() -> None:
    assert proposed("table_that_may_exist") == []
    assert proposed("gap") == []


def test_a_dropped_table_is_soft_deleted_and_one_made_again_has_nothing_of_the_old() -> None:
    assert aspects("table_dropped", "status", ORDERS) == [{"removed": True}]
    assert aspects("table_made_again", "status", ORDERS) == [{"removed": False}]
    assert change_of("table_made_again", "schemaMetadata") == {"UPSERT"}
    assert change_of("table_made_again", "datasetProperties") == {"UPSERT"}
    (schema,) = aspects("table_made_again", "schemaMetadata")
    assert [field["fieldPath"] for field in schema["fields"]] == ["[version=2.0].[type=struct].[type=long].id"]


def test_a_renamed_table_is_a_new_entity_and_the_old_one_is_soft_deleted() -> None:
    new = "urn:li:dataset:(urn:li:dataPlatform:iceberg,sales.bought,PROD)"
    assert aspects("table_renamed", "status", ORDERS) == [{"removed": True}]
    assert aspects("table_renamed", "status", new) == [{"removed": False}]
    schema, patch = aspects("table_renamed", "schemaMetadata", new)[0], aspects("table_renamed", "datasetProperties")[1]
    assert len(schema["fields"]) == 5
    assert patch == [{"op": "add", "path": "/customProperties/headwater.renamed_from", "value": "sales.orders"}]


def test_a_change_on_a_branch_leaves_the_schema_of_the_table() -> None:
    assert [set(each) - {"entity", "change", "observed"} for each in proposed("column_added_on_a_branch")] == [
        {"operation"}
    ]


def test_altered_properties_are_patched_one_by_one() -> None:
    (operations,) = aspects("columns_and_properties_altered", "datasetProperties")
    paths = {(operation["op"], operation["path"]): operation["value"] for operation in operations}
    assert paths["add", "/customProperties/tier"] == "gold"
    assert ("remove", "/customProperties/write.format.default") in paths
    assert paths["add", "/description"] == "what was ordered"


def test_a_schema_tells_types_nullability_comments_keys_and_partitions() -> None:
    (schema,) = aspects("table_created", "schemaMetadata")
    key, amount, day, lines, sku = schema["fields"]
    v2 = "[version=2.0].[type=struct]"
    assert schema["primaryKeys"] == [key["fieldPath"]] == [f"{v2}.[type=long].id"]
    assert (key["nullable"], key["description"], key["isPartOfKey"]) == (False, "the shop's own number", True)
    assert (key["isPartitioningKey"], amount["isPartitioningKey"], day["isPartitioningKey"]) == (True, False, True)
    assert amount["nativeDataType"] == "decimal(10,2)"
    assert (lines["nativeDataType"], sku["nullable"]) == ("array<struct<sku:string>>", False)
    assert sku["fieldPath"] == f"{lines['fieldPath']}.[type=string].sku"
    assert sku["description"] == "as on the label"


def test_a_view_is_told_with_its_sql_and_where_its_columns_come_from() -> None:
    view = "urn:li:dataset:(urn:li:dataPlatform:iceberg,sales.totals,PROD)"
    (properties,) = aspects("view_created", "viewProperties", view)
    assert properties["viewLogic"] == "SELECT sum(amount) AS total FROM lake.sales.orders WHERE day = ?"
    assert aspects("view_created", "subTypes", view) == [{"typeNames": ["View"]}]
    (operations,) = aspects("view_created", "upstreamLineage", view)
    total = f"urn:li:schemaField:({view},[version=2.0].[type=struct].[type=fixed].total)"
    assert [operation["path"] for operation in operations] == [
        f"/upstreams/{ORDERS}",
        f"/fineGrainedLineages/AGGREGATION/{total}/NONE/urn:li:schemaField:({ORDERS},amount)",
    ]
    (again,) = aspects("view_defined_again", "upstreamLineage", view)
    assert [operation["op"] for operation in again] == ["remove", "remove"]


def test_a_database_keeps_its_own_description_when_a_table_is_made_in_it() -> None:
    assert change_of("database_created", "containerProperties") == {"UPSERT"}
    assert change_of("table_created", "containerProperties") == {"CREATE"}


def test_a_job_does_not_overwrite_a_schema_that_the_catalog_told() -> None:
    assert change_of("lineage", "schemaMetadata") == {"CREATE"}


def test_everything_bears_the_events_time_and_the_same_event_makes_the_same_proposals() -> None:
    for event in CASES.values():
        first, second = proposed(event), proposed(event)
        assert first == second
        assert {each["observed"] for each in first} <= {round(event.time.timestamp() * 1000)}


def ref(namespace: str, name: str, format_: Format, table: TableName | None = None) -> DatasetRef:
    return DatasetRef(dataset=DatasetId(namespace=namespace, name=name), table=table, format=format_)


def session(table: str) -> TableName:
    return TableName(catalog="spark_catalog", database="sales", table=table)


@pytest.mark.parametrize(
    ("dataset", "urn"),
    [
        (ref("s3://lake", "w/sales/t", Format.ICEBERG, TableName(catalog="lake", database="sales.eu", table="`a.b`")),
         "iceberg,sales.eu.a.b"),
        (ref("s3://lake", "w/sales/t", Format.ICEBERG), "s3,lake/w/sales/t"),
        (ref("s3://lake", "w/sales.db/t", Format.PAIMON, TableName(catalog="p", database="sales", table="t")),
         "paimon,sales.t"),
        (ref("s3://lake", "hudi/t", Format.HUDI, session("t")), "hudi,sales.t"),
        (ref("s3://lake", "delta/t", Format.DELTA, session("t")), "delta-lake,lake/delta/t"),
        (ref("s3://lake", "delta/t", Format.DELTA), "delta-lake,lake/delta/t"),
        (ref("file://host", "/data/delta/t", Format.DELTA), "delta-lake,data/delta/t"),
        (ref("hdfs://nn:8020", "/warehouse/sales.db/t", Format.PARQUET, session("t")), "hive,sales.t"),
        (ref("hive://metastore:9083", "sales.t", Format.UNKNOWN), "hive,sales.t"),
        (ref("s3://lake", "raw/day", Format.PARQUET), "s3,lake/raw/day"),
        (ref("gs://lake", "raw", Format.CSV), "gcs,lake/raw"),
        (ref("abfss://data@acme.dfs.core.windows.net", "/raw", Format.CSV), "abs,data/raw"),
        (ref("hdfs://nn:8020", "/raw", Format.CSV), "hdfs,nn:8020/raw"),
        (ref("file://host", "/data/raw", Format.CSV), "file,host/data/raw"),
        (ref("kafka://broker:9092", "clicks", Format.KAFKA), "kafka,clicks"),
        (ref("postgres://db:5432", "shop.public.rates", Format.JDBC), "postgres,shop.public.rates"),
        (ref("mysql://db:3306", "shop.rates", Format.JDBC), "mysql,shop.rates"),
    ],
)  # fmt: skip
def test_datasets_are_called_as_datahubs_own_sources_call_them(dataset: DatasetRef, urn: str) -> None:
    """By hand: the names that the sources of DataHub document for what they read."""
    found = DataHubNamer(NAMES).of_ref(dataset)
    assert found is not None
    assert found.urn == f"urn:li:dataset:(urn:li:dataPlatform:{urn},PROD)"


def test_the_name_of_a_path_is_the_sdks() -> None:
    found = DataHubNamer(NAMES).of_ref(ref("s3://lake", "raw/day", Format.CSV))
    assert found is not None
    assert found.name == strip_s3_prefix("s3a://lake/raw/day")


def test_what_has_no_name_that_is_known_is_left_out() -> None:
    namer = DataHubNamer(NAMES)
    assert namer.of_ref(DatasetRef(dataset=None, opaque="an RDD")) is None
    assert namer.of_ref(DatasetRef(dataset=None, table=session("t"), format=Format.DELTA)) is None
    assert namer.of_ref(DatasetRef(dataset=None, table=session("t"), format=Format.UNKNOWN)) is None
    source = ViewSource(dataset=DatasetId(namespace="s3://lake", name="delta/t"), table=session("t"))
    assert namer.of_source(source, SESSION) is None
    assert namer.of_source(source, HIVE) is not None


def test_platform_instance_environment_and_case_are_configured() -> None:
    names = DataHubNames(env="DEV", platform={"lake": "glue"}, instance={"glue": "emea"}, lowercase=True)
    event = CreateTable(**{**in_lake("Orders"), "identifier": TableName(catalog="lake", database="S", table="Orders")},
                        table=Table(columns=(ID,)))  # fmt: skip
    dataset = make_dataset_urn_with_platform_instance("glue", "s.orders", "emea", "DEV")
    assert dataset == "urn:li:dataset:(urn:li:dataPlatform:glue,emea.s.orders,DEV)"
    found = [each for each in proposed(stamped(event), names) if each["entity"] == dataset]
    instance = "urn:li:dataPlatformInstance:(urn:li:dataPlatform:glue,emea)"
    key = DatabaseKey(platform="glue", instance="emea", env="DEV", backcompat_env_as_instance=True, database="s")
    path = [{"id": urn, "urn": urn} for urn in (instance, key.as_urn())]
    assert {"platform": "urn:li:dataPlatform:glue", "instance": instance} in [
        each.get("dataPlatformInstance") for each in found
    ]
    assert {"container": key.as_urn()} in [each.get("container") for each in found]
    assert {"path": path} in [each.get("browsePathsV2") for each in found]


def test_containers_have_the_keys_of_datahubs_own_sources() -> None:
    namer = DataHubNamer(NAMES)
    table = namer.of_ref(ref("s3://x", "y", Format.ICEBERG, TableName(catalog="lake", database="sales", table="t")))
    rates = namer.of_ref(ref("postgres://db:5432", "shop.public.rates", Format.JDBC))
    assert table is not None
    assert rates is not None
    assert [key.as_urn() for key in table.containers] == [
        NamespaceKey(platform="iceberg", env="PROD", namespace="sales").as_urn()
    ]
    shop = {"platform": "postgres", "env": "PROD", "backcompat_env_as_instance": True, "database": "shop"}
    assert [key.as_urn() for key in rates.containers] == [
        DatabaseKey(**shop).as_urn(),
        SchemaKey(**shop, schema="public").as_urn(),
    ]


def array_of(element: str) -> str:
    return f'{{"type":"array","elementType":{element},"containsNull":true}}'


def map_to(value: str) -> str:
    return f'{{"type":"map","keyType":"string","valueType":{value},"valueContainsNull":true}}'


def struct_of(**fields: str) -> str:
    inner = (f'{{"name":"{name}","type":{type_},"nullable":true,"metadata":{{}}}}' for name, type_ in fields.items())
    return f'{{"type":"struct","fields":[{",".join(inner)}]}}'


INNER = struct_of(z='"string"', d='"decimal(10,2)"')
NESTED = [
    ("a", "array<string>", array_of('"string"')),
    ("aa", "array<array<int>>", array_of(array_of('"integer"'))),
    ("m", "map<string,int>", map_to('"integer"')),
    ("s", "struct<x:int,y:struct<z:string,d:decimal(10,2)>>", struct_of(x='"integer"', y=INNER)),
    ("ms", "map<string,struct<q:bigint>>", map_to(struct_of(q='"long"'))),
]
FLAT = [
    *(("id", "bigint", '"long"'), ("n", "int", '"integer"'), ("x", "double", '"double"'), ("f", "float", '"float"')),
    *(("t", "string", '"string"'), ("b", "binary", '"binary"'), ("o", "boolean", '"boolean"')),
    *(("d", "date", '"date"'), ("ts", "timestamp", '"timestamp"'), ("p", "decimal(10,2)", '"decimal(10,2)"')),
]


@pytest.mark.parametrize(("name", "hive", "spark"), [*FLAT, *NESTED], ids=lambda text: text[:12])
def test_field_paths_are_those_of_the_sdk_for_hive_and_delta(name: str, hive: str, spark: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of Avro: the SDK's own timestamp is none of its logical types
        expected = [field.fieldPath for field in get_schema_fields_for_hive_column(name, hive, default_nullable=True)]
    column = Column(name=name, type=spark)
    assert [field.fieldPath for field in schema_fields((column,), PathStyle.DELTA).fields] == expected
    plain = [name] if (name, hive, spark) in FLAT else expected
    assert [field.fieldPath for field in schema_fields((column,), PathStyle.SQL).fields] == plain


def record(name: str, *fields: dict[str, Any]) -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": list(fields)}


def test_field_paths_are_those_of_the_sdk_for_iceberg() -> None:
    """The Avro schema is the one that DataHub's source of Iceberg builds. It has no map: its path is random there."""
    decimal = {"type": "fixed", "name": "__fixed_1", "size": 1, "logicalType": "decimal", "precision": 10, "scale": 2}
    avro = record(
        "__struct_1",
        {"name": "id", "type": "long"},
        {"name": "b", "type": "bytes"},
        {"name": "d", "type": {"type": "int", "logicalType": "date"}},
        {"name": "ts", "type": {"type": "long", "logicalType": "timestamp-micros"}},
        {"name": "p", "type": decimal},
        {"name": "a", "type": {"type": "array", "items": record("__struct_2", {"name": "q", "type": "int"})}},
        {"name": "s", "type": record("__struct_3", {"name": "x", "type": "int"})},
    )
    columns = (
        *(Column(name="id", type='"long"'), Column(name="b", type='"binary"'), Column(name="d", type='"date"')),
        *(Column(name="ts", type='"timestamp"'), Column(name="p", type='"decimal(10,2)"')),
        *(Column(name="a", type=array_of(struct_of(q='"integer"'))), Column(name="s", type=struct_of(x='"integer"'))),
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of Avro: the SDK's own decimal has no room for its digits
        expected = [each.fieldPath for each in avro_schema_to_mce_fields(json.dumps(avro))]
    found = schema_fields(columns, PathStyle.ICEBERG)
    assert [each.fieldPath for each in found.fields] == expected
    assert found.path(("a", "element", "q")) == expected[-3]
    assert found.path(("a", "element")) == found.path(("a",))


def test_a_type_that_is_none_is_told_as_it_stands() -> None:
    (field,) = schema_fields((Column(name="x", type="what?"),), PathStyle.SQL).fields
    assert (field.fieldPath, field.nativeDataType) == ("x", "what?")


def test_a_view_in_the_sessions_catalog_is_hives() -> None:
    event = CreateView(
        context=SESSION, identifier=session("v"), format=Format.VIEW, view=View(properties=StringMap({"a": "b"}))
    )
    entities = {each["entity"] for each in proposed(stamped(event))}
    assert "urn:li:dataset:(urn:li:dataPlatform:hive,sales.v,PROD)" in entities
    other = event.model_copy(update={"identifier": TableName(catalog="x", database="d", table="v")})
    assert proposed(other.model_copy(update={"context": LAKE.model_copy(update={"factory": None})})) == []


def faults(**options: str) -> str:
    with pytest.raises(ConfigurationError) as caught:
        read_config(DataHubConfig, {key.replace("_", "."): value for key, value in options.items()}, shown="datahub.")
    return str(caught.value)


def test_faulty_options_are_named() -> None:
    assert "one of url, bootstrap.servers and directory" in faults(env="PROD")
    assert "schema.registry.url" in faults(bootstrap_servers="broker:9092")
    assert "did you mean datahub.token?" in faults(url="http://gms", tokn="x")
    assert "datahub.env: write one of" in faults(url="http://gms", env="production")
    assert "comma or a bracket" in faults(url="http://gms", platform_lake="a,b")
