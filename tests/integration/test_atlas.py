"""A real Atlas 2.1.0: what its own API tells after headwater has told it, by REST and by the topic of its hooks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count
from typing import Any
from urllib.parse import quote

import pytest

from headwater.errors import TerminalError
from headwater.events import Event
from headwater.events.catalog import AlterTable, CreateTable, DropTable
from headwater.events.changes import SetComment
from headwater.events.column_lineage import Derivation
from headwater.events.jobs import JobStarted, JobStatus, JobStatusChanged, JobType
from headwater.events.tables import Column, Table
from headwater.forwarders.api import RefusedEventsError
from headwater.forwarders.atlas import AtlasForwarder
from headwater.forwarders.atlas.forwarder import atlas_changes
from headwater.forwarders.atlas.messages import envelopes, notifications
from headwater.forwarders.atlas.options import AtlasNames
from headwater.forwarders.atlas.types import definitions
from tests.kit.atlas import exchange as atlas_exchange
from tests.kit.atlas.cases import CASES
from tests.kit.atlas.server import AtlasServer
from tests.kit.atlas.story import (
    CHANGING,
    DAILY,
    ETL,
    ID,
    MAKING,
    NOTE,
    RUN,
    STORY,
    TOTAL,
    edge,
    lineage,
    rename,
    table,
    told,
)
from tests.kit.forwarders.datahub_cases import in_lake
from tests.kit.forwarders.sending import error_of
from tests.kit.waiting import until

pytestmark = [
    pytest.mark.slow,
    pytest.mark.long,
    pytest.mark.xdist_group("atlas"),
]

THEIRS = {"name": "theirs", "typeName": "string", "isOptional": True, "cardinality": "SINGLE", "isUnique": False}
_NUMBERS = count(1)


@pytest.fixture(scope="module")
def atlas() -> Iterator[AtlasServer]:
    """An Atlas where an older headwater has been, without `query` of datasets, and somebody who added to its types."""
    with AtlasServer() as server:
        server.register_models()
        dataset = next(definition for _, definition in definitions() if definition["name"] == "headwater_dataset")
        fewer = [each for each in dataset["attributeDefs"] if each["name"] != "query"]
        older = {**dataset, "attributeDefs": [*fewer, THEIRS]}
        server.call("POST", "/v2/types/typedefs", {"entityDefs": [older]})
        yield server


class Catalog:
    """A part of an Atlas that one test has for itself: a namespace of qualified names."""

    def __init__(self, atlas: AtlasServer) -> None:
        self.atlas = atlas
        self.namespace = f"test{next(_NUMBERS)}"

    def forwarder(self, **options: str) -> AtlasForwarder:
        return atlas_exchange.forwarder(self.atlas.address, namespace=self.namespace, **options)

    def by_topic(self, **options: str) -> AtlasForwarder:
        return self.forwarder(bootstrap_servers=self.atlas.brokers, **options)

    def tell(self, events: Sequence[Event]) -> None:
        assert error_of(self.forwarder(), events) is None

    def find(self, type_name: str, name: str) -> dict[str, Any] | None:
        qualified = quote(f"{name}@{self.namespace}", safe="")
        answer = self.atlas.call("GET", f"/v2/entity/uniqueAttribute/type/{type_name}?attr:qualifiedName={qualified}")
        return None if answer is None else answer["entity"]

    def get(self, type_name: str, name: str) -> dict[str, Any]:
        found = self.find(type_name, name)
        assert found is not None, name
        return found

    def dataset(self, name: str) -> dict[str, Any]:
        return self.get("headwater_dataset", f"lake.sales.{name}")

    def column(self, name: str) -> dict[str, Any]:
        return self.get("headwater_column", f"lake.sales.{name}")

    def lineage(self, entity: dict[str, Any]) -> set[tuple[str, str]]:
        """The edges around an entity by Atlas's lineage API, as names without what is behind the @."""
        answer = self.atlas.call("GET", f"/v2/lineage/{entity['guid']}?depth=9&direction=BOTH")
        names = {
            guid: each["attributes"]["qualifiedName"].removesuffix(f"@{self.namespace}")
            for guid, each in answer["guidEntityMap"].items()
        }
        return {(names[each["fromEntityId"]], names[each["toEntityId"]]) for each in answer["relations"]}


@pytest.fixture
def catalog(atlas: AtlasServer) -> Catalog:
    return Catalog(atlas)


def related(entity: dict[str, Any], name: str) -> set[str]:
    """What a reference leads to, by name."""
    return {
        each["displayText"]
        for each in entity["relationshipAttributes"][name]
        if each["relationshipStatus"] == "ACTIVE" and each["entityStatus"] == "ACTIVE"
    }


TABLES = {
    ("lake.sales.orders", "orders_etl.daily"),
    ("orders_etl.daily", "lake.sales.daily"),
    ("lake.sales.daily", "orders_etl.report"),
    ("orders_etl.report", "lake.sales.report"),
}
COLUMNS = {
    ("lake.sales.orders.amount", "orders_etl.daily:lake.sales.daily.total"),
    ("orders_etl.daily:lake.sales.daily.total", "lake.sales.daily.total"),
    ("lake.sales.daily.total", "orders_etl.report:lake.sales.report.total"),
    ("orders_etl.report:lake.sales.report.total", "lake.sales.report.total"),
}


def renamed(edges: set[tuple[str, str]]) -> set[tuple[str, str]]:
    """The edges after daily became totals. Processes keep the names that they were made with."""

    def new(name: str) -> str:
        return name.replace("lake.sales.daily", "lake.sales.totals") if name.startswith("lake.") else name

    return {(new(origin), new(target)) for origin, target in edges}


def test_three_tables_and_their_columns_are_read_back_by_the_lineage_api(catalog: Catalog) -> None:
    catalog.tell(told(*MAKING))
    assert catalog.lineage(catalog.dataset("daily")) == TABLES
    assert catalog.lineage(catalog.column("daily.total")) == COLUMNS
    orders = catalog.dataset("orders")
    assert orders["attributes"]["description"] == "what was bought"
    assert orders["attributes"]["parameters"] == {"tier": "gold"}
    assert related(orders, "columns") == {"id", "amount"}
    amount = catalog.column("orders.amount")["attributes"]
    assert (amount["type"], amount["description"]) == ("decimal(10,2)", "with tax")
    (execution,) = catalog.get("headwater_job", "orders_etl.daily")["relationshipAttributes"]["executions"]
    commit = catalog.atlas.call("GET", f"/v2/entity/guid/{execution['guid']}")["entity"]["attributes"]
    assert commit["read"] == {f"lake.sales.orders@{catalog.namespace}": "snapshot 7"}
    assert commit["made"] == {f"lake.sales.daily@{catalog.namespace}": "snapshot 12 on 11: APPEND, 3 rows"}
    assert catalog.get("headwater_run", str(RUN))["attributes"]["status"] == "FINISHED"


def test_a_rename_keeps_the_entity_and_its_lineage(catalog: Catalog) -> None:
    catalog.tell(told(*MAKING))
    table_before, column_before = catalog.dataset("daily")["guid"], catalog.column("daily.total")["guid"]
    catalog.tell(told(rename("daily", "totals", ID, TOTAL), first=50))
    totals, total = catalog.dataset("totals"), catalog.column("totals.total")
    assert (totals["guid"], total["guid"]) == (table_before, column_before)
    assert catalog.find("headwater_dataset", "lake.sales.daily") is None
    assert catalog.find("headwater_column", "lake.sales.daily.total") is None
    assert catalog.lineage(totals) == renamed(TABLES)
    assert catalog.lineage(total) == renamed(COLUMNS)


def test_the_whole_story_told_twice_says_the_same(catalog: Catalog) -> None:
    catalog.tell(STORY)
    before = {name: catalog.dataset(name) for name in ("orders", "totals", "report", "scratch", "all_orders")}
    assert related(before["orders"], "columns") == {"id", "price", "note"}
    assert related(before["scratch"], "columns") == {"id"}
    assert before["all_orders"]["attributes"]["query"] == "SELECT id FROM lake.sales.orders"
    edges = catalog.lineage(before["totals"])
    view = catalog.lineage(before["all_orders"])
    assert view == {
        ("lake.sales.orders", "lake.sales.all_orders:query"),
        ("lake.sales.all_orders:query", "lake.sales.all_orders"),
    }
    catalog.tell(STORY)
    for name, entity in before.items():
        again = catalog.dataset(name)
        assert again["guid"] == entity["guid"]
        assert again["attributes"] == entity["attributes"]
        assert related(again, "columns") == related(entity, "columns")
    assert catalog.find("headwater_dataset", "lake.sales.daily") is None
    assert catalog.lineage(before["totals"]) == edges


def test_a_renamed_column_keeps_its_lineage_and_a_dropped_one_goes(catalog: Catalog) -> None:
    catalog.tell(told(*MAKING))
    guid = catalog.column("orders.amount")["guid"]
    catalog.tell(told(CHANGING[1], first=50))
    assert catalog.column("orders.price")["guid"] == guid
    assert ("lake.sales.orders.price", "orders_etl.daily:lake.sales.daily.total") in catalog.lineage(
        catalog.column("daily.total")
    )
    catalog.tell(told(AlterTable(**in_lake("orders"), new_table=Table(columns=(ID,))), first=51))
    assert catalog.find("headwater_column", "lake.sales.orders.price") is None
    assert related(catalog.dataset("orders"), "columns") == {"id"}


def test_a_table_that_is_made_again_after_a_drop_is_another_entity(catalog: Catalog) -> None:
    first, drop, second = told(table("scratch", ID, NOTE), DropTable(**in_lake("scratch")), table("scratch", ID))
    catalog.tell([first])
    old = catalog.dataset("scratch")["guid"]
    catalog.tell([drop])
    assert catalog.find("headwater_dataset", "lake.sales.scratch") is None
    assert catalog.find("headwater_column", "lake.sales.scratch.id") is None
    catalog.tell([second])
    assert catalog.dataset("scratch")["guid"] != old
    catalog.tell([drop])
    assert related(catalog.dataset("scratch"), "columns") == {"id"}, "an old drop comes again"


def test_events_of_two_partitions_in_any_order_end_alike(catalog: Catalog) -> None:
    create, old, new = told(
        table("orders", ID, NOTE, comment="made"),
        AlterTable(
            **in_lake("orders"), changes=(SetComment(comment="old"),), new_table=Table(columns=(ID,), comment="old")
        ),
        AlterTable(
            **in_lake("orders"),
            changes=(SetComment(comment="new"),),
            new_table=Table(columns=(ID, TOTAL), comment="new"),
        ),
    )
    (seen,) = told(lineage(DAILY, "orders", "daily", edge("amount", "total", Derivation.AGGREGATION)), first=2)
    for each in (seen, new, old, create):
        catalog.tell([each])
    orders = catalog.dataset("orders")
    assert orders["attributes"]["description"] == "new"
    assert related(orders, "columns") == {"id", "total"}


def test_what_a_run_reported_beats_what_somebody_inferred(catalog: Catalog) -> None:
    started, inferred, own = told(
        JobStarted(job=ETL, job_type=JobType.BATCH),
        JobStatusChanged(job=ETL, status=JobStatus.KILLED, inferred=True),
        JobStatusChanged(job=ETL, status=JobStatus.FINISHED),
    )
    for each in (own, inferred, started):
        catalog.tell([each])
    run = catalog.get("headwater_run", str(RUN))["attributes"]
    assert (run["status"], run["isStatusInferred"]) == ("FINISHED", False)
    assert run["startTime"] < run["endTime"]


def test_tables_of_other_systems_have_atlas_own_types_and_are_left_as_they_are(catalog: Catalog) -> None:
    catalog.tell([CASES["lineage_of_hive_hdfs_and_kafka"]])
    hive = catalog.get("hive_table", "sales.orders")
    assert related(hive, "columns") == {"id"}
    assert ("sales.orders", "orders_etl.lake.sales.daily") in catalog.lineage(hive)
    assert catalog.find("kafka_topic", "orders") is not None
    assert catalog.find("hdfs_path", "hdfs://namenode:8020/landing/orders") is not None
    comment = {
        "typeName": "hive_table",
        "guid": hive["guid"],
        "attributes": {**hive["attributes"], "comment": "theirs"},
    }
    catalog.atlas.call("POST", "/v2/entity/bulk", {"entities": [comment]})
    catalog.tell([CASES["lineage_of_hive_hdfs_and_kafka"]])
    assert catalog.get("hive_table", "sales.orders")["attributes"]["comment"] == "theirs"


def test_every_kind_of_event_is_taken(catalog: Catalog) -> None:
    assert error_of(catalog.forwarder(), list(CASES.values())) is None


def test_types_of_an_older_headwater_grow_and_keep_what_others_added(catalog: Catalog) -> None:
    catalog.tell(told(*MAKING[:2]))
    found = catalog.atlas.call("GET", "/v2/types/entitydef/name/headwater_dataset")
    names = {each["name"] for each in found["attributeDefs"]}
    assert {"query", "theirs", "kind", "eventTime"} <= names
    assert found["version"] > 1


def test_by_the_topic_lineage_and_a_rename_arrive(catalog: Catalog) -> None:
    """As one message each, and then so small that they are compressed, and split."""
    assert error_of(catalog.by_topic(), told(*MAKING[:3])) is None
    daily = until(lambda: catalog.find("headwater_dataset", "lake.sales.daily"), "the table")
    compressed = catalog.by_topic(message_bytes="600")
    (seen,) = told(MAKING[4], first=10)
    (notification,) = notifications(atlas_changes(seen, AtlasNames()))
    assert len(envelopes(notification, 0, 600, compress=True)) > 1
    assert error_of(compressed, [seen]) is None
    until(lambda: catalog.find("headwater_job", "orders_etl.daily"), "the job, in a compressed and split message")
    plain = catalog.by_topic(message_bytes="1500", compression="false")
    assert error_of(plain, told(MAKING[6], first=11)) is None
    until(lambda: catalog.find("headwater_job", "orders_etl.report"), "the job, in a split message")
    assert catalog.lineage(catalog.dataset("daily")) == TABLES
    assert catalog.lineage(catalog.column("daily.total")) == COLUMNS
    assert error_of(catalog.by_topic(), told(rename("daily", "totals", ID, TOTAL), first=50)) is None
    until(lambda: catalog.find("headwater_column", "lake.sales.totals.total"), "the renamed column")
    assert daily is not None
    assert catalog.dataset("totals")["guid"] == daily["guid"]
    assert catalog.lineage(catalog.dataset("totals")) == renamed(TABLES)
    assert error_of(catalog.by_topic(), told(DropTable(**in_lake("totals")), first=60)) is None
    until(lambda: catalog.find("headwater_dataset", "lake.sales.totals") is None, "the drop")


def test_a_wide_table_arrives_whole(catalog: Catalog) -> None:
    columns = tuple(Column(name=f"c{number}", type='"long"') for number in range(250))
    catalog.tell(told(CreateTable(**in_lake("wide"), table=Table(columns=columns))))
    assert len(related(catalog.dataset("wide"), "columns")) == 250


def test_a_wrong_password_waits_for_somebody(catalog: Catalog) -> None:
    error = error_of(catalog.forwarder(password="wrong"), told(MAKING[0]))
    assert isinstance(error, TerminalError)
    assert not isinstance(error, RefusedEventsError)
    assert "401" in str(error)
