"""What Atlas is told of each event: goldens to read, and the facts that matter by hand."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from headwater.config import read_config
from headwater.errors import ConfigurationError
from headwater.events import Event
from headwater.events.catalog import AlterTable, CatalogContext, CreateTable
from headwater.events.changes import RenameTable
from headwater.events.jobs import DatasetRef
from headwater.events.kinds import KINDS
from headwater.events.names import DatasetId, TableName
from headwater.events.scalars import Format
from headwater.events.tables import Table, ViewSource
from headwater.forwarders.atlas.entities import EVENT_TIME, AtlasRef, Change, Put, Remove, WriteRule
from headwater.forwarders.atlas.forwarder import CHANGES_OF, atlas_changes
from headwater.forwarders.atlas.messages import notifications
from headwater.forwarders.atlas.names import AtlasNamer
from headwater.forwarders.atlas.options import AtlasConfig, AtlasNames
from headwater.forwarders.atlas.resolving import AtlasPlan, FoundEntity, Related
from headwater.forwarders.atlas.types import DEFINITIONS, added_attributes, definitions, missing_definitions
from tests.kit.atlas.cases import CASES, FOLDER, content
from tests.kit.forwarders.datahub_cases import LAKE, in_lake, stamped

NAMES = AtlasNames()
ORDERS = AtlasRef("headwater_dataset", "lake.sales.orders@primary")
BOUGHT = AtlasRef("headwater_dataset", "lake.sales.bought@primary")
DAILY = AtlasRef("headwater_dataset", "lake.sales.daily@primary")
JOB = AtlasRef("headwater_job", "orders_etl.lake.sales.daily@primary")


def puts(case: str | Event) -> dict[AtlasRef, Put]:
    event = CASES[case] if isinstance(case, str) else case
    return {each.ref: each for each in atlas_changes(event, NAMES) if isinstance(each, Put)}


def found(ref: AtlasRef, guid: str, relations: Any = None, **attributes: Any) -> dict[AtlasRef, FoundEntity]:
    told = {"qualifiedName": ref.qualified_name, **attributes}
    return {ref: FoundEntity(ref, guid, told, relations or {})}


def planned(case: str | Event, *there: dict[AtlasRef, FoundEntity]) -> AtlasPlan:
    """What is written where Atlas has these entities."""
    event = CASES[case] if isinstance(case, str) else case
    plan = AtlasPlan()
    plan.add(atlas_changes(event, NAMES), {ref: each for some in there for ref, each in some.items()})
    return plan


def entity_of(plan: AtlasPlan, ref: AtlasRef) -> dict[str, Any] | None:
    """The entity that is written under a name."""
    named = [each for each in plan.entities if each["attributes"]["qualifiedName"] == ref.qualified_name]
    return next((each for each in named if each["typeName"] == ref.type_name), None)


@pytest.mark.parametrize("case", CASES)
def test_what_is_sent_is_what_the_reviewed_file_says(case: str) -> None:
    reviewed = json.loads((FOLDER / f"{case}.json").read_text(encoding="utf-8"))
    assert content(CASES[case]) == reviewed


def test_each_reviewed_file_has_a_case_and_each_kind_has_one() -> None:
    assert {path.stem for path in FOLDER.glob("*.json")} == set(CASES)
    assert CHANGES_OF.keys() <= {event.kind for event in CASES.values()}
    assert CHANGES_OF.keys() <= set(KINDS)


@pytest.mark.parametrize(
    ("ref", "expected"),
    [
        (
            {"table": TableName(catalog="lake", database="s", table="T"), "format": Format.PAIMON},
            ("headwater_dataset", "lake.s.T"),
        ),
        (
            {"table": TableName(catalog="spark_catalog", database="S", table="T"), "format": Format.ORC},
            ("hive_table", "s.t"),
        ),
        (
            {"table": TableName(catalog="spark_catalog", database="s", table="t"), "format": Format.DELTA},
            ("headwater_dataset", "spark_catalog.s.t"),
        ),
        ({"table": TableName(catalog="spark_catalog", database="s", table="t")}, None),
        ({"dataset": DatasetId(namespace="kafka://b:9092", name="clicks")}, ("kafka_topic", "clicks")),
        ({"dataset": DatasetId(namespace="hdfs://nn:8020", name="/a/b")}, ("hdfs_path", "hdfs://nn:8020/a/b")),
        ({"dataset": DatasetId(namespace="s3://lake", name="a/b")}, ("headwater_dataset", "s3://lake/a/b")),
        ({"dataset": DatasetId(namespace="inmemory://", name="x")}, None),
        ({"dataset": DatasetId(namespace="hive://ms:9083", name="s.t")}, ("hive_table", "s.t")),
        (
            {"dataset": DatasetId(namespace="postgres://db:5432", name="shop.public.rates"), "format": Format.JDBC},
            ("rdbms_table", "postgres://db:5432/shop.public.rates"),
        ),
    ],
)
def test_names_are_those_of_atlas_own_hooks(ref: dict[str, Any], expected: tuple[str, str] | None) -> None:
    dataset = AtlasNamer(NAMES).of_ref(DatasetRef(**{"dataset": None, **ref}))
    told = None if dataset is None else (dataset.type_name, dataset.base)
    assert told == expected
    assert dataset is None or dataset.ref.qualified_name == f"{dataset.base}@primary"


def test_what_is_opaque_has_no_name_and_what_a_view_reads_has_no_format() -> None:
    namer = AtlasNamer(NAMES)
    assert namer.of_ref(DatasetRef(dataset=None, opaque="an RDD")) is None
    source = ViewSource(dataset=None, table=TableName(catalog="lake", database="s", table="t"))
    context = CatalogContext(name="lake", class_name="SparkCatalog", factory="iceberg")
    dataset = namer.of_source(source, context)
    assert dataset is not None
    assert dataset.format is Format.UNKNOWN, "it may be a view itself"


def test_the_tables_of_hive_are_never_changed() -> None:
    """Atlas's hook in Hive's metastore tells of them; what is missing is added."""
    assert not puts("table_of_hive")
    rules = {
        put.rule
        for ref, put in puts("lineage_of_hive_hdfs_and_kafka").items()
        if not ref.type_name.startswith("headwater")
    }
    assert rules == {WriteRule.ABSENT}


def test_a_new_table_and_its_columns_refer_to_each_other_by_negative_guids() -> None:
    plan = planned("table_created")
    table = entity_of(plan, ORDERS)
    assert table is not None
    assert int(table["guid"]) < 0
    columns = [each for each in plan.entities if each["typeName"] == "headwater_column"]
    assert [each["attributes"]["name"] for each in columns] == ["id", "amount", "day", "lines"]
    assert {each["relationshipAttributes"]["dataset"]["guid"] for each in columns} == {table["guid"]}
    assert [each["guid"] for each in table["relationshipAttributes"]["columns"]] == [each["guid"] for each in columns]
    assert len({each["guid"] for each in plan.entities}) == len(plan.entities)


def test_an_older_event_never_overwrites_a_newer() -> None:
    at = puts("table_created")[ORDERS].at
    newer = planned("table_created", found(ORDERS, "g", **{EVENT_TIME: at + 1}))
    assert [each["typeName"] for each in newer.entities] == ["headwater_database"], "nor any of its columns"
    for older in (at, at - 1, None):
        table = entity_of(planned("table_created", found(ORDERS, "g", **{EVENT_TIME: older})), ORDERS)
        assert table is not None
        assert table["guid"] == "g"


def test_an_older_lineage_adds_edges_and_no_columns_that_a_newer_ddl_dropped() -> None:
    at = puts("lineage")[JOB].at
    there = found(DAILY, "d", **{EVENT_TIME: at + 1})
    day = AtlasRef("headwater_column", "lake.sales.daily.day@primary")
    plan = planned("lineage", there, found(day, "c"))
    assert entity_of(plan, AtlasRef("headwater_column", "lake.sales.daily.total@primary")) is None
    processes = [each for each in plan.entities if each["typeName"] == "headwater_column_lineage"]
    assert [each["attributes"]["name"] for each in processes] == ["day"], "an edge without its column is none"
    assert entity_of(plan, DAILY) is None


def test_what_a_job_read_before_stays_among_its_inputs() -> None:
    before = Related("headwater_dataset", "customers", "customers")
    newer = {EVENT_TIME: puts("lineage")[JOB].at + 1, "name": "other"}
    plan = planned("lineage", found(JOB, "j", {"inputs": (before,)}, **newer))
    job = entity_of(plan, JOB)
    assert job is not None
    inputs = job["relationshipAttributes"]["inputs"]
    assert inputs[0] == {"typeName": "headwater_dataset", "guid": "customers"}
    assert len(inputs) == 3
    assert EVENT_TIME not in job["attributes"]


def test_a_rename_keeps_the_guids_of_the_table_and_its_columns() -> None:
    column = AtlasRef("headwater_column", "lake.sales.orders.id@primary")
    plan = planned("table_renamed", found(ORDERS, "t"), found(column, "c"))
    table = entity_of(plan, BOUGHT)
    moved = entity_of(plan, AtlasRef("headwater_column", "lake.sales.bought.id@primary"))
    assert table is not None
    assert moved is not None
    assert (table["guid"], moved["guid"]) == ("t", "c")
    assert not plan.deletions


def test_a_rename_that_does_not_tell_its_columns_moves_those_that_are_there() -> None:
    names = in_lake("orders")
    rename = stamped(
        AlterTable(**names, changes=(RenameTable(table=TableName(catalog="lake", database="sales", table="bought")),))
    )
    plan = planned(rename, found(ORDERS, "t", {"columns": (Related("headwater_column", "c", "id"),)}))
    moved = entity_of(plan, AtlasRef("headwater_column", "lake.sales.bought.id@primary"))
    assert moved is not None
    assert moved["guid"] == "c"
    assert moved["relationshipAttributes"]["dataset"]["guid"] == "t"


def test_a_rename_that_comes_again_leaves_a_newer_table_of_the_old_name_alone() -> None:
    newer = {EVENT_TIME: puts("table_renamed")[BOUGHT].at + 1}
    column = AtlasRef("headwater_column", "lake.sales.orders.id@primary")
    plan = planned("table_renamed", found(ORDERS, "t", **newer), found(column, "c"), found(BOUGHT, "b"))
    assert "t" not in {each["guid"] for each in plan.entities} | set(plan.deletions)
    assert "c" not in {each["guid"] for each in plan.entities}


def test_a_rename_to_a_name_that_a_job_reported_already_ends_the_old_one() -> None:
    plan = planned("table_renamed", found(ORDERS, "t"), found(BOUGHT, "b"))
    table = entity_of(plan, BOUGHT)
    assert table is not None
    assert table["guid"] == "b"
    assert plan.deletions == ["t"]


def test_a_renamed_column_keeps_its_guid() -> None:
    amount = AtlasRef("headwater_column", "lake.sales.orders.amount@primary")
    plan = planned("column_renamed", found(ORDERS, "t"), found(amount, "a"))
    price = entity_of(plan, AtlasRef("headwater_column", "lake.sales.orders.price@primary"))
    assert price is not None
    assert price["guid"] == "a"


def test_a_drop_leaves_what_was_made_again_since() -> None:
    (removal,) = atlas_changes(CASES["table_dropped"], NAMES)
    assert isinstance(removal, Remove)
    assert planned("table_dropped", found(ORDERS, "t", **{EVENT_TIME: removal.at + 1})).deletions == []
    assert planned("table_dropped", found(ORDERS, "t", **{EVENT_TIME: removal.at})).deletions == ["t"]
    assert planned("table_dropped").is_empty


def test_a_status_that_a_run_reported_itself_beats_one_that_was_inferred() -> None:
    run = next(iter(puts("run_found_dead")))
    inferred = entity_of(planned("run_found_dead", found(run, "r", status="FINISHED", endTime=1)), run)
    assert inferred is not None
    assert "status" not in inferred["attributes"]
    own = entity_of(planned("run_finished", found(run, "r", status="KILLED", isStatusInferred=True)), run)
    assert own is not None
    assert (own["attributes"]["status"], own["attributes"]["isStatusInferred"]) == ("FINISHED", False)


def test_events_that_concern_each_other_are_told_from_others() -> None:
    plan = planned("table_created")
    assert plan.concerns(atlas_changes(CASES["lineage"], NAMES))
    assert not plan.concerns(atlas_changes(CASES["run_finished"], NAMES))


def test_candidates_are_never_told_as_the_snapshot_and_what_is_opaque_is_counted() -> None:
    execution = next(put for put in puts("micro_batch_without_exact_snapshot").values() if "made" in put.attributes)
    assert execution.attributes["made"] == {DAILY.qualified_name: "one of the snapshots 11, 12: APPEND"}
    twice = next(put for put in puts("commit_with_compaction").values() if "made" in put.attributes)
    assert twice.attributes["made"][DAILY.qualified_name].count("snapshot 1") == 2


def ddl_and_jobs(case: str) -> list[dict[str, Any]]:
    return list(notifications(atlas_changes(CASES[case], NAMES)))


def test_notifications_overwrite_nothing_of_what_may_only_be_added() -> None:
    (notification,) = ddl_and_jobs("lineage")
    entities: Sequence[dict[str, Any]] = notification["entities"]["entities"]
    tables = [each for each in entities if each["typeName"] == "headwater_dataset"]
    assert [set(each["attributes"]) for each in tables] == [{"qualifiedName", "name", "catalog"}] * 2
    columns = [each for each in entities if each["typeName"] == "headwater_column"]
    assert {frozenset(each["attributes"]) for each in columns} == {frozenset({"qualifiedName", "name"})}


def test_a_notification_refers_only_to_what_is_in_it() -> None:
    def guids(value: object) -> set[str]:
        if isinstance(value, dict):
            return {text for key, each in value.items() for text in ({each} if key == "guid" else guids(each))}
        return {text for each in value for text in guids(each)} if isinstance(value, list) else set()

    for case in CASES:
        for notification in ddl_and_jobs(case):
            if notification["type"] == "ENTITY_FULL_UPDATE_V2":
                entities = notification["entities"]["entities"]
                assert guids(entities) == {each["guid"] for each in entities}


def test_a_rename_is_an_update_of_the_old_name_before_all_else() -> None:
    first, *_ = ddl_and_jobs("table_renamed")
    assert first["type"] == "ENTITY_PARTIAL_UPDATE_V2"
    assert first["entityId"]["uniqueAttributes"] == {"qualifiedName": "lake.sales.orders@primary"}
    assert first["entity"]["entity"]["attributes"]["qualifiedName"] == "lake.sales.bought@primary"


def test_types_grow_and_lose_nothing() -> None:
    registered = {definition["name"]: definition for _, definition in definitions()}
    assert not any(missing_definitions(registered).values())
    assert not added_attributes(registered)
    dataset = registered["headwater_dataset"]
    theirs = {"name": "theirs", "typeName": "string"}
    older = {**dataset, "attributeDefs": [*dataset["attributeDefs"][2:], theirs]}
    (grown,) = added_attributes({**registered, "headwater_dataset": older})
    assert [each["name"] for each in grown["attributeDefs"]][-3:] == ["theirs", "kind", "format"]
    assert all(each["isOptional"] for each in DEFINITIONS["entityDefs"] for each in each["attributeDefs"])
    only = missing_definitions({name: each for name, each in registered.items() if name != "headwater_job_runs"})
    assert [each["name"] for each in only["relationshipDefs"]] == ["headwater_job_runs"]
    assert not only["entityDefs"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, "url, or bootstrap.servers"),
        ({"bootstrap.servers": "b:9092"}, "register.types = false"),
        ({"url": "http://a", "user": "u"}, "user and password"),
        ({"url": "http://a", "user": "u", "password": "p", "token": "t"}, "two ways to log in"),
        ({"url": "http://a", "namespace": "a@b"}, "last @"),
        ({"url": "http://a", "urll": "x"}, "urll"),
    ],
)
def test_options_that_contradict_each_other_are_refused(options: dict[str, str], words: str) -> None:
    with pytest.raises(ConfigurationError, match=words):
        read_config(AtlasConfig, options)


def of(changes: Sequence[Change]) -> set[AtlasRef]:
    return {each.ref for each in changes}


def test_one_table_has_one_name_in_all_events() -> None:
    create = stamped(CreateTable(**in_lake("daily"), table=Table()))
    assert DAILY in of(atlas_changes(create, NAMES))
    assert DAILY in of(atlas_changes(CASES["lineage"], NAMES))
    assert LAKE.name == "lake"
