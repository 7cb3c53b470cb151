"""What a person types is the table that is meant, or an error that lists what may be."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime
from unicodedata import normalize

import pytest
from sqlalchemy import Connection

from headwater.errors import ConfigurationError
from headwater.events.catalog import CreateTag
from headwater.events.jobs import Committed, Input
from headwater.events.names import DatasetId, TableName
from headwater.events.producer import Producer
from headwater.lineage.bulk import merge_rows
from headwater.lineage.mapping import map_event
from headwater.lineage.questions.columns import upstream_columns
from headwater.lineage.questions.completeness import gaps
from headwater.lineage.questions.history import history
from headwater.lineage.questions.names import AmbiguousNameError, UnknownNameError, find, parts_of
from headwater.lineage.questions.snapshots import upstream_snapshots
from headwater.lineage.questions.tables import downstream_tables
from headwater.lineage.rows import Row
from headwater.testing.examples import CONTEXT
from tests.kit.stores import memory_connection

CAFE = "Caf\u00e9"
"""Its last letter is one character (NFC); NFD makes two of it."""
LINES = "two\nlines"
TABLES = {
    TableName(catalog="lake", database="sales", table="orders"): DatasetId(namespace="s3://lake", name="sales/orders"),
    TableName(catalog="lake", database="sales", table="daily"): DatasetId(namespace="s3://lake", name="sales/daily"),
    TableName(catalog="old", database="sales", table="daily"): DatasetId(namespace="s3://old", name="sales/daily"),
    TableName(catalog="lake", database="sales", table="Target"): DatasetId(namespace="s3://lake", name="sales/Target"),
    TableName(catalog="lake", database="sales", table="twin"): DatasetId(namespace="s3://lake", name="sales/twin"),
    TableName(catalog="lake", database="sales", table="Twin"): DatasetId(namespace="s3://lake", name="sales/Twin"),
    TableName(catalog="lake", database="sales", table=CAFE): DatasetId(namespace="s3://lake", name=f"sales/{CAFE}"),
    TableName(catalog="lake", database="sales", table="two\nlines"): DatasetId(
        namespace="s3://lake", name="sales/two\nlines"
    ),
    TableName(catalog="lake", database="a.b", table="nested"): DatasetId(namespace="file://host", name="/data/nested"),
}


@pytest.fixture(scope="module")
def store() -> Iterator[Connection]:
    producer = Producer()
    rows: list[Row] = []
    inputs = tuple(Input(dataset=dataset, table=table, snapshot=1) for table, dataset in TABLES.items())
    orders = next(iter(TABLES))
    tag = CreateTag(context=CONTEXT, identifier=orders, dataset=TABLES[orders], tag="eod", snapshot=7)
    for draft in (Committed(barrier=1, inputs=inputs), tag):
        producer.emit(draft, lambda event, _: rows.extend(map_event(event)))
    with memory_connection() as connection:
        merge_rows(connection, rows)
        yield connection


@pytest.mark.parametrize(
    ("text", "place", "snapshot", "column"),
    [
        ("lake.sales.orders", "s3://lake/sales/orders", None, None),
        ("sales.orders", "s3://lake/sales/orders", None, None),
        ("orders", "s3://lake/sales/orders", None, None),
        ("orders@12", "s3://lake/sales/orders", 12, None),
        ("sales.orders@eod", "s3://lake/sales/orders", 7, None),
        ("sales.orders@12.id", "s3://lake/sales/orders", 12, ("id",)),
        ("sales.orders.address.`zip.code`", "s3://lake/sales/orders", None, ("address", "zip.code")),
        ("lake.sales.daily", "s3://lake/sales/daily", None, None),
        ("lake.a.b.nested.x", "file://host/data/nested", None, ("x",)),
        ("s3://lake/sales/orders@3.id", "s3://lake/sales/orders", 3, ("id",)),
        ("s3://lake/sales/orders/", "s3://lake/sales/orders", None, None),
        ("/data/nested", "file://host/data/nested", None, None),
        ("file://host|/data/nested", "file://host/data/nested", None, None),
        ("LAKE.SALES.TARGET", "s3://lake/sales/Target", None, None),
        ("target@3.id", "s3://lake/sales/Target", 3, ("id",)),
        ("Sales.Orders.Id", "s3://lake/sales/orders", None, ("Id",)),
        ("sales.twin", "s3://lake/sales/twin", None, None),
        ("sales.Twin", "s3://lake/sales/Twin", None, None),
        ("LAKE.A.B.NESTED.x", "file://host/data/nested", None, ("x",)),
        (normalize("NFD", CAFE), f"s3://lake/sales/{CAFE}", None, None),
        (f"sales.{normalize('NFD', CAFE).upper()}", f"s3://lake/sales/{CAFE}", None, None),
        (f"s3://lake/sales/{normalize('NFD', CAFE)}", f"s3://lake/sales/{CAFE}", None, None),
        ("sales.two\nlines", "s3://lake/sales/two\nlines", None, None),
        ("sales.two\nlines@3.a\nb", "s3://lake/sales/two\nlines", 3, ("a\nb",)),
        ("s3://lake/sales/two\nlines@3", "s3://lake/sales/two\nlines", 3, None),
    ],
)
def test_what_is_meant(store: Connection, text: str, place: str, snapshot: int | None, column: object) -> None:
    named = find(store, text)
    assert (named.dataset.place, named.snapshot, named.column) == (place, snapshot, column)


def test_of_names_that_differ_in_letters_only_none_is_guessed(store: Connection) -> None:
    with pytest.raises(AmbiguousNameError, match=r"lake\.sales\.Twin .*, lake\.sales\.twin"):
        find(store, "SALES.TWIN")


def test_a_time_without_a_zone_is_refused(store: Connection) -> None:
    noon = datetime(2026, 3, 1, 12)  # noqa: DTZ001 - that is what is asked
    questions: list[Callable[[], object]] = [
        lambda: upstream_snapshots(store, "orders", as_of=noon),
        lambda: downstream_tables(store, "orders", as_of=noon),
        lambda: upstream_columns(store, "orders.id", as_of=noon),
        lambda: gaps(store, since=noon),
        lambda: history(store, "orders", until=noon),
    ]
    for question in questions:
        with pytest.raises(ConfigurationError, match=r"=2026-03-01T12:00:00 has no time zone: write .*\+00:00"):
            question()


def test_several_are_listed(store: Connection) -> None:
    with pytest.raises(AmbiguousNameError, match=r"lake\.sales\.daily .*, old\.sales\.daily"):
        find(store, "sales.daily")


@pytest.mark.parametrize(
    ("text", "near"),
    [("sales.oders", "lake.sales.orders"), ("ordres", "lake.sales.orders"), ("s3://lake/orders", "s3")],
)
def test_of_what_there_isnt_the_nearest_is_reported(store: Connection, text: str, near: str) -> None:
    with pytest.raises(UnknownNameError, match=f"did you mean {near}"):
        find(store, text)


def test_a_tag_that_there_isnt(store: Connection) -> None:
    with pytest.raises(UnknownNameError, match="it has the tags eod"):
        find(store, "orders@bod")


def test_parts() -> None:
    assert parts_of("a.`b.c`.`d``e`") == ("a", "b.c", "d`e")
    with pytest.raises(UnknownNameError):
        parts_of("a.`b")
